# SPDX-License-Identifier: Apache-2.0
"""What berth is held to, and whether the results of a run meet it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from bench.growth import Growth
from bench.results import BERTH, ORIGINAL, Result, find, times_faster
from bench.wide import DEVICES, GROUPS, LIMIT

_SMALL, _LARGE, _HUGE = 1_000, 100_000, 1_000_000

#: Well below linear, where there is a limit; and linear, but for noise, where there is none.
_EXPONENT_MAX: Final = 0.5
_LINEAR_EXPONENT_MAX: Final = 1.15

_MEMORY_MORE_MIB_MAX: Final = 64


class Verdict(NamedTuple):
    """One target and what was measured; `is_met` is None where nothing was."""

    case: str
    target: str
    measured: str
    is_met: bool | None


def verdicts(results: Sequence[Result], growths: Sequence[Growth]) -> list[Verdict]:
    """Every target, in the order in which the reader knows them."""
    return [
        *_beside_the_original(results),
        *_large_fleets(results),
        *_wide(results),
        *_claims(results),
        *_other_writes(results),
        *_start_and_memory(results),
        *_coherence(results),
        *_growth(growths),
    ]


def _beside_the_original(results: Sequence[Result]) -> Iterator[Verdict]:
    for scenario in ("flat", "sharing", "nested"):
        for one in _ours(results, scenario, _SMALL):
            if "clients" not in one.case:
                yield _times(results, one, 100 if one.case.endswith("limit 10") else 150)


def _large_fleets(results: Sequence[Result]) -> Iterator[Verdict]:
    for one in _ours(results, "flat", _LARGE):
        if one.case.endswith("limit 10"):
            yield _at_most(f"flat, {_LARGE:,} hosts: {one.case}", one, 1.5)
        elif "clients" in one.case:
            yield _rate(f"flat, {_LARGE:,} hosts: {one.case}", one, 3000)
    for size, most in ((_LARGE, 10.0), (_HUGE, 50.0)):
        for one in _ours(results, "engine", size):
            if one.what.endswith("limit 1000"):
                name = f"{one.fleet}, {size:,}, in the worker: {one.what}"
                yield _at_most(name, one, most)


def _wide(results: Sequence[Result]) -> Iterator[Verdict]:
    fleet = f"{max(DEVICES)} devices a host"
    for one in results:
        if one.scenario == "engine" and one.fleet == fleet:
            name = f"{fleet}, {one.size:,} hosts, in the worker: {one.what}"
            if one.unit == "trees":
                least = min(LIMIT, one.size)
                yield _verdict(name, f"≥ {least:,} hosts", one, partial(operator.le, least))
            elif one.what.startswith(f"{max(GROUPS)} groups"):
                yield _at_most(name, one, 20.0)
            elif one.what.startswith("more memory"):
                yield _at_most(name, one, _MEMORY_MORE_MIB_MAX)


def _claims(results: Sequence[Result]) -> Iterator[Verdict]:
    for one in _ours(results, "claims", _SMALL):
        if one.case == "spread, 16 clients" and one.what == "claim loop":
            theirs = find(results, one.key, ORIGINAL)
            known = theirs is not None and theirs.rate and one.rate
            times = (
                one.rate / theirs.rate if known and theirs and theirs.rate and one.rate else None
            )
            measured = "" if times is None else f"{times:,.0f} × ({one.rate:,.0f} a second)"
            met = None if times is None else times >= 100
            yield Verdict("claim loop, 16 clients", "≥ 100 × the original's rate", measured, met)
        if one.case.startswith("PUT allocations") and not one.case.endswith(" 1 client"):
            yield _rate(f"durable {one.case}", one, 2000)
        if one.case == "one hot provider, 64 clients" and one.what == "claim loop":
            measured = f"{one.conflicts} of {one.count + one.conflicts:,}"
            yield Verdict("one hot provider, 64 clients", "no 409", measured, one.conflicts == 0)
    claims = [one for one in results if one.server == BERTH and one.scenario == "claims"]
    if claims:
        lost = sum(one.lost for one in claims)
        yield Verdict("all claims", "none lost, none doubled", f"{lost}", lost == 0)


def _other_writes(results: Sequence[Result]) -> Iterator[Verdict]:
    for scenario in ("churn", "reshape"):
        for one in _ours(results, scenario, _SMALL):
            yield _times(results, one, 20)


def _start_and_memory(results: Sequence[Result]) -> Iterator[Verdict]:
    for one in _ours(results, "start", _LARGE):
        yield _at_most(f"start to ready, {_LARGE:,} hosts, {one.case}", one, 5000.0)
    for size, most in ((_LARGE, 300.0), (_HUGE, 1536.0)):
        for one in _ours(results, "memory", size):
            if one.what.startswith("PSS"):
                yield _at_most(f"memory, {size:,} hosts, {one.name}", one, most)


def _coherence(results: Sequence[Result]) -> Iterator[Verdict]:
    for one in results:
        if one.scenario == "coherence" and one.what.startswith("cost"):
            yield _at_most(f"{one.fleet}, {one.size:,}: {one.name}", one, 0.3)
        elif one.scenario == "coherence" and one.what.startswith("first"):
            name = f"{one.fleet}, {one.size:,}: a write seen by the next read elsewhere"
            measured = f"all but {one.lost} of {one.count:,}"
            yield Verdict(name, "always", measured, one.lost == 0)


def _growth(growths: Sequence[Growth]) -> Iterator[Verdict]:
    for one in growths:
        most = _EXPONENT_MAX if one.against == "hosts" else _LINEAR_EXPONENT_MAX
        target = f"exponent ≤ {most} against {one.against}"
        yield Verdict(one.name, target, f"{one.exponent:.2f}", one.exponent <= most)


def _ours(results: Sequence[Result], scenario: str, size: int) -> list[Result]:
    return [
        one
        for one in results
        if one.server == BERTH and one.scenario == scenario and one.size == size
    ]


def _times(results: Sequence[Result], one: Result, least: int) -> Verdict:
    times = times_faster(results, one.key)
    name = f"{one.scenario}, {one.size:,}: {one.name}"
    measured = "" if times is None else f"{times:,.0f} ×"
    met = None if times is None else times >= least
    return Verdict(name, f"≥ {least} × the original", measured, met)


def _rate(name: str, one: Result, least: int) -> Verdict:
    measured = "" if one.rate is None else f"{one.rate:,.0f} a second"
    met = None if one.rate is None else one.rate >= least
    return Verdict(name, f"≥ {least:,} a second", measured, met)


def _at_most(name: str, one: Result, most: float) -> Verdict:
    return _verdict(name, f"≤ {most:,g} {one.unit}", one, partial(operator.ge, most))


def _verdict(name: str, target: str, one: Result, is_met: Callable[[float], bool]) -> Verdict:
    if one.median is None:
        return Verdict(name, target, one.error or "", None)
    return Verdict(name, target, f"{one.median:,.2f} {one.unit}", is_met(one.median))
