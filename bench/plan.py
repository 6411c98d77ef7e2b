# SPDX-License-Identifier: Apache-2.0
"""The fleets, and the cases on each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from bench import fleet
from bench.capacity import capacity_cases, nested_capacity_cases
from bench.case import AloneCase, Case, Stage
from bench.churn import churn_cases
from bench.claims import claim_cases, crowded_cases
from bench.coherence import coherence_case
from bench.engine import Question, engine_case
from bench.explain import flat_explain_cases, nested_explain_cases
from bench.feed import FEED_SCENARIO, feed_cases, seen_case
from bench.flat import EVERY_HOST, FILTERED, LIMITS, flat_cases, limit_name
from bench.hosts import hosts_cases, poll_case, poll_cases, tree_poll_case
from bench.memory import memory_case, warm_case
from bench.nested import NESTED, nested_cases
from bench.orders import ORDERS_SCENARIO, flat_order_cases, nested_order_cases
from bench.place import PLACE_SCENARIO, place_cases
from bench.reads import read_cases
from bench.reshape import reshape_cases
from bench.sharing import sharing_cases
from bench.start import start_case
from bench.wide import DEVICES, LIMIT, POLICIES, wide_cases, wide_query
from berth.candidates import SearchSettings

SCENARIOS: Final = (
    *("flat", "nested", "sharing", "wide", "claims", "reads", "churn", "reshape"),
    *(
        "hosts",
        "start",
        "memory",
        "coherence",
        "engine",
        "explain",
        "capacity",
        ORDERS_SCENARIO,
        PLACE_SCENARIO,
        FEED_SCENARIO,
    ),
)

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES: Final = (1_000,)

#: From here on berth is alone.
ALONE_FROM: Final = 100_000
#: Trees and racks are too large for it earlier: seven providers to a tree.
_NESTED_ALONE_FROM: Final = 10_000
#: From here on only the engine, the start and the memory are measured.
HUGE_FROM: Final = 1_000_000

_ALLOCATIONS: Final = 1_000_000
_CROWD: Final = 100_000
#: Allocations for each host of a smaller fleet, which Placement is loaded with too.
_ALLOCATIONS_EACH: Final = 10
_WIDE_HOSTS: Final = 10
_WIDE_HOSTS_ALONE: Final = 1_000
_GROUPS_MAX: Final = 16


def stages(
    sizes: Sequence[int],
    scenarios: Collection[str],
    *,
    workers: int,
    names: Collection[str] = (),
) -> list[Stage]:
    """The stages of a run, without those that have no selected case.

    Args:
        workers: worker processes of each server.
        names: parts of the names of cases; none: all cases.
    """

    def is_selected(case: Case | AloneCase) -> bool:
        is_named = not names or any(name in case.name for name in names)
        return is_named and case.scenario in scenarios

    planned = [stage for size in sizes for stage in _stages_of(size, workers)]
    planned += _wide_stages(sizes)
    return [wanted for stage in planned if (wanted := _only(stage, is_selected)) is not None]


def _stages_of(size: int, workers: int) -> Iterator[Stage]:
    """The stages for one number of hosts or trees."""
    # A million candidates in one answer are nothing that anybody should ask for.
    limits = [limit for limit in LIMITS if limit is not None or size < HUGE_FROM]
    queries = {"a ninth matches": FILTERED, "all match": EVERY_HOST}
    flat_engine = engine_case("flat", _questions(queries, limits))
    memory = [memory_case("after the load")]
    if size >= HUGE_FROM:
        alone = [flat_engine, start_case("no allocations", workers=1)]
        cases = [*memory, warm_case()]
        yield Stage(fleet.flat(size), cases, alone, for_peer=False, workers_count=1)
        return
    if size >= ALONE_FROM:
        full, reads = _in_use(size, _ALLOCATIONS, _CROWD)
        started = start_case(f"{_ALLOCATIONS:,} allocations", workers=workers)
        cases = [
            *memory,
            *flat_cases(),
            *flat_order_cases(),
            *flat_explain_cases(),
            *capacity_cases(),
            *reads,
            *crowded_cases(),
        ]
        cases += [*_loops(size), *feed_cases(size), warm_case()]
        alone = [flat_engine, started, coherence_case(), seen_case()]
        yield Stage(full, cases, alone, for_peer=False)
    else:
        cases = [*memory, *flat_cases(), *flat_order_cases(), *flat_explain_cases()]
        cases += capacity_cases()
        if size == min(SIZES):
            cases += [*churn_cases(), *claim_cases(size), *reshape_cases()]
        yield Stage(fleet.flat(size), [*cases, warm_case()], [flat_engine, coherence_case()])
        if size == min(SIZES):
            yield Stage(fleet.flat(size), hosts_cases())
        yield Stage(fleet.flat(size), place_cases())
        yield Stage(fleet.flat(size), feed_cases(size), [seen_case()], for_peer=False)
        full, reads = _in_use(size, size * _ALLOCATIONS_EACH, size)
        yield Stage(full, reads)
    for_peer = size < _NESTED_ALONE_FROM
    nested_engine = engine_case("nested", _questions({"three groups": NESTED}))
    cases = [
        *nested_cases(),
        *nested_order_cases(),
        *nested_explain_cases(),
        *nested_capacity_cases(),
        poll_case("a host of seven providers", size),
        tree_poll_case("a host of seven providers", size),
    ]
    yield Stage(fleet.nested(size), cases, [nested_engine], for_peer=for_peer)
    yield Stage(fleet.sharing(size), sharing_cases(), for_peer=for_peer)


def _in_use(size: int, allocations_count: int, crowd: int) -> tuple[fleet.Fleet, list[Case]]:
    """A flat fleet with allocations, and the reads of it."""
    full = fleet.full_flat(size, allocations_count=allocations_count, crowd=crowd)
    reads = read_cases(size, allocations_count=allocations_count, crowd=crowd)
    return full, [*reads, *poll_cases(size)]


def _loops(size: int) -> list[Case]:
    """The claims cases that show whether a large fleet makes claims slower."""
    wanted = ("spread, 16 clients", "one hot provider, 64 clients", "PUT allocations, 16 clients")
    return [replace(case, for_peer=False) for case in claim_cases(size) if case.name in wanted]


def _wide_stages(sizes: Sequence[int]) -> Iterator[Stage]:
    for devices in DEVICES:
        yield Stage(fleet.wide(_WIDE_HOSTS, devices), wide_cases())
    if max(sizes) >= ALONE_FROM:
        engine = engine_case("wide", _wide_questions())
        yield Stage(
            fleet.wide(_WIDE_HOSTS_ALONE, max(DEVICES)), wide_cases(), [engine], for_peer=False
        )


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


def _only(stage: Stage, is_selected: Callable[[Case | AloneCase], bool]) -> Stage | None:
    """The stage with only the selected cases; None if it has none."""
    cases = [case for case in stage.cases if is_selected(case)]
    alone = [case for case in stage.alone if is_selected(case)]
    return replace(stage, cases=cases, alone=alone) if cases or alone else None
