# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/candidates` answers what plain loops find: candidates, scores, and their order.

Source: spec/beyond.md 2.2, 2.6 and 2.7.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given, note, seed, settings

from berth.candidates.ranking import SCORED_PER_HOST_MAX
from berth.config import Settings
from berth.edge.app import create_app
from berth.store.engine.database import Database
from tests.brute_force import Candidate
from tests.brute_order import score, strategy
from tests.brute_place import Placed, places
from tests.brute_question import Request, answers
from tests.brute_scenario import what_if
from tests.candidates.engine import only
from tests.candidates.question_strategies import (
    Dice,
    fleet,
    order,
    request,
    scenario,
    seeded,
    with_flavors,
)
from tests.candidates.test_questions_against_brute_force import check, tell
from tests.candidates.wire_questions import read_candidate
from tests.client import Client
from tests.effort import SEED, scaled
from tests.worlds import World

#: All candidates of the small worlds here.
ALL = 10_000

Body = dict[str, Any]
Asked = tuple[World, list[Body]]


class Ranked(NamedTuple):
    """A candidate of an answer, with the name of its host, and its total score."""

    candidate: Candidate
    host: str
    total: float


def fleet_with_bodies(dice: Dice) -> Asked:
    """A world, and bodies."""
    world = fleet(dice)
    bodies = [body(dice, world) for _ in range(4)]
    world, requests = with_flavors(dice, world, [sent["request"] for sent in bodies])
    return world, [{**sent, "request": asked} for sent, asked in zip(bodies, requests, strict=True)]


def body(dice: Dice, world: World) -> Body:
    """A body with an order, and often a scenario; sometimes with alternatives."""
    if dice.number(1, 4) == 1:
        several = [request(dice, world) for _ in range(dice.number(2, 3))]
        asked: Request = {"alternatives": several}
        groups = sorted(several[-1]["groups"])
    else:
        asked = request(dice, world)
        groups = sorted(asked["groups"])
    made: Body = {"request": asked, "order": order(dice, world, groups), "limit": ALL}
    return made | ({"what_if": scenario(dice, world)} if dice.half() else {})


@seed(SEED)
@settings(max_examples=scaled(30))
@given(seeded(fleet_with_bodies))
def test_candidates_come_in_the_order_of_plain_loops(
    scratch: Database, configured: Settings, asked: Asked
) -> None:
    """All candidates of the first alternative that has any, with their scores, best first."""
    world, bodies = asked
    tell(world)
    with only(world, scratch) as index:
        client = Client.of(create_app(configured, scratch, index))
        for sent in bodies:
            note(json.dumps(sent))
            imagined = what_if(world, sent.get("what_if", {}))
            number, due = answers(imagined, sent["request"])
            if len(due) > SCORED_PER_HOST_MAX:
                # One host may have so many that which of them are shown is unspecified (2.7).
                continue
            answer = _ask(client, sent)
            ranked = _read(answer, world, sent["order"])
            check(due, [each.candidate for each in ranked])
            assert answer["complete"]
            assert not answer["more"]
            if due and "alternatives" in sent["request"]:
                assert answer["alternative"] == number
            counted = sent["request"].get("alternatives", [sent["request"]])[number]
            due_hosts = set(places(imagined, counted))
            for each, shown in zip(ranked, answer["candidates"], strict=True):
                assert Placed(each.candidate, each.host) in due_hosts
                _check_score(imagined, sent["order"], each, shown)
            _check_order([each.total for each in ranked])
            _check_limits(client, world, sent, ranked)
            _check_among(client, world, sent, ranked)


def _ask(client: Client, body: Body) -> Any:
    response = client.post("/berth/v1/candidates", json=body)
    assert response.status == 200, response.text
    return response.json


def _read(answer: Any, fleet: World, order: Body) -> list[Ranked]:
    has_scores = order["by"] != "any" or bool(order.get("prefer"))
    candidates = answer["candidates"]
    assert all(("score" in each) == has_scores for each in candidates)
    return [
        Ranked(
            read_candidate(each, fleet),
            fleet.names[each["host"]],
            each["score"]["total"] if has_scores else 0.0,
        )
        for each in candidates
    ]


def _check_score(fleet: World, order: Body, ranked: Ranked, sent: Any) -> None:
    if "score" not in sent:
        return
    due = score(fleet, order, ranked.candidate, ranked.host)
    assert ranked.total == pytest.approx(due, abs=1e-9, rel=1e-12)
    if (by := order["by"]) != "any":
        of_strategy = strategy(fleet, order, ranked.candidate, ranked.host)
        assert sent["score"][by] == pytest.approx(of_strategy, abs=1e-9)
    assert len(sent["score"]["prefer"]) == len(order.get("prefer", ()))


def _check_order(totals: list[float]) -> None:
    assert totals == sorted(totals, reverse=True)


def _check_limits(client: Client, fleet: World, body: Body, ranked: list[Ranked]) -> None:
    """With a limit the best are shown, and with `per_host` the best of each host."""
    for limit, per_host in ((1, None), (2, 1), (3, 2), (ALL, 1)):
        best = _best_of_each(ranked, per_host)[:limit]
        bounded = {**body, "limit": limit} | ({} if per_host is None else {"per_host": per_host})
        answer = _ask(client, bounded)
        got = _read(answer, fleet, body["order"])
        assert [each.total for each in got] == pytest.approx([each.total for each in best])
        assert {each.candidate for each in got} <= {each.candidate for each in ranked}
        assert len({each.candidate for each in got}) == len(got)
        assert answer["more"] == (len(got) < len(ranked))
        if body["order"]["by"] != "any":
            # Equal scores of different hosts come in the order of a hash, the same at every limit.
            _check_hosts(got, best)


def _check_among(client: Client, fleet: World, body: Body, ranked: list[Ranked]) -> None:
    """All candidates are of so many hosts, or of all if they are fewer."""
    hosts = {each.host for each in ranked}
    for among in (1, 2):
        order = {**body["order"], "among": among}
        got = _read(_ask(client, {**body, "order": order}), fleet, order)
        assert {each.candidate for each in got} <= {each.candidate for each in ranked}
        assert len({each.host for each in got}) == min(among, len(hosts))


def _check_hosts(got: list[Ranked], best: list[Ranked]) -> None:
    assert [each.host for each in got] == [each.host for each in best]


def _best_of_each(ranked: list[Ranked], per_host: int | None) -> list[Ranked]:
    counts: dict[str, int] = {}
    best = []
    for each in ranked:
        counts[each.host] = counts.get(each.host, 0) + 1
        if per_host is None or counts[each.host] <= per_host:
            best.append(each)
    return best
