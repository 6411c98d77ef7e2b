# SPDX-License-Identifier: Apache-2.0
"""A drain comes, changes and goes while one index lives: what it changes is what brute force says,
and nothing of it stays. A fleet without drains pays nothing for them.

`BERTH_SEED` repeats a run, `BERTH_EFFORT=10` draws ten times as many worlds.

Source: spec/beyond.md 2.3 and 7.1.
"""

from __future__ import annotations

import gc
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Final

from hypothesis import given, note, seed, settings
from hypothesis import strategies as st

from berth.index import Index
from berth.model.drain import DrainName
from berth.store.drains import delete_drain
from berth.store.engine.database import Database
from tests.answers import Answer
from tests.brute_force import Candidate, answer
from tests.brute_question import Request, find, fitting
from tests.candidates.engine import ask, ask_raw, copy_of, only
from tests.candidates.question_strategies import (
    Dice,
    fleet,
    query,
    request,
    seeded,
    tolerant,
    with_flavors,
)
from tests.candidates.test_questions_against_brute_force import check, tell
from tests.candidates.wire_questions import search_candidates, search_hosts
from tests.effort import SEED, scaled
from tests.index.checking import checked
from tests.queries import Query, parse_query, query_text
from tests.world_in_store import build_in_store, drain
from tests.worlds import World, world

#: No drain of a drawn world.
PASSING: Final = "passing"


@dataclass(frozen=True, slots=True)
class Case:
    """A world, which may have other drains, with questions, and what a drain names in turn."""

    fleet: World
    requests: Sequence[Request]
    queries: Sequence[Query]
    drained: Sequence[World]


def cases() -> st.SearchStrategy[Case]:
    """Drains of hosts, of devices and of pools, of one and of most providers; some are only
    announced for a while."""

    def make(dice: Dice) -> Case:
        drawn = fleet(dice)
        requests = [tolerant(dice, drawn, request(dice, drawn)) for _ in range(4)]
        if dice.sometimes():
            requests[0] = {**requests[0], "tolerate": [PASSING]}
        drawn, requests = with_flavors(dice, drawn, requests)
        drained = [with_passing(dice, drawn) for _ in range(dice.number(1, 3))]
        return Case(drawn, requests, [query(dice, drawn) for _ in range(3)], drained)

    return seeded(make)


def with_passing(dice: Dice, before: World) -> World:
    """The world with the drain."""
    several = dice.number(1, 3) if dice.half() else len(before.providers)
    named = {each.name for each in dice.some(before.providers, 1, several)}
    return replace(
        before,
        providers=tuple(
            replace(each, drains=each.drains | {PASSING}) if each.name in named else each
            for each in before.providers
        ),
        announced=before.announced | {PASSING} if dice.seldom() else before.announced,
    )


@seed(SEED)
@settings(max_examples=scaled(25))
@given(cases())
def test_a_drain_changes_what_brute_force_says_and_leaves_no_trace(
    scratch: Database, case: Case
) -> None:
    """Candidates of the old route, those of questions, and the hosts that fit, are equal before the
    drain and after it."""
    with only(case.fleet, scratch) as index:
        before = asked(index, case.fleet, case)
        for drained in case.drained:
            named = drained.drains[PASSING]
            drain(scratch, PASSING, named, announced=PASSING in drained.announced)
            asked(index, drained, case)
        assert delete_drain(scratch, DrainName(PASSING))
        assert asked(index, case.fleet, case) == before
        assert checked(index) == []


def asked(
    index: Index, now: World, case: Case
) -> tuple[list[set[Candidate]], list[list[str]], list[Answer]]:
    """Ask everything, and check it against brute force."""
    tell(now)
    snapshot = index.snapshot()
    candidates, hosts, old = [], [], []
    for each in case.requests:
        note(json.dumps(each))
        found = search_candidates(snapshot, each)
        check(find(now, each), found)
        candidates.append({*found})
        hosts.append(search_hosts(snapshot, each))
        assert hosts[-1] == sorted(fitting(now, each))
    for each_query in case.queries:
        note(query_text(each_query))
        old.append(ask(snapshot, now, each_query, 39))
        assert old[-1] == answer(now, each_query, 39)
    return candidates, hosts, old


# --- An undrained fleet pays nothing

#: Trees of two shapes with several providers that could serve, and a pool.
FLEET: Final = world("""
    cn1       VCPU=8  @A
    cn2       VCPU=8  @A
    cells
      cell0   VCPU=8  DISK_GB=10
      cell1   VCPU=8  DISK_GB=10
    pool      DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
""")
QUERIES: Final = tuple(
    parse_query(text, 39)
    for text in (
        "resources=VCPU:1",
        "resources=VCPU:1,DISK_GB:1",
        "resources1=VCPU:1&resources2=VCPU:1&group_policy=isolate",
    )
)
ASKED: Final[Request] = {"groups": {"": {"resources": {"VCPU": 1, "DISK_GB": 1}}}}
STAGE: Final = "_by_drains"


@contextmanager
def undrained(prepared: Path) -> Iterator[tuple[Database, Index]]:
    """A database that contains only `FLEET`, and its index."""
    with copy_of(prepared) as db:
        build_in_store(FLEET, db)
        yield db, Index(db)


def work(index: Index) -> Counter[str]:
    """How often each function, of numpy and of builtins too, is called to answer all queries; what
    is kept between requests is there already."""
    snapshot = index.snapshot()
    calls: Counter[str] = Counter()

    def count(frame: FrameType, kind: str, function: object) -> None:
        if kind == "call":
            calls[frame.f_code.co_qualname] += 1
        elif kind == "c_call":
            calls[getattr(function, "__qualname__", "")] += 1

    def ask_all() -> None:
        for each in QUERIES:
            ask_raw(snapshot, each, 39)
        search_candidates(snapshot, ASKED)
        search_hosts(snapshot, ASKED)

    ask_all()
    # A collection calls what others have registered for it.
    gc.disable()
    sys.setprofile(count)
    try:
        ask_all()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


def masks(index: Index) -> int:
    """How many blocks have anything for drains."""
    blocks = [block for _, block in index.snapshot().occupied()]
    return sum(block.drain_sets is not None or block.drained is not None for block in blocks)


def test_a_fleet_without_drains_has_no_masks_and_no_stage_for_them(prepared: Path) -> None:
    """Not even of zeros."""
    with undrained(prepared) as (_, index):
        assert masks(index) == 0
        assert work(index)[STAGE] == 0


def test_a_drain_that_is_deleted_again_costs_nothing_any_more(prepared: Path) -> None:
    """The same calls as before, and no mask; meanwhile the stage runs for the block that the drain
    names, and for no other."""
    with undrained(prepared) as (db, index):
        before = work(index)
        drain(db, PASSING, ["cell0"])
        assert masks(index) == 1
        assert work(index)[STAGE] == len(QUERIES) + 2
        assert delete_drain(db, DrainName(PASSING))
        assert masks(index) == 0
        assert work(index) == before


def test_a_drain_that_is_only_announced_makes_no_mask(prepared: Path) -> None:
    """What it names is noted, and no search looks at that."""
    with undrained(prepared) as (db, index):
        before = work(index)
        drain(db, PASSING, ["cn1", "cell0", "pool"], announced=True)
        assert not index.snapshot().has_drained
        assert work(index) == before
