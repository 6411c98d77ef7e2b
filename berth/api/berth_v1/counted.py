# SPDX-License-Identifier: Apache-2.0
"""Capacities as JSON: with a scenario, each figure beside the present one.

Source: spec/beyond.md 4.2 to 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.candidates.capacity import Capacity, Counting, Total
from berth.candidates.capacity.by import (
    Line,
    OfHost,
    Partition,
    best_hosts,
    every_host,
    hosts_by_uuid,
)
from berth.candidates.capacity.by import of_host as capacity_of_host
from berth.candidates.capacity.fragments import Fragments
from berth.candidates.question import Question

JSON = dict[str, Any]

_NO_HOSTS = Line(Total(0, 0), 0)


@dataclass(frozen=True, slots=True)
class Counted:
    """One fleet, and what of it to show.

    Attributes:
        partitions: by the key of the question.
        by_host: whether to show every host.
        best: how many of the hosts with the highest counts to show.
    """

    counting: Counting
    partitions: Mapping[str, Partition]
    by_host: bool
    best: int


def shown(then: Counted, now: Counted | None, alternatives: Sequence[Question]) -> JSON:
    """The capacity for a request.

    Args:
        then: the fleet of the scenario, or the only one.
        now: the present fleet, if there is a scenario.
    """
    capacity = then.counting.capacity(alternatives)
    present = None if now is None else now.counting.capacity(alternatives)
    result = _whole(capacity)
    if present is not None:
        result["now"] = _whole(present)
    if len(alternatives) > 1:
        result["alternative"] = capacity.alternative
    result["classes"] = _classes(then, now, capacity, present)
    by = {key: _parts(then, now, key, capacity, present) for key in then.partitions}
    if then.by_host:
        by["host"] = {
            each.host.uuid: {"name": each.host.name, **_total(each.total), **before}
            for each, before in _with_present([*every_host(then.counting, capacity)], now, present)
        }
    if by:
        result["by"] = by
    if then.best:
        is_spent = then.counting.budget.is_spent()
        best = [] if is_spent else best_hosts(then.counting, capacity, then.best)
        result["best"] = [
            {"host": each.host._asdict(), **_total(each.total), **before}
            for each, before in _with_present(best, now, present)
        ]
    return result


def _whole(capacity: Capacity) -> JSON:
    total = capacity.total()
    return {
        **_total(total),
        "exact": total.count == total.at_most,
        "hosts": capacity.hosts(),
    }


def _total(total: Total) -> JSON:
    return {"count": total.count, "at_most": total.at_most}


def _classes(
    then: Counted, now: Counted | None, capacity: Capacity, present: Capacity | None
) -> JSON:
    classes = {name: _fragments(each) for name, each in then.counting.fragments(capacity).items()}
    if now is not None and present is not None:
        for name, each in now.counting.fragments(present).items():
            # Another alternative may be the first that fits, with other classes.
            classes.setdefault(name, _fragments(Fragments(0, 0, 0)))["now"] = _fragments(each)
    return classes


def _fragments(fragments: Fragments) -> JSON:
    return {
        "free": fragments.free,
        "usable": fragments.usable,
        "stranded": fragments.stranded,
        "largest": fragments.largest,
    }


def _parts(
    then: Counted, now: Counted | None, key: str, capacity: Capacity, present: Capacity | None
) -> JSON:
    lines = then.partitions[key].lines(capacity)
    if now is None or present is None:
        return {value: _line(line) for value, line in lines.items()}
    before = now.partitions[key].lines(present)
    return {
        value: {
            **_line(lines.get(value, _NO_HOSTS)),
            "now": _line(before.get(value, _NO_HOSTS)),
        }
        for value in sorted({*lines, *before})
    }


def _line(line: Line) -> JSON:
    return {**_total(line.total), "hosts": line.hosts}


def _with_present(
    several: Sequence[OfHost], now: Counted | None, present: Capacity | None
) -> list[tuple[OfHost, JSON]]:
    """Some hosts, each with its present capacity as `now`; null if it does not exist yet."""
    if now is None or present is None:
        return [(each, {}) for each in several]
    numbers = hosts_by_uuid(now.counting, [each.host.uuid for each in several])
    before: list[JSON | None] = []
    for each in several:
        number = numbers.get(each.host.uuid)
        before.append(
            None
            if number is None
            else _total(capacity_of_host(now.counting, present, number).total)
        )
    return [(each, {"now": total}) for each, total in zip(several, before, strict=True)]
