# SPDX-License-Identifier: Apache-2.0
"""Every count of `POST /berth/v1/capacity` is at most the truth and every bound at least, by trying
everything in small worlds; placements agree with it.

`BERTH_SEED` repeats a run, `BERTH_EFFORT=10` draws ten times as many worlds.

Source: spec/beyond.md 2.7 (`preserve`), 4.1 to 4.4 and 4.7.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given, note, seed, settings

from berth.candidates import assign
from berth.candidates.capacity import fragments, packing, per_host
from tests.brute_capacity import Counted, TooManyStates
from tests.brute_order import loss
from tests.brute_place import after, places
from tests.brute_question import Request, aggregates, fitting
from tests.brute_scenario import what_if
from tests.candidates.engine import ALL, Stand, Standing
from tests.candidates.strategies import (
    Body,
    Dice,
    extreme_scenario,
    fleet,
    growing_scenario,
    new_consumer,
    request,
    scenario,
    seeded,
)
from tests.effort import SEED, scaled
from tests.worlds import Stock, World

#: A world, what is assumed of it, and requests.
Asked = tuple[World, Body, list[Request]]

#: The greatest capacity: trying everything takes a multiple of the time for each unit.
TOTAL_MAX: Final = 8
#: More are not placed one by one.
PLACED_MAX: Final = 12


def small_fleet_with_requests(dice: Dice) -> Asked:
    """A world of small amounts, and requests that take something, most of them for little."""
    world = fleet(dice)
    providers = (
        replace(each, stocks={name: _small(stock) for name, stock in each.stocks.items()})
        for each in world.providers
    )
    world = replace(world, providers=tuple(providers))
    assumed: Body = {}
    if dice.half():
        assumed = dice.one((scenario, growing_scenario, extreme_scenario))(dice, world)
    # What an amount beyond all bounds is divided into has no end.
    splits = not assumed.get("allocation_ratio")
    return world, assumed, list(_requests(dice, world, splits=splits))


def _small(stock: Stock) -> Stock:
    return replace(stock, total=min(stock.total, TOTAL_MAX), used=min(stock.used, 2))


def _requests(dice: Dice, world: World, *, splits: bool) -> Iterator[Request]:
    for _ in range(4):
        asked = request(dice, world, splits=splits)
        if any(group.get("resources") for group in asked["groups"].values()):
            yield _modest(asked) if dice.half() else asked


def _modest(asked: Request) -> Request:
    """The same for a unit or two of each class, so that it fits several times."""
    groups = {}
    for name, group in asked["groups"].items():
        resources = {each: min(n, 2) for each, n in group.get("resources", {}).items()}
        groups[name] = {**group, **({"resources": resources} if resources else {})}
    return {**asked, "groups": groups}


@seed(SEED)
@settings(max_examples=scaled(60))
@given(seeded(small_fleet_with_requests))
def test_a_count_is_never_above_the_truth_and_a_bound_never_below(
    stand: Stand, asked: Asked
) -> None:
    """For each host, for all of them, and for those of a zone; equal where it is said to be exact,
    and exact where the structure is simple and nothing is shared. Also with walks in place of
    assignments, and with hosts that have too many ways to list."""
    world, assumed, requests = asked
    standing = stand(world)
    standing.note()
    note(json.dumps([assumed, requests]))
    imagined = what_if(world, assumed)
    named = {f"r{number}": sent for number, sent in enumerate(requests)}
    body = {"requests": named, "by": ["host", "zone"]} | ({"what_if": assumed} if assumed else {})
    due = [Counted(imagined, sent) for sent in requests]
    for combinations, ways_max in ((64, 64), (1, 64), (1, 1)):
        # An assignment that is kept is not searched again.
        standing.forget()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(assign, "ASSIGNMENTS_MAX", combinations)
            for module in (per_host, packing, fragments):
                patched.setattr(module, "WAYS_MAX", ways_max)
            answer = standing.ask("capacity", **body) if named else {"flavors": {}}
        for each, got in zip(due, answer["flavors"].values(), strict=True):
            _check(each, got, is_listed=ways_max > 1)
    if assumed and named:
        _check_done(standing, body, imagined)


def _check(due: Counted, got: Any, *, is_listed: bool) -> None:
    hosts = {each["name"]: each for each in got["by"]["host"].values()}
    assert sorted(hosts) == sorted(due.roots)
    fit = fitting(due.fleet, due.request)
    assert {name for name, each in hosts.items() if each["count"]} == fit
    assert got["hosts"] == len(fit)
    assert got["exact"] == (got["count"] == got["at_most"])
    try:
        for name, each in hosts.items():
            assert each["count"] <= due.one(name) <= each["at_most"], name
            if is_listed and due.is_simple(name):
                assert each["count"] == each["at_most"], name
        assert got["count"] <= due.total(due.roots) <= got["at_most"]
        if all(each["count"] == each["at_most"] for each in hosts.values()) and not due.has_pools():
            assert got["exact"]
        for zone, line in got["by"]["zone"].items():
            of_zone = aggregates(due.fleet, f"zone={zone}")
            names = [n for n in due.roots if due.fleet.by_name[n].aggregates & of_zone]
            assert line["count"] <= due.total(names) <= line["at_most"], zone
            assert line["hosts"] == len(fit & {*names}), zone
        left = due.left(got["count"])
    except TooManyStates:
        note("too many states")
        return
    for name, each in got["classes"].items():
        assert (each["free"], each["usable"], each["largest"]) == left[name]
        assert each["stranded"] == each["free"] - each["usable"] >= 0


def _check_done(standing: Standing, body: Body, imagined: World) -> None:
    """An answer with a scenario has what is now, and is that of a world in which it was done."""
    supposed = standing.ask("capacity", **body)["flavors"]
    plain = {member: value for member, value in body.items() if member != "what_if"}
    now = standing.ask("capacity", **plain)["flavors"]
    standing.become(imagined)
    done = standing.ask("capacity", **plain)["flavors"]
    for name, each in supposed.items():
        there, built = now[name], done[name]
        assert each["now"] == {key: there[key] for key in each["now"]}
        assert {of: one["now"] for of, one in each["classes"].items()} == there["classes"]
        assert (each["hosts"], each["at_most"]) == (built["hosts"], built["at_most"])
        assert each["count"] <= built["at_most"]
        # The order of the hosts decides what is found where not even their own counts are exact.
        if built["exact"] and all(
            of["count"] == of["at_most"] for of in each["by"]["host"].values()
        ):
            assert each["count"] == built["count"]
        for member in ("free", "largest"):
            shown = {of: one[member] for of, one in each["classes"].items()}
            assert shown == {of: one[member] for of, one in built["classes"].items()}
        before = {one["name"]: one for one in there["by"]["host"].values()}
        of_built = {one["name"]: one for one in built["by"]["host"].values()}
        for one in each["by"]["host"].values():
            was = before.get(one["name"])
            assert one["now"] == (was and {"count": was["count"], "at_most": was["at_most"]})
            assert one["at_most"] == of_built[one["name"]]["at_most"]


def fleet_with_flavors(dice: Dice) -> tuple[World, Request]:
    """A world with flavors that have a simple structure on every host, and a request."""
    world, _, requests = small_fleet_with_requests(dice)
    small: Request = {"groups": {"": {"resources": {"VCPU": 1}}}}
    asked, *others = [*requests, small]
    simple = [each for each in others if all(map(Counted(world, each).is_simple, _roots(world)))]
    flavors = {f"f{number}": each for number, each in enumerate(simple)}
    return replace(world, flavors=flavors), asked


def _roots(world: World) -> list[str]:
    return [each.name for each in world.providers if each.parent is None]


@seed(SEED)
@settings(max_examples=scaled(50))
@given(seeded(fleet_with_flavors))
def test_candidates_and_consumers_lose_what_they_take_from_flavors(
    stand: Stand, asked: tuple[World, Request]
) -> None:
    """The score of each candidate is by the true maxima; and each of several consumers gets one
    with the least loss of all that are left."""
    world, sent = asked
    standing = stand(world)
    standing.note()
    note(json.dumps(sent))
    weights = {name: number + 1 for number, name in enumerate(world.flavors)}
    order = {"by": "preserve", "preserve": weights, "seed": 1}
    answer = standing.ask("candidates", request=sent, order=order, limit=ALL)
    try:
        for shown in answer["candidates"]:
            _check_score(standing, world, shown)
    except TooManyStates:
        note("too many states")
        return
    for count in (3, 2, 1):
        consumers = [new_consumer(f"c{number}") for number in range(count)]
        body = {"request": sent, "consumers": consumers, "order": order, "explain": False}
        answered = standing.client.post("/berth/v1/place?dry_run=true", json=body)
        if answered.status == 200:
            break
    else:
        assert not places(world, sent)
        return
    now = world
    for shown in answered.json["placements"].values():
        least, most = _best_score(now, sent)
        assert least - 1e-9 <= _check_score(standing, now, shown) <= most + 1e-9
        now = after(now, [standing.placed(shown)])


def _check_score(standing: Standing, now: World, shown: Any) -> float:
    """How much room for its flavors a world keeps (2.7, `preserve`)."""
    placed = standing.placed(shown)
    due = _score(now, placed.candidate, placed.host)
    assert shown["score"]["preserve"] == pytest.approx(due, abs=1e-9)
    return due


def _best_score(now: World, sent: Request) -> tuple[float, float]:
    """The best score: the least and the most that it may be, as a split among equal providers is
    offered in one of several ways (2.5)."""
    ways: dict[object, list[float]] = {}
    for each in places(now, sent):
        score = _score(now, each.candidate, each.host)
        ways.setdefault((each.host, each.candidate.mappings), []).append(score)
    return max(map(min, ways.values())), max(map(max, ways.values()))


def _score(now: World, candidate: Any, host: str) -> float:
    weighed = [(each, number + 1.0) for number, each in enumerate(now.flavors.values())]
    return 1 / (1 + loss(now, candidate, host, weighed))


@seed(SEED)
@settings(max_examples=scaled(16))
@given(seeded(small_fleet_with_requests))
def test_a_request_is_placed_as_often_as_capacity_counts(stand: Stand, asked: Asked) -> None:
    """One after another, in whatever order, if hosts share nothing and serve it in ways of
    a simple structure; and then no more."""
    world, _, requests = asked
    standing = stand(world)
    standing.note()
    for sent in requests:
        counted = Counted(world, sent)
        if counted.has_pools() or not all(map(counted.is_simple, counted.roots)):
            continue
        note(json.dumps(sent))
        shown = standing.ask("capacity", requests={"r": sent})["flavors"]["r"]
        assert shown["exact"]
        if shown["count"] > PLACED_MAX:
            continue
        body = {"request": sent, "order": {"by": "pack", "seed": 1}, "explain": False}
        placed: Sequence[str] = [f"c{number}" for number in range(shown["count"])]
        for name in placed:
            standing.ask("place", **body, consumers=[new_consumer(name)])
        more = {**body, "consumers": [new_consumer("more")]}
        refused = standing.client.post("/berth/v1/place", json=more)
        assert refused.json["errors"][0]["code"] == "berth.place.does_not_fit"
        for name in placed:
            uuid = new_consumer(name)["uuid"]
            assert standing.client.delete(f"/allocations/{uuid}").status == 204
