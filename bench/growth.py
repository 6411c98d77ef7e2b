# SPDX-License-Identifier: Apache-2.0
"""Growth of a cost: the exponent of the power law that fits best."""

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
    for result in results:
        if result.server == BERTH and result.answer_bytes and result.median and _is_query(result):
            where = "in the worker" if result.scenario == "engine" else "over HTTP"
            name = result.quantity or result.case
            kinds.setdefault(f"{result.fleet}: {name}, {where}", []).append(result)
    return [_growth(name, some) for name, some in kinds.items() if len(some) > 1]


def _is_query(result: Result) -> bool:
    scenarios = ("flat", "nested", "sharing", "engine")
    return result.scenario in scenarios and "clients" not in result.case


def _growth(name: str, results: Sequence[Result]) -> Growth:
    by_bytes = "no limit" in name
    points = [
        (result.answer_bytes if by_bytes else result.size, result.median)
        for result in results
        if result.median
    ]
    return Growth(
        name,
        "bytes of the answer" if by_bytes else "hosts",
        [result.size for result in results],
        [result.median for result in results if result.median],
        exponent(points),
    )
