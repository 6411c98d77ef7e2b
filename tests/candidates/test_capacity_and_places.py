# SPDX-License-Identifier: Apache-2.0
"""Capacity, scenarios and placements of one world agree over HTTP, and with plain loops.

`BERTH_SEED` repeats a run, `BERTH_EFFORT=10` draws ten times as many worlds.

Source: spec/beyond.md 2.7 (`preserve`), 4.4 and 4.7.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given, note, seed, settings

from berth.config import Settings
from berth.edge.app import create_app
from berth.store.engine.database import Database
from tests.brute_capacity import Counted, TooManyStates
from tests.brute_order import loss
from tests.brute_place import Placed, after, places
from tests.brute_question import Request, fitting
from tests.brute_scenario import what_if
from tests.candidates.engine import only
from tests.candidates.question_strategies import Dice, growing_scenario, seeded
from tests.candidates.test_capacity_against_brute_force import (
    Asked,
    fleet_with_flavors,
    small_fleet_with_requests,
)
from tests.candidates.test_questions_against_brute_force import tell
from tests.candidates.wire_questions import read_candidate
from tests.client import Client
from tests.effort import SEED, scaled
from tests.worlds import World, consumer_uuid

PATH: Final = "/berth/v1/capacity"
#: More are not placed one by one.
PLACED_MAX: Final = 12

Body = dict[str, Any]


def fleet_that_might_be(dice: Dice) -> tuple[World, list[Request], Body]:
    """A world of small amounts, requests, and a scenario."""
    world, _, requests = small_fleet_with_requests(dice)
    return world, requests, growing_scenario(dice, world)


@seed(SEED)
@settings(max_examples=scaled(12))
@given(seeded(fleet_that_might_be))
def test_the_capacity_of_a_scenario_is_that_of_a_world_in_which_it_was_done(
    scratch: Database, configured: Settings, asked: tuple[World, list[Request], Body]
) -> None:
    """For all hosts together, for each, and for what is left; and what is now is as it was."""
    world, requests, assumed = asked
    tell(world)
    note(json.dumps([requests, assumed]))
    imagined = what_if(world, assumed)
    named = {f"r{number}": request for number, request in enumerate(requests)}
    body = {"requests": named, "by": ["host", "zone"]}
    with only(world, scratch) as index:
        client = Client.of(create_app(configured, scratch, index))
        supposed = client.post(PATH, json={**body, "what_if": assumed}).json
        now = client.post(PATH, json=body).json
    with only(imagined, scratch) as index:
        client = Client.of(create_app(configured, scratch, index))
        done = client.post(PATH, json=body).json
    if not all(each["complete"] for each in (supposed, now, done)):
        note("the time ended")
        return
    for name, request in named.items():
        answers = [each["flavors"][name] for each in (supposed, now, done)]
        _check_capacity(imagined, request, answers[0])
        _check_done(*answers)


def _check_capacity(fleet: World, request: Request, got: Any) -> None:
    """Against the true maxima of a world."""
    due = Counted(fleet, request)
    assert got["hosts"] == len(fitting(fleet, request))
    hosts = {each["name"]: each for each in got["by"]["host"].values()}
    assert sorted(hosts) == sorted(due.roots)
    try:
        assert got["count"] <= due.total(due.roots) <= got["at_most"]
        for name, each in hosts.items():
            assert each["count"] <= due.one(name) <= each["at_most"]
        left = due.left(got["count"])
    except TooManyStates:
        note("too many states")
        return
    for name, each in got["classes"].items():
        assert (each["free"], each["usable"], each["largest"]) == left[name]


def _check_done(supposed: Any, now: Any, done: Any) -> None:
    """The answer with a scenario, without it, and of the world that the scenario describes."""
    assert supposed["now"] == {name: now[name] for name in ("count", "at_most", "exact", "hosts")}
    assert {name: each["now"] for name, each in supposed["classes"].items()} == now["classes"]
    for number in ("hosts", "at_most", *(("count",) if done["exact"] else ())):
        assert supposed[number] == done[number]
    for member in ("free", "largest"):
        shown = {name: each[member] for name, each in supposed["classes"].items()}
        assert shown == {name: each[member] for name, each in done["classes"].items()}
    before = {each["name"]: each for each in now["by"]["host"].values()}
    built = {each["name"]: each for each in done["by"]["host"].values()}
    for each in supposed["by"]["host"].values():
        was = before.get(each["name"])
        assert each["now"] == (was and {"count": was["count"], "at_most": was["at_most"]})
        assert each["at_most"] == built[each["name"]]["at_most"]
    zones = {zone: each["hosts"] for zone, each in supposed["by"]["zone"].items() if each["hosts"]}
    assert zones == {
        zone: each["hosts"] for zone, each in done["by"]["zone"].items() if each["hosts"]
    }


@seed(SEED)
@settings(max_examples=scaled(16))
@given(seeded(small_fleet_with_requests))
def test_a_request_is_placed_as_often_as_capacity_counts(
    scratch: Database, configured: Settings, asked: Asked
) -> None:
    """One after another, in whatever order, if hosts share nothing and serve it in ways of
    a simple structure; and then no more."""
    world, _, requests = asked
    tell(world)
    with only(world, scratch) as index:
        client = Client.of(create_app(configured, scratch, index))
        for request in requests:
            counted = Counted(world, request)
            if counted.has_pools() or not all(map(counted.is_simple, counted.roots)):
                continue
            note(json.dumps(request))
            shown = client.post(PATH, json={"requests": {"r": request}}).json["flavors"]["r"]
            assert shown["exact"]
            if shown["count"] > PLACED_MAX:
                continue
            placed = []
            for number in range(shown["count"]):
                (uuid,) = _place(client, request, [f"c{number}"], by="pack")["placements"]
                placed.append(uuid)
            refused = client.post("/berth/v1/place", json=_body(request, ["more"], by="pack"))
            assert refused.json["errors"][0]["code"] == "berth.place.does_not_fit"
            for uuid in placed:
                assert client.delete(f"/allocations/{uuid}").status == 204


def _body(request: Request, names: Sequence[str], **order: Any) -> Body:
    owner = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
    return {
        "request": request,
        "consumers": [{"uuid": consumer_uuid(name), **owner} for name in names],
        "order": {"seed": 1, **order},
        "explain": False,
    }


def _place(client: Client, request: Request, names: Sequence[str], **order: Any) -> Any:
    answered = client.post("/berth/v1/place", json=_body(request, names, **order))
    assert answered.status == 200, answered.text
    return answered.json


@seed(SEED)
@settings(max_examples=scaled(12))
@given(seeded(fleet_with_flavors))
def test_consumers_are_placed_where_the_least_is_lost(
    scratch: Database, configured: Settings, asked: tuple[World, Request, list[Request]]
) -> None:
    """Each gets a candidate with the least loss of all that are left, by the true maxima."""
    world, request, flavors = asked
    world = replace(world, flavors={f"f{number}": each for number, each in enumerate(flavors)})
    tell(world)
    note(json.dumps(request))
    weights = {f"f{number}": number + 1 for number in range(len(flavors))}
    order = {"by": "preserve", "preserve": weights}
    with only(world, scratch) as index:
        client = Client.of(create_app(configured, scratch, index))
        for count in (3, 2, 1):
            sent = _body(request, [f"c{number}" for number in range(count)], **order)
            answered = client.post("/berth/v1/place?dry_run=true", json=sent)
            if answered.status == 200:
                break
        else:
            assert not places(world, request)
            return
    placed: list[Placed] = []
    for shown in answered.json["placements"].values():
        fleet = after(world, placed)
        chosen = Placed(read_candidate(shown, world), world.names[shown["host"]])
        try:
            best = max(_score(fleet, each) for each in places(fleet, request))
        except TooManyStates:
            note("too many states")
            return
        assert shown["score"]["preserve"] == pytest.approx(_score(fleet, chosen), abs=1e-9)
        assert shown["score"]["preserve"] == pytest.approx(best, abs=1e-9)
        placed.append(chosen)


def _score(fleet: World, placed: Placed) -> float:
    """How much room for its flavors a world keeps (2.7, `preserve`)."""
    weighed = [(each, number + 1.0) for number, each in enumerate(fleet.flavors.values())]
    return 1 / (1 + loss(fleet, placed.candidate, placed.host, weighed))
