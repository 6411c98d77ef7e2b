# SPDX-License-Identifier: Apache-2.0
"""The targets of the benchmark, and whether a run meets them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from bench.feed import DRAIN, FEED_SCENARIO, SEEN, WHOLE_FLEET
from bench.growth import Growth
from bench.place import MANY, PLACE_SCENARIO, TRIES
from bench.reads import LISTS, SINGLE_READS
from bench.results import (
    BERTH,
    ORIGINAL,
    Figure,
    Result,
    find,
    of_floor,
    times_cheaper,
    times_faster,
)
from bench.wide import DEVICES, GROUPS, LIMIT

_SMALL, _MEDIUM, _LARGE, _HUGE = 1_000, 10_000, 100_000, 1_000_000

#: Well below linear with a limit; linear, except for noise, without one.
_EXPONENT_MAX: Final = 0.5
_LINEAR_EXPONENT_MAX: Final = 1.05

#: Milliseconds, by case.
_EXPLAIN_MAX: Final = {"8 atoms": 5.0, "three groups": 25.0}

_MEMORY_MORE_MIB_MAX: Final = 64

#: Of what an application takes that does nothing.
_FLOORS_MAX: Final = 2.0
_FIGURES: Final[Sequence[tuple[str, Figure]]] = (
    ("median", "median"),
    ("CPU time", "processor_ms"),
)
#: Against Placement: reads of one provider by the median and by processor time, and lists.
_SINGLE_MIN, _SINGLE_PROCESSOR_MIN, _LIST_MIN = 25, 50, 50
#: The share of one processor that the polls of a large fleet may take, in percent.
_POLLS_MAX: Final = 25


class Verdict(NamedTuple):
    """A target and its measurement; `is_met` is None if it was not measured."""

    case: str
    target: str
    measured: str
    is_met: bool | None


def verdicts(results: Sequence[Result], growths: Sequence[Growth]) -> list[Verdict]:
    """Every target, in the order of the scenarios."""
    return [
        *_compared_with_placement(results),
        *_large_fleets(results),
        *_explanations(results),
        *_capacities(results),
        *_places(results),
        *_feeds(results),
        *_wide(results),
        *_claims(results),
        *_other_writes(results),
        *_reads(results),
        *_near_the_floor(results),
        *_polls(results),
        *_start_and_memory(results),
        *_coherence(results),
        *_growth(growths),
    ]


def _compared_with_placement(results: Sequence[Result]) -> Iterator[Verdict]:
    for scenario in ("flat", "sharing", "nested"):
        for result in _ours(results, scenario, _SMALL):
            if "clients" not in result.case:
                yield _times(results, result, 100 if result.case.endswith("limit 10") else 150)


def _large_fleets(results: Sequence[Result]) -> Iterator[Verdict]:
    for result in _ours(results, "flat", _LARGE):
        if result.case.endswith("limit 10"):
            yield _at_most(f"flat, {_LARGE:,} hosts: {result.case}", result, 1.5)
        elif result.case.endswith("limit 10, 16 clients"):
            yield _rate(f"flat, {_LARGE:,} hosts: {result.case}", result, 3000)
    for size, most in ((_LARGE, 10.0), (_HUGE, 50.0)):
        for result in _ours(results, "engine", size):
            if result.quantity.endswith("limit 1000"):
                name = f"{result.fleet}, {size:,}, in the worker: {result.quantity}"
                yield _at_most(name, result, most)


def _explanations(results: Sequence[Result]) -> Iterator[Verdict]:
    for result in _ours(results, "explain", _LARGE):
        most = _EXPLAIN_MAX.get(result.case)
        if most is not None:
            yield _at_most(f"explain, {_LARGE:,} hosts: {result.case}", result, most)


def _capacities(results: Sequence[Result]) -> Iterator[Verdict]:
    for result in _ours(results, "capacity", _LARGE):
        if result.fleet == "flat" and result.case == "50 flavors":
            yield _at_most(f"capacity, {_LARGE:,} hosts: {result.case}", result, 60.0)


def _places(results: Sequence[Result]) -> Iterator[Verdict]:
    for result in _ours(results, PLACE_SCENARIO, _MEDIUM):
        name = f"place, {_MEDIUM:,} hosts: {result.name}"
        if result.quantity == TRIES:
            if "pack" in result.case:
                yield _at_most(name, result, 1.2)
        elif result.case == "one consumer, 1 client":
            yield _at_most(name, result, 3.0)
        elif result.case == "one consumer, 64 clients":
            yield _rate(name, result, 3000)
        elif result.case == f"{MANY} consumers, 16 clients":
            yield _rate(name, result, 10_000)


def _feeds(results: Sequence[Result]) -> Iterator[Verdict]:
    for result in _ours(results, FEED_SCENARIO, _LARGE):
        name = f"feed, {_LARGE:,} hosts: {result.name}"
        if result.name == WHOLE_FLEET:
            yield _at_most(name, result, 3000.0)
        elif result.name == SEEN and result.p99 is not None:
            measured = f"{result.p99:,.1f} ms"
            yield Verdict(f"{name}, p99", "≤ 150 ms", measured, result.p99 <= 150)
    for size in (_MEDIUM, _LARGE):
        for result in _ours(results, FEED_SCENARIO, size):
            if result.case == DRAIN:
                yield _at_most(f"feed, {size:,} hosts: {result.name}", result, 1000.0)


def _wide(results: Sequence[Result]) -> Iterator[Verdict]:
    fleet = f"{max(DEVICES)} devices a host"
    for result in results:
        if result.scenario == "engine" and result.fleet == fleet:
            name = f"{fleet}, {result.size:,} hosts, in the worker: {result.quantity}"
            if result.unit == "trees":
                least = min(LIMIT, result.size)
                yield _verdict(name, f"≥ {least:,} hosts", result, partial(operator.le, least))
            elif result.quantity.startswith(f"{max(GROUPS)} groups"):
                yield _at_most(name, result, 20.0)
            elif result.quantity.startswith("more memory"):
                yield _at_most(name, result, _MEMORY_MORE_MIB_MAX)


def _claims(results: Sequence[Result]) -> Iterator[Verdict]:
    for result in _ours(results, "claims", _SMALL):
        if result.case == "spread, 16 clients" and result.quantity == "claim loop":
            theirs = find(results, result.key, ORIGINAL)
            is_comparable = theirs is not None and theirs.rate and result.rate
            times = (
                result.rate / theirs.rate
                if is_comparable and theirs and theirs.rate and result.rate
                else None
            )
            measured = "" if times is None else f"{times:,.0f} × ({result.rate:,.0f} a second)"
            met = None if times is None else times >= 100
            yield Verdict("claim loop, 16 clients", "≥ 100 × Placement's rate", measured, met)
        if result.case.startswith("PUT allocations") and not result.case.endswith(" 1 client"):
            yield _rate(f"durable {result.case}", result, 2000)
        if result.case == "one hot provider, 64 clients" and result.quantity == "claim loop":
            measured = f"{result.conflicts} of {result.count + result.conflicts:,}"
            yield Verdict("one hot provider, 64 clients", "no 409", measured, result.conflicts == 0)
    claims = [
        result for result in results if result.server == BERTH and result.scenario == "claims"
    ]
    if claims:
        lost = sum(result.lost for result in claims)
        yield Verdict("all claims", "none lost, none doubled", f"{lost}", lost == 0)


def _other_writes(results: Sequence[Result]) -> Iterator[Verdict]:
    for scenario in ("churn", "reshape"):
        for result in _ours(results, scenario, _SMALL):
            yield _times(results, result, 20)


def _reads(results: Sequence[Result]) -> Iterator[Verdict]:
    for size in (_SMALL, _MEDIUM):
        for result in _ours(results, "reads", size):
            if result.case in SINGLE_READS:
                yield _times(results, result, _SINGLE_MIN)
                yield _times_cheaper(results, result, _SINGLE_PROCESSOR_MIN)
            elif size == _MEDIUM and result.case in LISTS:
                yield _times(results, result, _LIST_MIN)
    for result in _ours(results, "reads", _LARGE):
        if result.case.startswith("usages of a project") and "clients" not in result.case:
            yield _at_most(f"reads, {_LARGE:,} hosts: {result.case}", result, 1.0)


def _near_the_floor(results: Sequence[Result]) -> Iterator[Verdict]:
    """Reads of one provider, and candidates with a limit."""
    for result in results:
        is_candidates = result.scenario == "flat" and "no limit" not in result.case
        if result.server != BERTH or not (is_candidates or result.case in SINGLE_READS):
            continue
        for of, figure in _FIGURES:
            times = of_floor(results, result, figure)
            if times is not None:
                name = f"{result.scenario}, {result.size:,}: {result.case}, {of}"
                target = f"≤ {_FLOORS_MAX:g} × the floor"
                yield Verdict(name, target, f"{times:.2f} ×", times <= _FLOORS_MAX)


def _polls(results: Sequence[Result]) -> Iterator[Verdict]:
    for result in results:
        if (result.scenario, result.server, result.unit) == ("hosts", BERTH, "%"):
            name = f"hosts, {result.fleet}, {result.size:,}: {result.name}"
            yield _at_most(name, result, _POLLS_MAX)


def _start_and_memory(results: Sequence[Result]) -> Iterator[Verdict]:
    for result in _ours(results, "start", _LARGE):
        yield _at_most(f"start to ready, {_LARGE:,} hosts, {result.case}", result, 3000.0)
    for size, most in ((_LARGE, 300.0), (_HUGE, 1536.0)):
        for result in _ours(results, "memory", size):
            if result.quantity.startswith("PSS"):
                yield _at_most(f"memory, {size:,} hosts, {result.name}", result, most)


def _coherence(results: Sequence[Result]) -> Iterator[Verdict]:
    for result in results:
        if result.scenario == "coherence" and result.quantity.startswith("cost"):
            yield _at_most(f"{result.fleet}, {result.size:,}: {result.name}", result, 0.3)
        elif result.scenario == "coherence" and result.quantity.startswith("first"):
            name = f"{result.fleet}, {result.size:,}: a write seen by the next read elsewhere"
            measured = f"all but {result.lost} of {result.count:,}"
            yield Verdict(name, "always", measured, result.lost == 0)


def _growth(growths: Sequence[Growth]) -> Iterator[Verdict]:
    for growth in growths:
        most = _EXPONENT_MAX if growth.against == "hosts" else _LINEAR_EXPONENT_MAX
        target = f"exponent ≤ {most} against {growth.against}"
        yield Verdict(growth.name, target, f"{growth.exponent:.2f}", growth.exponent <= most)


def _ours(results: Sequence[Result], scenario: str, size: int) -> list[Result]:
    return [
        result
        for result in results
        if result.server == BERTH and result.scenario == scenario and result.size == size
    ]


def _times(results: Sequence[Result], result: Result, least: int) -> Verdict:
    times = times_faster(results, result.key)
    name = f"{result.scenario}, {result.size:,}: {result.name}"
    measured = "" if times is None else f"{times:,.0f} ×"
    met = None if times is None else times >= least
    return Verdict(name, f"≥ {least} × Placement", measured, met)


def _times_cheaper(results: Sequence[Result], result: Result, least: int) -> Verdict:
    times = times_cheaper(results, result.key)
    name = f"{result.scenario}, {result.size:,}: {result.name}, CPU time"
    measured = "" if times is None else f"{times:,.0f} ×"
    met = None if times is None else times >= least
    return Verdict(name, f"≥ {least} × Placement", measured, met)


def _rate(name: str, result: Result, least: int) -> Verdict:
    measured = "" if result.rate is None else f"{result.rate:,.0f} a second"
    met = None if result.rate is None else result.rate >= least
    return Verdict(name, f"≥ {least:,} a second", measured, met)


def _at_most(name: str, result: Result, most: float) -> Verdict:
    return _verdict(name, f"≤ {most:,g} {result.unit}", result, partial(operator.ge, most))


def _verdict(name: str, target: str, result: Result, is_met: Callable[[float], bool]) -> Verdict:
    if result.median is None:
        return Verdict(name, target, result.error or "", None)
    return Verdict(name, target, f"{result.median:,.2f} {result.unit}", is_met(result.median))
