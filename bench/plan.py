# SPDX-License-Identifier: Apache-2.0
"""Which fleets are made, and what is measured on each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from bench import fleet
from bench.case import AloneCase, Case, Stage
from bench.churn import churn_cases
from bench.claims import claim_cases, crowded_cases
from bench.coherence import coherence_case
from bench.engine import Question, engine_case
from bench.flat import EVERY_HOST, FILTERED, LIMITS, flat_cases, limit_name
from bench.hosts import hosts_cases
from bench.memory import memory_case, warm_case
from bench.nested import NESTED, nested_cases
from bench.reads import full_read_cases, read_cases
from bench.reshape import reshape_cases
from bench.sharing import sharing_cases
from bench.start import start_case
from bench.wide import DEVICES, LIMIT, POLICIES, wide_cases, wide_query
from berth.candidates import SearchSettings

SCENARIOS: Final = (
    *("flat", "nested", "sharing", "wide", "claims", "reads", "churn", "reshape"),
    *("hosts", "start", "memory", "coherence", "engine"),
)

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES: Final = (1_000,)

#: From here on a fleet is loaded in bulk, and berth is alone.
BULK_FROM: Final = 100_000
#: Of trees and racks the API takes too long earlier: seven providers to a tree.
_NESTED_BULK_FROM: Final = 10_000
#: From here on only the engine, the start and the memory are measured.
HUGE_FROM: Final = 1_000_000

_ALLOCATIONS: Final = 1_000_000
_CROWD: Final = 100_000
_WIDE_HOSTS: Final = 10
_WIDE_HOSTS_BULK: Final = 1_000
_GROUPS_MAX: Final = 16


def stages(sizes: Sequence[int], scenarios: Collection[str], *, workers: int) -> list[Stage]:
    """The stages of a run, those left out of which nothing is wanted."""
    planned = [stage for size in sizes for stage in _stages_of(size, workers)]
    planned += _wide_stages(sizes)
    return [wanted for stage in planned if (wanted := _only(stage, scenarios)) is not None]


def _stages_of(size: int, workers: int) -> Iterator[Stage]:
    """The stages whose fleets have so many hosts or trees."""
    # A million candidates in one answer are nothing that anybody should ask for.
    limits = [limit for limit in LIMITS if limit is not None or size < HUGE_FROM]
    queries = {"a ninth matches": FILTERED, "all match": EVERY_HOST}
    flat_engine = engine_case("flat", _questions(queries, limits))
    memory = [memory_case("after the load")]
    if size >= HUGE_FROM:
        alone = [flat_engine, start_case("no allocations", workers=1)]
        cases = [*memory, warm_case()]
        yield Stage(fleet.flat(size), cases, alone, in_bulk=True, workers_count=1)
        return
    if size >= BULK_FROM:
        full = fleet.full_flat(size, allocations_count=_ALLOCATIONS, crowd=_CROWD)
        started = start_case(f"{_ALLOCATIONS:,} allocations", workers=workers)
        cases = [*memory, *flat_cases(), *full_read_cases(), *crowded_cases()]
        cases += [*_loops(size), warm_case()]
        yield Stage(full, cases, [flat_engine, started, coherence_case()], in_bulk=True)
    else:
        cases = [*memory, *flat_cases()]
        if size == min(SIZES):
            cases += [*read_cases(), *churn_cases(), *claim_cases(size), *reshape_cases()]
        yield Stage(fleet.flat(size), [*cases, warm_case()], [flat_engine, coherence_case()])
        if size == min(SIZES):
            yield Stage(fleet.flat(size), hosts_cases())
    in_bulk = size >= _NESTED_BULK_FROM
    nested_engine = engine_case("nested", _questions({"three groups": NESTED}))
    yield Stage(fleet.nested(size), nested_cases(), [nested_engine], in_bulk=in_bulk)
    yield Stage(fleet.sharing(size), sharing_cases(), in_bulk=in_bulk)


def _loops(size: int) -> list[Case]:
    """Of the claims, those that tell whether a large fleet makes them slower."""
    wanted = ("spread, 16 clients", "one hot provider, 64 clients", "PUT allocations, 16 clients")
    return [replace(case, for_peer=False) for case in claim_cases(size) if case.name in wanted]


def _wide_stages(sizes: Sequence[int]) -> Iterator[Stage]:
    for devices in DEVICES:
        yield Stage(fleet.wide(_WIDE_HOSTS, devices), wide_cases())
    if max(sizes) >= BULK_FROM:
        engine = engine_case("wide", _wide_questions())
        yield Stage(fleet.wide(_WIDE_HOSTS_BULK, max(DEVICES)), wide_cases(), [engine], True)


def _questions(
    queries: Mapping[str, str], limits: Sequence[int | None] = LIMITS
) -> dict[str, Question]:
    """Each query at each limit."""
    return {
        f"{name}, {limit_name(limit)}": Question(query, limit)
        for name, query in queries.items()
        for limit in limits
    }


def _wide_questions() -> dict[str, Question]:
    """The widest request, by either policy; and breadth first, where trees are counted."""
    breadth = SearchSettings(strategy="breadth-first")
    return {
        f"{_GROUPS_MAX} groups, {policy}{name}": Question(
            wide_query(_GROUPS_MAX, policy), LIMIT, settings, counts_trees=bool(name)
        )
        for policy in POLICIES
        for name, settings in (("", SearchSettings()), (", breadth first", breadth))
    }


def _only(stage: Stage, scenarios: Collection[str]) -> Stage | None:
    """The stage with what belongs to some scenarios; None if that is nothing."""
    cases: list[Case] = [case for case in stage.cases if case.scenario in scenarios]
    alone: list[AloneCase] = [case for case in stage.alone if case.scenario in scenarios]
    # Without a case on running servers nobody needs the original, nor the way through the API.
    in_bulk = stage.in_bulk or not cases
    return replace(stage, cases=cases, alone=alone, in_bulk=in_bulk) if cases or alone else None
