# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: how much the tests try, and how a run is repeated.

With BERTH_EFFORT=4, as in `make proof`, everything that can be enumerated is tried, and four times
as many random cases as with 1; `.ci/run` tries half of them. `make test` tries a fifth, and leaves
out the tests that are marked `thorough`: those that take long, and whose rule a shorter test knows
too.
"""

from __future__ import annotations

import os
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

#: Why a run of little effort skips a case.
LEFT_OUT: Final = "a run with BERTH_EFFORT below 1 tries a third of these, others each time"

#: Why a run of little effort skips a test.
THOROUGH: Final = "thorough: `.ci/run` runs it, and so does BERTH_EFFORT=0.5"

#: The effort from which on the thorough tests run.
_THOROUGH_FROM: Final = 0.5

#: The effort from which on nothing is left to chance that can be enumerated.
_FULL: Final = 4

#: Otherwise one of so many is tried; with less than the usual effort, one of so many that are long.
_SHARE: Final = 4
_SHARE_OF_LONG: Final = 3


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line("markers", "thorough: long; a shorter test has its rule too")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip in a run of little effort what is left to a longer one."""
    if EFFORT >= _THOROUGH_FROM:
        return
    for item in items:
        if item.get_closest_marker("thorough"):
            item.add_marker(pytest.mark.skip(reason=THOROUGH))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many those were."""
    skipped = terminalreporter.stats.get("skipped", ())
    count = sum(THOROUGH in str(report.longrepr) for report in skipped)
    if count:
        terminalreporter.write_line(
            f"not tested here: {count} thorough tests (`.ci/run` runs them)"
        )


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


def is_left_out(everything: Sequence[T], case: T, label: str) -> bool:
    """Whether a run of less than the usual effort leaves out one of several cases, each of which
    starts servers and many commands: it tries a third of them, others in each run.

    Args:
        label: of the test, so that each leaves out others.
    """
    if EFFORT >= 1:
        return False
    return case not in _sample(everything, label, _SHARE_OF_LONG)


def _sample(everything: Sequence[T], label: str, share: int) -> list[T]:
    count = -(-len(everything) // share)
    return Random(f"{SEED} {label}").sample(list(everything), count)


def repeat_with() -> str:
    """What to set in order to see the same again."""
    return f"repeat with BERTH_SEED={SEED}" + (f" BERTH_EFFORT={EFFORT:g}" if EFFORT != 1 else "")
