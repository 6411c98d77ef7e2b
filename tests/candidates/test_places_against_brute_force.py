# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/place` gives candidates that plain loops find, valid together.

And it never says wrongly that something does not fit. Source: spec/beyond.md 5.3 and 5.4.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given, note, seed, settings

from tests.brute_capacity import Counted, TooManyStates
from tests.brute_place import (
    Limits,
    after,
    are_within_limits,
    fit_in_turn,
    fit_together,
    places,
)
from tests.brute_scenario import what_if
from tests.candidates.engine import Stand, Standing
from tests.candidates.strategies import (
    COUNT_MAX,
    Body,
    Dice,
    crowded_fleet,
    fitting_request,
    flat_fleet,
    fleet,
    given_back,
    limited,
    new_consumer,
    place_body,
    request,
    scenario,
    seeded,
)
from tests.client import Response
from tests.effort import SEED, scaled
from tests.worlds import World

PATH: Final = "/berth/v1/place"

Asked = tuple[World, list[Body]]


def fleet_with_bodies(dice: Dice) -> Asked:
    """A world of any trees with any requests, of which some assume something."""
    world = fleet(dice)
    bodies = [place_body(dice, request(dice, world), world) for _ in range(6)]
    return world, [
        {**each, "what_if": scenario(dice, world)} if dice.sometimes() else each for each in bodies
    ]


def flat_fleet_with_bodies(dice: Dice) -> Asked:
    """A world in which berth must always know: hosts that share nothing and serve a request in one
    way, and nested labels."""
    world = flat_fleet(dice)
    amounts = {name: dice.number(1, 3) for name in dice.some(("VCPU", "MEMORY_MB"), 1, 2)}
    asked = {"groups": {"": {"resources": amounts}}}
    return world, [place_body(dice, asked, world) for _ in range(6)]


def crowded_fleet_with_bodies(dice: Dice) -> Asked:
    """Few hosts and pools, in which several consumers of one request get in each other's way: with
    pools, relations, amounts that are split, and limits."""
    world = crowded_fleet(dice)
    bodies = [place_body(dice, fitting_request(dice, world), world) for _ in range(6)]
    return world, [limited(dice, each) for each in bodies]


@pytest.mark.parametrize(
    "make", [fleet_with_bodies, flat_fleet_with_bodies, crowded_fleet_with_bodies]
)
def test_places_are_what_plain_loops_allow(stand: Stand, make: Any) -> None:
    """Each is a candidate of the state before it; a refusal is true. A dry run decides nothing, so
    the last body is placed for good."""

    @seed(SEED)
    @settings(max_examples=scaled(40))
    @given(seeded(make))
    def of_each(asked: Asked) -> None:
        world, bodies = asked
        standing = stand(world)
        standing.note()
        for sent in bodies:
            note(json.dumps(sent))
            answered = standing.client.post(f"{PATH}?dry_run=true", json=sent)
            state = given_back(world, sent)
            _check(standing, what_if(state, sent.get("what_if", {})), sent, answered)
            if make is flat_fleet_with_bodies and answered.status == 409:
                # It is proven, with the exact number.
                (error,) = answered.json["errors"]
                assert error["code"] == "berth.place.does_not_fit"
                limits, most = _limits(sent), error["at_most"]
                assert fit_together(state, limits, most, places(state, sent["request"])) is not None
            if "what_if" not in sent:
                _check_single(standing, sent)
        _check_claim(standing, {**bodies[-1], "what_if": {}})

    of_each()


@seed(SEED)
@settings(max_examples=scaled(40))
@given(seeded(crowded_fleet_with_bodies))
def test_consumers_of_one_call_get_what_they_get_one_after_another(
    stand: Stand, asked: Asked
) -> None:
    """Each gets the best candidate of the state that those before it leave, also where only the
    hosts that were chosen are searched again."""
    world, bodies = asked
    standing = stand(world)
    standing.note()
    for sent in bodies[:3]:
        note(json.dumps(sent["request"]))
        consumers = [new_consumer(f"c{number}") for number in range(COUNT_MAX)]
        order = {"by": ("pack", "spread")[sent["order"]["seed"] % 2], "seed": 1, "among": 512}
        body = {"request": sent["request"], "order": order, "explain": False}
        together = [
            standing.client.post(f"{PATH}?dry_run=true", json={**body, "consumers": some})
            for some in (consumers[: n + 1] for n in range(COUNT_MAX))
        ]
        alone: list[Any] = []
        for number, consumer in enumerate(consumers):
            one = standing.client.post(PATH, json={**body, "consumers": [consumer]})
            assert one.status == together[number].status
            if one.status != 200:
                break
            alone += one.json["placements"].values()
            several = [*together[number].json["placements"].values()]
            assert [each["allocations"] for each in several] == [
                each["allocations"] for each in alone
            ]
        for consumer in consumers[: len(alone)]:
            standing.client.delete(f"/allocations/{consumer['uuid']}")


def _limits(sent: Body) -> Limits:
    return Limits(sent.get("max_per", {}), sent.get("within"))


def _check(standing: Standing, world: World, sent: Body, answered: Response) -> None:
    """An answer, or a refusal, against plain loops."""
    asked, limits, count = sent["request"], _limits(sent), len(sent["consumers"])
    if answered.status == 200:
        assert [*answered.json["placements"]] == [each["uuid"] for each in sent["consumers"]]
        placed = [standing.placed(each) for each in answered.json["placements"].values()]
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


def _check_single(standing: Standing, sent: Body) -> None:
    """A single consumer gets the one that `POST /candidates` shows first for the same order."""
    order = {"by": "spread", "among": 512, **sent["order"]}
    single = {**sent, "consumers": [new_consumer("c0")], "order": order}
    single.pop("replace", None)
    answered = standing.client.post(f"{PATH}?dry_run=true", json=single)
    question = {"request": sent["request"], "order": order, "limit": 1}
    first = standing.ask("candidates", **question)["candidates"]
    if answered.status != 200:
        assert answered.status == 400 or not first
        return
    (placement,) = answered.json["placements"].values()
    if order["by"] != "any" or order.get("prefer"):
        assert [each["score"]["total"] for each in first] == [placement["score"]["total"]]
        assert [each["host"] for each in first] == [placement["host"]]


def _check_claim(standing: Standing, sent: Body) -> None:
    """A dry run answers what the call does, and the consumers then hold it."""
    del sent["what_if"]
    post = standing.client.post
    dry, real = (post(f"{PATH}{query}", json=sent) for query in ("?dry_run=true", ""))
    assert dry.status == real.status
    if real.status != 200:
        assert real.json["errors"][0]["code"] == dry.json["errors"][0]["code"]
        return
    assert real.json == dry.json
    for uuid, placement in real.json["placements"].items():
        shown = standing.client.get(f"/allocations/{uuid}").json["allocations"]
        holding = {name: {"resources": each["resources"]} for name, each in shown.items()}
        assert holding == placement["allocations"]
    again = post(PATH, json=sent).json
    assert again["repeated"]
    placements = real.json["placements"]
    for placement in placements.values():
        for of_the_choice in ("score", "from"):
            placement.pop(of_the_choice, None)
    assert again["placements"] == placements
