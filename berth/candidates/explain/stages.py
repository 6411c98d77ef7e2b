# SPDX-License-Identifier: Apache-2.0
"""The hosts that each further atom leaves, and those that fit each alone. Source: spec/beyond.md
3.3."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from berth.candidates.explain.asking import Asking
from berth.candidates.explain.explanation import Count, Stage
from berth.index.aggregate_sets import Mask

#: The bytes of a painted host that fits, or that was not decided in time.
FITS: Final = 255
UNDECIDED: Final = 254


class Prefix(NamedTuple):
    """The hosts that the first atoms leave.

    Attributes:
        at_least: whether some may be missing.
    """

    hosts: Mask
    at_least: bool


def prefixes_of(asking: Asking) -> list[Prefix]:
    """The hosts that the first atoms leave: none of them, one, two ... and all."""
    prefixes = [Prefix(asking.fit(0), is_cut(asking))]
    for number in range(len(asking.atoms)):
        if asking.budget.is_spent():
            return [*prefixes, *[Prefix(asking.fleet.none(), True)] * (len(asking.atoms) - number)]
        before = (1 << number) - 1
        hosts = asking.fit(before | 1 << number, among=prefixes[-1].hosts, fitted=before)
        prefixes.append(Prefix(hosts, is_cut(asking)))
    return prefixes


def stage_of(asking: Asking, empty: Asking, number: int, left: Prefix) -> Stage:
    """One atom of a stage list."""
    atom = asking.atoms[number]
    alone = None if atom.is_relation else _number(asking.alone(number))
    has = if_empty = None
    if atom.asked is not None:
        has = _number(asking.having(number))
        if_empty = _number(empty.alone(number))
    return Stage(
        at=atom.at,
        text=atom.text,
        left=_number(left.hosts),
        alone=alone,
        has=has,
        if_empty=if_empty,
        at_least=left.at_least or is_cut(asking),
    )


def painted(asking: Asking, prefixes: list[Prefix]) -> bytes:
    """One byte for each host: the first atom whose prefix it no longer fits."""
    paint = np.full(asking.fleet.size, FITS, dtype=np.uint8)
    for number in reversed(range(len(asking.atoms))):
        left = prefixes[number + 1]
        # More atoms than a byte can tell apart share the last number.
        reason = UNDECIDED if left.at_least else min(number, UNDECIDED - 1)
        paint[~left.hosts] = reason
    if prefixes[0].at_least:
        paint[~prefixes[0].hosts] = UNDECIDED
    return paint[asking.fleet.in_order()].tobytes()


def count(asking: Asking, hosts: Mask) -> Count:
    """How many hosts an answer has that was just given."""
    return Count(_number(hosts), is_cut(asking))


def is_cut(asking: Asking) -> bool:
    """Whether the time has ended."""
    return asking.budget.ended is not None


def _number(hosts: Mask) -> int:
    return int(np.count_nonzero(hosts))
