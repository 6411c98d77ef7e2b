# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: where several processes share the tests, which of them stay together.

A process makes a fixture for itself. Tests that share an expensive one run in one process, so that
it is made once: without this, each process would start its own server for the tests of a module.
"""

from __future__ import annotations

import pytest

from tests.engines import engine_of

#: The scopes of fixtures that tests of one module share.
_SHARED = ("class", "module", "package")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to start where pytest-xdist cannot write the group of a test into its id.

    With pytest 9.2, pytest-xdist 3.8 sets an attribute that nothing reads: tests ran in any
    process, without a warning, and each process started every server.
    """
    if config.getoption("dist", "no") == "loadgroup" and not hasattr(pytest.Item, "_nodeid"):
        raise pytest.UsageError(
            f"pytest-xdist ignores the groups of tests with pytest {pytest.__version__}: install "
            "the version of constraints.txt"
        )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that stay together, for `--dist loadgroup`."""
    for item in items:
        is_marked = item.get_closest_marker("xdist_group") is not None
        if not is_marked and (group := group_of(item)) is not None:
            item.add_marker(pytest.mark.xdist_group(group))


def group_of(item: pytest.Item) -> str | None:
    """The group of a test; None if any process may run it."""
    if "tests/adoption/" in item.nodeid:
        return "adoption"  # one installs the originals
    if "keystone" in getattr(item, "fixturenames", ()):
        return "keystone"
    if (engine := engine_of(item)) not in (None, "sqlite"):
        # Two of each, so that none is left alone with all the rest in the end.
        return f"{engine} {'api' if 'tests/api/' in item.nodeid else 'other'}"
    return item.nodeid.partition("::")[0] if shares_fixture(item) else None


def shares_fixture(item: pytest.Item) -> bool:
    """Whether a test uses a fixture that is made once for its module."""
    if not isinstance(item, pytest.Function):
        return False
    definitions = item._fixtureinfo.name2fixturedefs.values()
    return any(definition[-1].scope in _SHARED for definition in definitions)
