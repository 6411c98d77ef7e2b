# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/place` gives candidates that plain loops find, valid together.

And it never says wrongly that something does not fit. Source: spec/beyond.md 5.3 and 5.4.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from hypothesis import given, note, seed, settings

from berth.candidates import Budget
from berth.candidates.choosing import Chosen, Limits, Short, choose
from berth.candidates.order import Order
from berth.config import Settings
from berth.edge.app import create_app
from berth.index.scenario import with_usage
from berth.model.ids import ClassId, ProviderId
from berth.store.engine.database import Database
from tests.brute_capacity import Counted, TooManyStates
from tests.brute_place import (
    Limits as BruteLimits,
)
from tests.brute_place import (
    Placed,
    after,
    are_within_limits,
    fit_in_turn,
    fit_together,
    places,
)
from tests.brute_scenario import what_if
from tests.candidates.engine import only, snapshot_of
from tests.candidates.place_strategies import (
    COUNT_MAX,
    Asked,
    Body,
    crowded_fleet_with_bodies,
    flat_fleet_with_bodies,
    fleet_with_bodies,
    given_back,
    new_consumer,
)
from tests.candidates.question_strategies import Dice, scenario, seeded
from tests.candidates.test_questions_against_brute_force import tell
from tests.candidates.wire_questions import plan_of, read_candidate
from tests.client import Client, Response
from tests.effort import SEED, scaled
from tests.worlds import World

PATH: Final = "/berth/v1/place"


@seed(SEED)
@settings(max_examples=scaled(40))
@given(seeded(fleet_with_bodies))
def test_places_are_what_plain_loops_allow(
    scratch: Database, configured: Settings, asked: Asked
) -> None:
    """Each is a candidate of the state before it; a refusal is true."""
    _check_bodies(scratch, configured, asked, claimed=0)


@seed(SEED)
@settings(max_examples=scaled(40))
@given(seeded(crowded_fleet_with_bodies))
def test_consumers_that_get_in_each_others_way(
    scratch: Database, configured: Settings, asked: Asked
) -> None:
    """Pools, relations, amounts that are split, and limits are right together; what is dry decides
    nothing, so the last body is placed for good."""
    _check_bodies(scratch, configured, asked, claimed=-1)


def _check_bodies(scratch: Database, configured: Settings, asked: Asked, *, claimed: int) -> None:
    """Check the dry run of each body, and then the claim of one of them."""
    world, bodies = asked
    tell(world)
    with only(world, scratch) as index:
        client = Client.of(create_app(configured, scratch, index))
        for sent in bodies:
            note(json.dumps(sent))
            answered = client.post(f"{PATH}?dry_run=true", json=sent)
            _check(given_back(world, sent), sent, answered)
        _check_claim(client, world, bodies[claimed])


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
            state = given_back(world, sent)
            _check(state, sent, answered)
            if answered.status == 409:
                (error,) = answered.json["errors"]
                assert error["code"] == "berth.place.does_not_fit"
                limits, most = _limits(sent), error["at_most"]
                assert fit_together(state, limits, most, places(state, sent["request"])) is not None


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
            imagined = what_if(given_back(world, sent), assumed)
            answered = client.post(f"{PATH}?dry_run=true", json={**sent, "what_if": assumed})
            if answered.status == 200:
                # Copies have the uuids of the service's choice.
                hosts = {each["host"] for each in answered.json["placements"].values()}
                if hosts <= imagined.names.keys():
                    _check(imagined, sent, answered)
            else:
                _check(imagined, sent, answered)


@seed(SEED)
@settings(max_examples=scaled(40))
@given(seeded(crowded_fleet_with_bodies))
def test_consumers_of_one_call_get_what_they_get_one_after_another(
    prepared: Path, asked: Asked
) -> None:
    """Each gets the best candidate of the state that those before it leave, also where only the
    hosts that were chosen are searched again."""
    world, bodies = asked
    tell(world)
    with snapshot_of(world, prepared) as snapshot:
        for sent in bodies:
            note(json.dumps(sent["request"]))
            if (plan := plan_of(snapshot, sent["request"])) is None:
                continue
            order = Order("pack" if sent["order"]["seed"] % 2 else "spread")
            taken, count = Counter[tuple[ProviderId, ClassId]](), 0
            while count < COUNT_MAX:
                state = with_usage(snapshot, taken)
                one = choose(state, plan, order, 1, Limits(), Budget())
                count += 1
                together = choose(snapshot, plan, order, count, Limits(), Budget())
                if isinstance(one, Short):
                    assert isinstance(together, Short)
                    break
                taken.update(one.taken)
                assert isinstance(together, Chosen)
                assert together.taken == taken


def _limits(sent: Body) -> BruteLimits:
    return BruteLimits(sent.get("max_per", {}), sent.get("within"))


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


def _is_known(counted: Counted, limits: BruteLimits) -> bool:
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
        for of_the_choice in ("score", "from"):
            placement.pop(of_the_choice, None)
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
            consumers = [new_consumer("c0")]
            single = {**sent, "consumers": consumers, "order": order}
            single.pop("replace", None)
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
