# SPDX-License-Identifier: Apache-2.0
"""How much the random tests and the proofs try, and how a run is repeated.

They are short unless BERTH_EFFORT says otherwise: 4, as in `make proof`, tries everything that can
be enumerated and four times as many random cases; 0.5 half as many.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random, randrange
from typing import Final, TypeVar

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

#: The effort from which on nothing is left to chance that can be enumerated.
_FULL: Final = 4

#: Otherwise one of so many is tried; with less than the usual effort, one of so many that are long.
_SHARE: Final = 4
_SHARE_OF_LONG: Final = 3


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
