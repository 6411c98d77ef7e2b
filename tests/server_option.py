# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: `--berth-url URL` sends the wire tests to a running server.

With `--original` that server is the original service. A test marked
`deliberately_different("reason")` is then expected to fail: berth gives another answer on purpose.
Tests that a shared server cannot serve are marked `in_process` and skipped with either.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("berth")
    group.addoption("--berth-url", metavar="URL", help="send the wire tests to this server")
    group.addoption(
        "--original", action="store_true", help="the server at --berth-url is the original service"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the two marks."""
    config.addinivalue_line(
        "markers",
        "deliberately_different(reason): berth answers otherwise than the original, on purpose",
    )
    config.addinivalue_line(
        "markers", "in_process: needs the application in this process, with settings of its own"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip or expect to fail what the server at hand cannot or does not do."""
    if config.getoption("--berth-url") is None:
        return
    for item in items:
        if item.get_closest_marker("in_process"):
            item.add_marker(pytest.mark.skip(reason="needs the application in this process"))
        different = item.get_closest_marker("deliberately_different")
        if different and config.getoption("--original"):
            item.add_marker(pytest.mark.xfail(reason=different.args[0], strict=True))
