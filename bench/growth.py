# SPDX-License-Identifier: Apache-2.0
"""How a cost grows: the exponent of the power law that fits it best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bench.results import BERTH, Result


class Growth(NamedTuple):
    """Cost is about size to the power of `exponent`."""

    name: str
    #: What the cost is held against: "hosts" or "bytes of the answer".
    against: str
    sizes: Sequence[int]
    medians: Sequence[float]
    exponent: float


def exponent(points: Iterable[tuple[float, float]]) -> float:
    """The slope of the line of least squares through (log x, log y): 1 is linear, 0 constant.

    At least two points with different x, all numbers positive.
    """
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    assert spread > 0, "one size alone says nothing about growth"
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread


def growths(results: Sequence[Result]) -> list[Growth]:
    """The growth of every candidates query of berth that was measured at several sizes.

    A query without limit is held against the size of its answer: to write more takes longer.
    """
    kinds: dict[str, list[Result]] = {}
    for one in results:
        if one.server == BERTH and one.answer_bytes and one.median and _is_query(one):
            where = "in the worker" if one.scenario == "engine" else "over HTTP"
            name = one.what or one.case
            kinds.setdefault(f"{one.fleet}: {name}, {where}", []).append(one)
    return [_growth(name, some) for name, some in kinds.items() if len(some) > 1]


def _is_query(result: Result) -> bool:
    scenarios = ("flat", "nested", "sharing", "engine")
    return result.scenario in scenarios and "clients" not in result.case


def _growth(name: str, results: Sequence[Result]) -> Growth:
    by_bytes = "no limit" in name
    points = [
        (one.answer_bytes if by_bytes else one.size, one.median) for one in results if one.median
    ]
    return Growth(
        name,
        "bytes of the answer" if by_bytes else "hosts",
        [one.size for one in results],
        [one.median for one in results if one.median],
        exponent(points),
    )
