# SPDX-License-Identifier: Apache-2.0
"""`PUT /berth/v1/drains/{name}` says what plain loops find; what it changes is what brute force
says, and nothing of it stays.

Source: spec/beyond.md 2.3 and 7.1.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from hypothesis import given, note, seed, settings

from tests.brute_capacity import Counted
from tests.brute_force import answer
from tests.brute_question import Request, answers, fitting, lineage, root_of
from tests.candidates.engine import ALL, Stand, Standing
from tests.candidates.strategies import (
    Body,
    Dice,
    fleet,
    host_conditions,
    query,
    request,
    seeded,
    tolerant,
)
from tests.candidates.test_questions_against_brute_force import check
from tests.effort import SEED, scaled
from tests.index.checking import checked
from tests.queries import Query, query_text
from tests.worlds import World, provider_uuid

#: No drain of a drawn world.
PATH: Final = "/berth/v1/drains/new"

Asked = tuple[World, list[Body], list[Request], list[Query]]


def fleet_with_drains(dice: Dice) -> Asked:
    """A world, perhaps with drains, a flavor that is counted, bodies for one more drain, and
    questions, of which one may tolerate it."""
    flavor = {"groups": {"": {"resources": {dice.one(("VCPU", "DISK_GB")): dice.number(1, 2)}}}}
    world = replace(fleet(dice), flavors={"counted": flavor})
    requests = [tolerant(dice, world, request(dice, world)) for _ in range(3)]
    if dice.sometimes():
        requests[0] = {**requests[0], "tolerate": ["new"]}
    bodies = [drain_body(dice, world) for _ in range(3)]
    return world, bodies, requests, [query(dice, world) for _ in range(3)]


def drain_body(dice: Dice, world: World) -> Body:
    """Providers, conditions on hosts, or both."""
    names = [each.name for each in world.providers]
    sent: Body = {"effect": dice.one(("exclude", "exclude", "none"))}
    select = host_conditions(dice, world)
    if select and dice.half():
        sent["select"] = select
    if "select" not in sent or dice.half():
        some = dice.some(names, 1, dice.one((3, len(names))))
        sent["providers"] = [provider_uuid(each) if dice.half() else each for each in some]
    return sent


def named_by(world: World, sent: Body) -> set[str]:
    """The providers that a body names: drained hosts are selected, too."""
    named = {world.names.get(each, each) for each in sent.get("providers", ())}
    if "select" in sent:
        named |= fitting(world, {"groups": {}, "host": sent["select"], "tolerate": "*"})
    return named


@seed(SEED)
@settings(max_examples=scaled(35))
@given(seeded(fleet_with_drains))
def test_a_drain_says_what_plain_loops_find_and_leaves_no_trace(stand: Stand, asked: Asked) -> None:
    """Hosts, providers, consumers and capacities, the same for a dry run; what is on each host; and
    the drain names what was selected. Candidates of both routes are those of the drained world, and
    when the drain is deleted those of before."""
    world, bodies, requests, queries = asked
    standing = stand(world)
    standing.note()
    client = standing.client
    stored = {"request": world.flavors["counted"], "expose": True}
    assert client.put("/berth/v1/flavors/counted", json=stored).status in (200, 201)
    before = world
    _ask(standing, world, requests, queries)
    for sent in bodies:
        note(json.dumps(sent))
        named = named_by(world, sent)
        after = drained(world, named, announced=sent["effect"] == "none")
        dry = client.put(f"{PATH}?dry_run=true", json=sent)
        answered = client.put(PATH, json=sent)
        if answered.status == 400:
            # Unlike a question, a write names what exists.
            assert (dry.status, dry.code) == (400, answered.code)
            assert answered.code == "berth.name.unknown"
            field, _, place = answered.json["errors"][0]["pointer"][1:].partition("/")
            # A name that is the uuid of nobody is taken for a uuid.
            assert field == "select" or UUID(sent["providers"][int(place)])
            continue
        assert answered.status in (200, 201), answered.text
        _check(world, named, answered.json)
        assert _without_author(dry.json) == _without_author(answered.json)
        # That it is only announced does not matter for what it would cost.
        _check_capacity(before, drained(world, named, announced=False), answered.json)
        shown = client.get(PATH).json
        assert sorted(each["name"] for each in shown["named"]) == sorted(named)
        assert {each["host"]["name"]: each["consumers"] for each in shown["left"]} == _due_left(
            world, named
        )
        _ask(standing, after, requests, queries)
        before = after
    client.delete(PATH)
    _ask(standing, world, requests, queries)
    assert checked(standing.index) == []


def drained(world: World, named: set[str], *, announced: bool) -> World:
    """The world with the drain."""
    providers = (
        replace(each, drains=each.drains | {"new"}) if each.name in named else each
        for each in world.providers
    )
    effective = world.announced | {"new"} if announced else world.announced
    return replace(world, providers=tuple(providers), announced=effective)


def _ask(standing: Standing, now: World, requests: list[Request], queries: list[Query]) -> None:
    for sent in requests:
        note(json.dumps(sent))
        candidates = standing.ask("candidates", request=sent, limit=ALL)["candidates"]
        check(answers(now, sent)[1], [*map(standing.read, candidates)])
        explained = standing.ask("explain", request=sent, relaxations=False, nearest_max=0)
        assert explained["hosts"]["fit"] == len(fitting(now, sent))
    for each in queries:
        note(query_text(each))
        assert standing.queried(query_text(each)) == answer(now, each, 39)


def _check(world: World, named: set[str], answer: Any) -> None:
    below = [each for each in world.providers if named & set(lineage(world, each.name))]
    assert answer["hosts"] == len({root_of(world, name) for name in named})
    assert answer["providers"] == len(below)
    # Each provider that is used has a consumer of its own.
    assert answer["consumers"] == sum(bool(each.used) for each in below)


def _check_capacity(before: World, after: World, answer: Any) -> None:
    assert answer["complete"]
    counts = answer["capacity"]["counted"]
    for state, world in (("now", before), ("then", after)):
        counted = Counted(world, world.flavors["counted"])
        if counted.has_pools() or not all(map(counted.is_simple, counted.roots)):
            continue
        assert counts[state] == sum(map(counted.one, counted.roots)), state


def _without_author(answer: Any) -> Any:
    return {
        key: answer[key] for key in answer if key not in {"created_at", "created_by", "revision"}
    }


def _due_left(world: World, named: set[str]) -> dict[str, int]:
    """The hosts of the named providers, with the consumers on these and below them."""
    left = dict.fromkeys((root_of(world, name) for name in named), 0)
    for each in world.providers:
        if named & set(lineage(world, each.name)):
            left[root_of(world, each.name)] += bool(each.used)
    return left
