# SPDX-License-Identifier: Apache-2.0
"""`PUT /berth/v1/drains/{name}` says what plain loops find. Source: spec/beyond.md 7.1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from hypothesis import given, note, seed, settings

from berth.config import Settings
from berth.edge.app import create_app
from berth.store.engine.database import Database
from tests.brute_capacity import Counted
from tests.brute_question import fitting, lineage, root_of
from tests.candidates.engine import only
from tests.candidates.question_strategies import Dice, fleet, host_conditions, seeded
from tests.candidates.test_questions_against_brute_force import tell
from tests.client import Client
from tests.effort import SEED, scaled
from tests.worlds import World, provider_uuid

#: No drain of a drawn world.
PATH: Final = "/berth/v1/drains/new"

Body = Mapping[str, Any]
Asked = tuple[World, list[Body]]


def fleet_with_drains(dice: Dice) -> Asked:
    """A world, perhaps with drains, a flavor that is counted, and bodies for one more drain."""
    flavor = {"groups": {"": {"resources": {dice.one(("VCPU", "DISK_GB")): dice.number(1, 2)}}}}
    world = replace(fleet(dice), flavors={"counted": flavor})
    return world, [body(dice, world) for _ in range(4)]


def body(dice: Dice, world: World) -> Body:
    """Providers, conditions on hosts, or both."""
    names = [each.name for each in world.providers]
    sent: dict[str, Any] = {"effect": dice.one(("exclude", "exclude", "none"))}
    select = host_conditions(dice, world)
    if select and dice.half():
        sent["select"] = select
    if "select" not in sent or dice.half():
        some = dice.some(names, 1, 3)
        sent["providers"] = [provider_uuid(each) if dice.half() else each for each in some]
    return sent


def named_by(world: World, sent: Body) -> set[str]:
    """The providers that a body names: drained hosts are selected, too."""
    named = {world.names.get(each, each) for each in sent.get("providers", ())}
    if "select" in sent:
        named |= fitting(world, {"groups": {}, "host": sent["select"], "tolerate": "*"})
    return named


@seed(SEED)
@settings(max_examples=scaled(25))
@given(seeded(fleet_with_drains))
def test_a_drain_says_what_plain_loops_find(
    scratch: Database, configured: Settings, asked: Asked
) -> None:
    """Hosts, providers, consumers and capacities, the same for a dry run; what is on each host; and
    the drain names what was selected."""
    world, bodies = asked
    tell(world)
    with only(world, scratch) as index:
        client = Client.of(create_app(configured, scratch, index))
        stored = {"request": world.flavors["counted"], "expose": True}
        assert client.put("/berth/v1/flavors/counted", json=stored).status in (200, 201)
        before = world
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
                assert answered.json["errors"][0]["pointer"].startswith("/select/")
                continue
            assert answered.status in (200, 201), answered.text
            _check(world, named, answered.json)
            assert _without_author(dry.json) == _without_author(answered.json)
            # That it is only announced does not matter for what it would cost.
            _check_capacity(before, drained(world, named, announced=False), answered.json)
            shown = client.get(PATH).json
            assert sorted(each["name"] for each in shown["named"]) == sorted(named)
            assert _left(shown) == _due_left(world, named)
            before = after


def drained(world: World, named: set[str], *, announced: bool) -> World:
    """The world with the drain."""
    providers = (
        replace(each, drains=each.drains | {"new"}) if each.name in named else each
        for each in world.providers
    )
    effective = world.announced | {"new"} if announced else world.announced
    return replace(world, providers=tuple(providers), announced=effective)


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


def _left(shown: Any) -> dict[str, int]:
    return {each["host"]["name"]: each["consumers"] for each in shown["left"]}


def _due_left(world: World, named: set[str]) -> dict[str, int]:
    """The hosts of the named providers, with the consumers on these and below them."""
    left = dict.fromkeys((root_of(world, name) for name in named), 0)
    for each in world.providers:
        if named & set(lineage(world, each.name)):
            left[root_of(world, each.name)] += bool(each.used)
    return left
