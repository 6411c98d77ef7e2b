# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: how much the tests try, and how a run is repeated.

With BERTH_EFFORT=4, as in `make proof`, everything that can be enumerated is tried, and four times
as many random cases as with 1, the effort of `.ci/run`. `make test` tries a fifth, and leaves out
the tests that are marked `thorough`: those that take long, and whose rule a shorter test knows too.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from random import Random, randrange
from typing import Final, TypeVar

import pytest

T = TypeVar("T")


def _seed() -> int:
    if given := os.environ.get("BERTH_SEED"):
        return int(given)
    # All processes of a run have one, because each collects the tests for itself.
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    return int(run, 16) % 2**32 if run else randrange(2**32)


#: The seed of every random test of this run: given by the environment, or new.
SEED: Final = _seed()

EFFORT: Final = float(os.environ.get("BERTH_EFFORT", "1"))

#: Why a run of little effort skips a test.
THOROUGH: Final = "thorough: `.ci/run` runs it, and so does BERTH_EFFORT=1"

#: Where all tests are thorough: they start services, browsers or other programs, one after the
#: other, or enumerate what may happen at each step.
_PLACES: Final = (
    "tests/adoption/",
    "tests/contrib/",
    "tests/copying/",
    "tests/docs/test_how_to.py",
    "tests/e2e/test_demo_serve.py",
    "tests/e2e/test_keystone.py",
    "tests/e2e/test_logs.py",
    "tests/e2e/test_metrics.py",
    "tests/e2e/test_overload.py",
    "tests/e2e/test_real_clients.py",
    "tests/e2e/test_serve.py",
    "tests/e2e/test_slow_clients.py",
    "tests/e2e/test_this_machine.py",
    "tests/e2e/test_workers.py",
    "tests/bench/",
    "tests/cli/fleet/test_demo.py",
    "tests/cli/test_agent.py",
    "tests/cli/test_audit.py",
    "tests/cli/test_databases.py",
    "tests/cli/test_imports.py",
    "tests/cli/test_migrate_inventory.py",
    "tests/cli/test_status.py",
    "tests/faults/",
    "tests/hosts/test_one_budget.py",
    "tests/hosts/test_under_fire.py",
    "tests/nova/",
    "tests/openapi/test_schemathesis.py",
    "tests/packaging/",
    "tests/page/",
    "tests/proof/faults/",
    "tests/proof/test_followed.py",
    "tests/proof/test_killed.py",
    "tests/proof/test_served.py",
    "tests/rows/",
    "tests/store/test_cluster.py",
    "tests/store/test_foreign_writes.py",
    "tests/store/test_schema.py",
    "tests/test_architecture.py",
    "tests/test_interrupted.py",
    "tests/test_plant.py",
)

#: The effort from which on the thorough tests run.
_THOROUGH_FROM: Final = 1

#: The effort from which on nothing is left to chance that can be enumerated.
_FULL: Final = 4

#: Otherwise one of so many is tried; with little effort, one of so many that are long.
_SHARE: Final = 4
_SHARE_OF_LONG: Final = 3


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line("markers", "thorough: long; a shorter test has its rule too")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip in a run of little effort what is left to a longer one."""
    if has_thorough():
        return
    for item in items:
        if item.get_closest_marker("thorough") or item.nodeid.startswith(_PLACES):
            item.add_marker(pytest.mark.skip(reason=THOROUGH))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many those were, and where."""
    skipped = terminalreporter.stats.get("skipped", ())
    places = Counter(
        report.nodeid.partition("::")[0].rpartition("/")[0]
        for report in skipped
        if THOROUGH in str(report.longrepr)
    )
    if places:
        told = ", ".join(f"{count} of {place}" for place, count in places.most_common())
        terminalreporter.write_line(
            f"not tested here: {places.total()} thorough tests (`.ci/run` runs them): {told}"
        )


def has_thorough() -> bool:
    """Whether thorough tests are run."""
    return EFFORT >= _THOROUGH_FROM


def scaled(usual: int) -> int:
    """The number of random cases for one test: `usual` times the effort, and at least one."""
    return max(1, int(usual * EFFORT))


def is_full() -> bool:
    """Whether everything that can be enumerated is tried."""
    return EFFORT >= _FULL


def some_of(everything: Sequence[T], label: str) -> list[T]:
    """A quarter of a list in a usual run, others in each run; all of it at full effort.

    Args:
        label: of the test, so that each tries others.
    """
    if is_full():
        return list(everything)
    return _sample(everything, label, _SHARE)


def few_of(everything: Sequence[T], label: str) -> list[T]:
    """All of a list in a usual run; in one of little effort a third, others in each run.

    Args:
        label: of the test, so that each tries others.
    """
    if has_thorough():
        return list(everything)
    return _sample(everything, label, _SHARE_OF_LONG)


def _sample(everything: Sequence[T], label: str, share: int) -> list[T]:
    count = -(-len(everything) // share)
    return Random(f"{SEED} {label}").sample(list(everything), count)


def repeat_with() -> str:
    """What to set in order to see the same again."""
    return f"repeat with BERTH_SEED={SEED}" + (f" BERTH_EFFORT={EFFORT:g}" if EFFORT != 1 else "")
