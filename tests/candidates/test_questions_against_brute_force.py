# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/candidates` answers what plain loops find: candidates, scores, and their order.

`BERTH_SEED` repeats a run, `BERTH_EFFORT=10` draws ten times as many worlds.

Source: spec/beyond.md 2.2 to 2.7, 4.4 and 4.5.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, note, seed, settings

from berth.candidates import assign, ranking
from berth.candidates.ranking import SCORED_PER_HOST_MAX
from tests.brute_force import Candidate
from tests.brute_order import score, strategy
from tests.brute_place import Placed, places
from tests.brute_question import Found, Request, answers, find, tolerated
from tests.brute_scenario import what_if
from tests.candidates.engine import ALL, Stand, Standing
from tests.candidates.strategies import (
    Body,
    Dice,
    fleet,
    order,
    query,
    request,
    scenario,
    seeded,
    tolerant,
    with_flavors,
)
from tests.effort import SEED, scaled
from tests.queries import Group, Query, query_text
from tests.worlds import World, aggregate_uuid, provider_uuid


class Ranked(NamedTuple):
    """A candidate of an answer, with the name of its host, and its total score."""

    candidate: Candidate
    host: str
    total: float


def fleet_with_bodies(dice: Dice) -> tuple[World, list[Body]]:
    """A world, and bodies."""
    world = fleet(dice)
    bodies = [body(dice, world) for _ in range(8)]
    world, requests = with_flavors(dice, world, [sent["request"] for sent in bodies])
    return world, [{**sent, "request": asked} for sent, asked in zip(bodies, requests, strict=True)]


def body(dice: Dice, world: World) -> Body:
    """A body with an order, and often a scenario; sometimes with alternatives."""
    several = [tolerant(dice, world, request(dice, world)) for _ in range(dice.one((1, 1, 1, 3)))]
    made: Body = {
        "request": several[0] if len(several) == 1 else {"alternatives": several},
        "order": order(dice, world, sorted(several[-1]["groups"])),
        "limit": dice.number(1, 4),
        "per_host": dice.number(1, 2),
    }
    return made | ({"what_if": scenario(dice, world)} if dice.sometimes() else {})


@seed(SEED)
@settings(max_examples=scaled(60))
@given(seeded(fleet_with_bodies))
def test_candidates_come_in_the_order_of_plain_loops(
    stand: Stand, asked: tuple[World, list[Body]]
) -> None:
    """All candidates of the first alternative that has any, with their scores, best first; and the
    best of them with a limit, with a bound of each host, and of few hosts; whether the search tries
    all combinations or walks, and however few candidates it keeps meanwhile."""
    standing = stand(asked[0])
    standing.note()
    wholes = [_check(standing, sent) for sent in asked[1]]
    # An assignment that is kept is not searched again.
    standing.forget()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(assign, "ASSIGNMENTS_MAX", 1)
        patched.setattr(ranking, "KEPT_MAX", 0)
        for sent, whole in zip(asked[1], wholes, strict=True):
            if whole is not None:
                note(json.dumps(sent))
                again = _ranked(standing, {**sent, "limit": ALL, "per_host": 1000})
                assert Counter(map(_place, again)) == Counter(map(_place, whole))
                _check_limits(standing, sent, whole)


def _check(standing: Standing, sent: Body) -> list[Ranked] | None:
    """The whole answer, checked; None if there is too much of it."""
    note(json.dumps(sent))
    imagined = what_if(standing.fleet, sent.get("what_if", {}))
    number, due = answers(imagined, sent["request"])
    if len(due) > SCORED_PER_HOST_MAX:
        # One host may have so many that which of them are shown is unspecified (2.7).
        return None
    answer = standing.ask("candidates", **{**sent, "limit": ALL, "per_host": 1000})
    whole = _read(standing, answer, sent["order"])
    check(due, [each.candidate for each in whole])
    assert (answer["complete"], answer["more"]) == (True, False)
    several = sent["request"].get("alternatives", [sent["request"]])
    if due and len(several) > 1:
        assert answer["alternative"] == number
    hosts = set(places(imagined, several[number]))
    stored = imagined.flavors.get(several[number].get("flavor", ""), {})
    tolerant_fleet = imagined.tolerating(tolerated([stored, several[number]]))
    for each, shown in zip(whole, answer["candidates"], strict=True):
        assert Placed(each.candidate, each.host) in hosts
        _check_score(tolerant_fleet, sent["order"], each, shown)
    totals = [each.total for each in whole]
    assert totals == sorted(totals, reverse=True)
    _check_limits(standing, sent, whole)
    # All candidates are of so many hosts, or of all if they are fewer.
    few = {**sent, "order": {**sent["order"], "among": 1}, "limit": ALL, "per_host": 1000}
    among = _ranked(standing, few)
    assert {each.candidate for each in among} <= {each.candidate for each in whole}
    assert len({each.host for each in among}) == min(1, len(whole))
    return whole


def check(due: Found, candidates: Sequence[Candidate]) -> None:
    """Each choice has one of its candidates, and there is no other."""
    got = set(candidates)
    assert len(got) == len(candidates), "a candidate stands twice"
    lost = [each for each in due.values() if len(each & got) != 1]
    assert not lost, f"lost: {lost} of {got}"
    invented = got.difference(*due.values())
    assert not invented, f"invented: {invented}"


def _check_score(fleet: World, order: Body, ranked: Ranked, shown: Any) -> None:
    assert ("score" in shown) == _has_scores(order)
    if "score" not in shown:
        return
    due = score(fleet, order, ranked.candidate, ranked.host)
    assert ranked.total == pytest.approx(due, abs=1e-9, rel=1e-9)
    if (by := order["by"]) != "any":
        of_strategy = strategy(fleet, order, ranked.candidate, ranked.host)
        assert shown["score"][by] == pytest.approx(of_strategy, abs=1e-9)
    weights = [each["weight"] for each in order.get("prefer", ())]
    for weight, added in zip(weights, shown["score"]["prefer"], strict=True):
        assert added in (0, weight)


def _check_limits(standing: Standing, sent: Body, whole: list[Ranked]) -> None:
    """With a limit the best are shown, and with `per_host` the best of each host."""
    for per_host in (sent["per_host"], 1000):
        counts: Counter[str] = Counter()
        of_hosts = []
        for each in whole:
            counts[each.host] += 1
            if counts[each.host] <= per_host:
                of_hosts.append(each)
        best = of_hosts[: sent["limit"]]
        answer = standing.ask("candidates", **{**sent, "per_host": per_host})
        got = _read(standing, answer, sent["order"])
        assert [each.total for each in got] == pytest.approx([each.total for each in best])
        assert {each.candidate for each in got} <= {each.candidate for each in whole}
        assert len({each.candidate for each in got}) == len(got)
        assert answer["more"] == (len(got) < len(whole))
        assert max(Counter(each.host for each in got).values(), default=0) <= per_host
        if sent["order"]["by"] != "any":
            # Equal scores of different hosts come in the order of a hash, the same at every limit.
            assert [each.host for each in got] == [each.host for each in best]


def _ranked(standing: Standing, body: Body) -> list[Ranked]:
    return _read(standing, standing.ask("candidates", **body), body["order"])


def _has_scores(order: Body) -> bool:
    return order["by"] != "any" or bool(order.get("prefer"))


def _place(each: Ranked) -> tuple[Candidate, str]:
    return each.candidate, each.host


def _read(standing: Standing, answer: Any, order: Body) -> list[Ranked]:
    return [
        Ranked(
            standing.read(each),
            standing.fleet.names[each["host"]],
            each["score"]["total"] if _has_scores(order) else 0.0,
        )
        for each in answer["candidates"]
    ]


def fleet_with_queries(dice: Dice) -> tuple[World, list[Query]]:
    """A world and several queries."""
    world = fleet(dice)
    return world, [query(dice, world) for _ in range(12)]


@seed(SEED)
@settings(max_examples=scaled(25))
@given(seeded(fleet_with_queries))
def test_a_query_and_the_request_that_it_stands_for_are_one(
    stand: Stand, asked: tuple[World, list[Query]]
) -> None:
    """Of `query`, which is one of 1.39, and of the request that is equal to it; both twins say
    so too."""
    standing = stand(asked[0])
    standing.note()
    for each in asked[1]:
        text = query_text(each)
        note(text)
        due = find(standing.fleet, {"query": text})
        sent: list[Request] = [{"query": standing.fleet.resolve(text)}]
        if all(_is_read_alike(group, each) for group in each.groups):
            sent.append(translated(each))
            assert {*find(standing.fleet, sent[1]).values()} == {*due.values()}
        for asking in sent:
            answer = standing.ask("candidates", request=asking, limit=ALL)
            check(due, [standing.read(candidate) for candidate in answer["candidates"]])


def _is_read_alike(group: Group, query: Query) -> bool:
    """Whether a group can be sent, and means the same, in a request: all but those without
    resources that no relation names, or that have a tree, or nothing that a provider must have."""
    related = any(group.suffix in names for names in query.same_subtree if len(names) > 1)
    isolated = query.group_policy == "isolate" and len(query.suffixed) > 1
    has_positive = bool(group.required or group.member_of)
    return bool(group.resources) or (
        (related or isolated) and group.in_tree is None and has_positive
    )


def translated(query: Query) -> Request:
    """The request that is equal to a query of 1.39 (2.3)."""
    suffixed = [group.suffix for group in query.suffixed]
    traits = [*sorted(query.root_required), *(f"!{trait}" for trait in query.root_forbidden)]
    request: Body = {
        "groups": {group.suffix: _translated(group) for group in query.groups},
        "host": {"required": traits},
        "together": [
            {"groups": sorted(names), "at": "subtree"}
            for names in query.same_subtree
            if len(names) > 1
        ],
    }
    if query.group_policy == "isolate" and len(suffixed) > 1:
        request["apart"] = [{"groups": suffixed, "at": "provider"}]
    return request


def _translated(group: Group) -> Body:
    members: Body = {
        "resources": dict(group.resources),
        "required": [*map(sorted, group.required), *(f"!{t}" for t in sorted(group.forbidden))],
        "member_of": [
            *([aggregate_uuid(name) for name in sorted(names)] for names in group.member_of),
            *(f"!{aggregate_uuid(name)}" for name in sorted(group.not_member_of)),
        ],
    }
    if group.in_tree is not None:
        members["in_tree"] = [provider_uuid(group.in_tree)]
    return members
