# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/place` gives candidates that plain loops find, valid together.

And it never says wrongly that something does not fit. Source: spec/beyond.md 5.3 and 5.4.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from hypothesis import given, note, seed, settings

from berth.config import Settings
from berth.edge.app import create_app
from berth.store.engine.database import Database
from tests.brute_capacity import Counted, TooManyStates
from tests.brute_place import (
    Limits,
    Placed,
    after,
    are_within_limits,
    fit_in_turn,
    fit_together,
    places,
)
from tests.brute_question import Request
from tests.brute_scenario import what_if
from tests.candidates.engine import only
from tests.candidates.question_strategies import (
    Dice,
    fleet,
    order,
    request,
    scenario,
    seeded,
)
from tests.candidates.strategies import CLASSES, TRAITS
from tests.candidates.test_questions_against_brute_force import tell
from tests.candidates.wire_questions import read_candidate
from tests.client import Client, Response
from tests.effort import SEED, scaled
from tests.worlds import SHARING_TRAIT, Stock, World, WorldProvider, consumer_uuid

PATH: Final = "/berth/v1/place"
#: Consumers of one call at most: plain loops try all selections.
COUNT_MAX: Final = 4

Body = dict[str, Any]
Asked = tuple[World, list[Body]]


def fleet_with_bodies(dice: Dice) -> Asked:
    """A world of any trees, with any requests."""
    world = fleet(dice)
    return world, [body(dice, request(dice, world), world) for _ in range(4)]


def flat_fleet_with_bodies(dice: Dice) -> Asked:
    """A world in which berth must always know: hosts that share nothing and serve a request in one
    way, and nested labels."""
    world = flat_fleet(dice)
    amounts = {name: dice.number(1, 3) for name in dice.some(("VCPU", "MEMORY_MB"), 1, 2)}
    asked = {"groups": {"": {"resources": amounts}}}
    return world, [body(dice, asked, world) for _ in range(4)]


def flat_fleet(dice: Dice) -> World:
    """Up to six hosts in racks, of which each is in one zone; some hosts are in none."""
    racks = {"R1": "z1", "R2": "z1", "R3": "z2"}
    hosts = [
        WorldProvider(
            f"h{number}",
            stocks={
                name: Stock(dice.number(1, 6), used=dice.number(0, 2))
                for name in ("VCPU", "MEMORY_MB")
            },
            aggregates=frozenset(dice.some([*racks], 0, 1)),
        )
        for number in range(dice.number(1, 6))
    ]
    labels = {rack: {"rack": rack, "zone": zone} for rack, zone in racks.items()}
    traits = frozenset((*TRAITS, SHARING_TRAIT))
    return World(tuple(hosts), extra_classes=frozenset(CLASSES), extra_traits=traits, labels=labels)


def body(dice: Dice, asked: Request, world: World) -> Body:
    """A body for new consumers, often with limits."""
    names = [f"c{number}" for number in range(dice.number(1, COUNT_MAX))]
    made: Body = {
        "request": asked,
        "consumers": [
            {
                "uuid": consumer_uuid(name),
                "project_id": "p",
                "user_id": "u",
                "consumer_type": "INSTANCE",
            }
            for name in names
        ],
        "order": {"seed": dice.number(0, 9), **order(dice, world, [])},
        "explain": False,
    }
    keys = sorted({key for labels in world.labels.values() for key in labels} - {"name"})
    if dice.half():
        made["max_per"] = {key: dice.number(1, 2) for key in dice.some(["host", *keys], 1, 3)}
    if dice.sometimes():
        made["within"] = dice.one(["host", *keys])
    if dice.sometimes():
        made["order"]["among"] = dice.number(1, 2)
    return made


@seed(SEED)
@settings(max_examples=scaled(40))
@given(seeded(fleet_with_bodies))
def test_places_are_what_plain_loops_allow(
    scratch: Database, configured: Settings, asked: Asked
) -> None:
    """Each is a candidate of the state before it; a refusal is true."""
    world, bodies = asked
    tell(world)
    with only(world, scratch) as index:
        client = Client.of(create_app(configured, scratch, index))
        for sent in bodies:
            note(json.dumps(sent))
            answered = client.post(f"{PATH}?dry_run=true", json=sent)
            _check(world, sent, answered)
        _check_claim(client, world, bodies[0])


@seed(SEED)
@settings(max_examples=scaled(40))
@given(seeded(flat_fleet_with_bodies))
def test_where_every_order_gets_equally_far_berth_always_knows(
    scratch: Database, configured: Settings, asked: Asked
) -> None:
    """Either all are placed, or it is proven that they cannot be, with the exact number."""
    world, bodies = asked
    tell(world)
    with only(world, scratch) as index:
        client = Client.of(create_app(configured, scratch, index))
        for sent in bodies:
            note(json.dumps(sent))
            answered = client.post(f"{PATH}?dry_run=true", json=sent)
            _check(world, sent, answered)
            if answered.status == 409:
                (error,) = answered.json["errors"]
                assert error["code"] == "berth.place.does_not_fit"
                limits, most = _limits(sent), error["at_most"]
                assert fit_together(world, limits, most, places(world, sent["request"])) is not None


@seed(SEED)
@settings(max_examples=scaled(15))
@given(seeded(fleet_with_bodies), seeded(lambda dice: dice))
def test_a_dry_run_may_assume_something(
    scratch: Database, configured: Settings, asked: Asked, dice: Dice
) -> None:
    """The answer is that of the world with the assumed changes."""
    world, bodies = asked
    tell(world)
    with only(world, scratch) as index:
        client = Client.of(create_app(configured, scratch, index))
        for sent in bodies:
            assumed = scenario(dice, world)
            note(json.dumps({**sent, "what_if": assumed}))
            imagined = what_if(world, assumed)
            answered = client.post(f"{PATH}?dry_run=true", json={**sent, "what_if": assumed})
            if answered.status == 200:
                # Copies have the uuids of the service's choice.
                hosts = {each["host"] for each in answered.json["placements"].values()}
                if hosts <= imagined.names.keys():
                    _check(imagined, sent, answered)
            else:
                _check(imagined, sent, answered)


def _limits(sent: Body) -> Limits:
    return Limits(sent.get("max_per", {}), sent.get("within"))


def _check(world: World, sent: Body, answered: Response) -> None:
    """An answer, or a refusal, against plain loops."""
    asked, limits, count = sent["request"], _limits(sent), len(sent["consumers"])
    if answered.status == 200:
        placed = _read(world, answered.json)
        assert [*answered.json["placements"]] == [each["uuid"] for each in sent["consumers"]]
        for number, each in enumerate(placed):
            assert each in places(after(world, placed[:number]), asked)
        assert are_within_limits(world, limits, placed)
        return
    (error,) = answered.json["errors"]
    counted = Counted(world, asked)
    if not any(group.get("resources") for group in asked["groups"].values()):
        assert answered.status == 400
        assert error["pointer"] == "/request"
        return
    candidates = places(world, asked)
    if error["code"] == "berth.place.undecided":
        assert count > 1 and candidates
        if _is_known(counted, limits):
            assert fit_together(world, limits, count, candidates) is not None
        return
    assert error["code"] == "berth.place.does_not_fit", answered.text
    if error["at_most"] == 0:
        assert not candidates
        return
    assert error["at_most"] < count
    more = error["at_most"] + 1
    if not counted.has_splits:
        assert fit_together(world, limits, more, candidates) is None
        return
    try:
        assert not fit_in_turn(world, asked, limits, more)
    except TooManyStates:
        note("too many states")


def _is_known(counted: Counted, limits: Limits) -> bool:
    """Whether berth must know that something does not fit, even where it may miss that it does:
    hosts that share nothing and serve a request in ways of a simple structure (4.1)."""
    return (
        limits.within in (None, "host")
        and limits.max_per.keys() <= {"host"}
        and not counted.has_pools()
        and all(map(counted.is_simple, counted.roots))
    )


def _read(world: World, answer: Any) -> Sequence[Placed]:
    return [
        Placed(read_candidate(each, world), world.names[each["host"]])
        for each in answer["placements"].values()
    ]


def _check_claim(client: Client, world: World, sent: Body) -> None:
    """A dry run answers what the call does, and the consumers then hold it."""
    dry, real = (client.post(f"{PATH}{query}", json=sent) for query in ("?dry_run=true", ""))
    assert dry.status == real.status
    if real.status != 200:
        (refusal,), (due) = real.json["errors"], dry.json["errors"][0]
        assert refusal["code"] == due["code"]
        return
    assert real.json == dry.json
    for uuid, placement in real.json["placements"].items():
        shown = client.get(f"/allocations/{uuid}").json["allocations"]
        held = {provider: {"resources": each["resources"]} for provider, each in shown.items()}
        assert held == placement["allocations"]
    again = client.post(PATH, json=sent).json
    assert again["repeated"]
    placements = real.json["placements"]
    for placement in placements.values():
        placement.pop("score", None)
    assert again["placements"] == placements


@seed(SEED)
@settings(max_examples=scaled(30))
@given(seeded(fleet_with_bodies))
def test_a_single_consumer_gets_the_first_candidate(
    scratch: Database, configured: Settings, asked: Asked
) -> None:
    """The one that `POST /candidates` shows first for the same order."""
    world, bodies = asked
    tell(world)
    with only(world, scratch) as index:
        client = Client.of(create_app(configured, scratch, index))
        for sent in bodies:
            order = {"by": "spread", "among": 512, **sent["order"]}
            single = {**sent, "consumers": sent["consumers"][:1], "order": order}
            note(json.dumps(single))
            answered = client.post(f"{PATH}?dry_run=true", json=single)
            question = {"request": sent["request"], "order": order, "limit": 1}
            first = client.post("/berth/v1/candidates", json=question).json["candidates"]
            if answered.status != 200:
                assert answered.status == 400 or not first
                continue
            (placement,) = answered.json["placements"].values()
            del placement["consumer_generation"]
            scored = order["by"] != "any" or bool(order.get("prefer"))
            if scored:
                assert [each["score"]["total"] for each in first] == [placement["score"]["total"]]
                assert [each["host"] for each in first] == [placement["host"]]
