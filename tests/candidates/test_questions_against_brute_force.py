# SPDX-License-Identifier: Apache-2.0
"""The search and its brute-force twin agree on random requests of `/berth/v1`.

`BERTH_SEED` repeats a run, `BERTH_EFFORT=10` draws ten times as many worlds.

Source: spec/beyond.md 2.2 to 2.5.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given, note, seed, settings

from berth.candidates import assignments
from berth.index.memory import Memory
from berth.store.engine.database import Database
from tests.brute_force import Candidate
from tests.brute_question import Found, Request, find, fitting
from tests.candidates.engine import ask, only
from tests.candidates.question_strategies import fleets_with_queries, fleets_with_requests
from tests.candidates.wire_questions import (
    search_candidates,
    search_hosts,
    translated,
)
from tests.effort import SEED, repeat_with, scaled
from tests.queries import Group, Query, parse_query, query_text
from tests.worlds import World

Asked = tuple[World, list[Request]]

MEMORY_BYTES: Final = 1 << 24


@seed(SEED)
@settings(max_examples=scaled(80))
@given(fleets_with_requests())
def test_a_request_finds_what_brute_force_finds(scratch: Database, asked: Asked) -> None:
    """The candidates of both are the same, each once, whether the search tries all combinations or
    walks; and the hosts that fit are those that anchor one."""
    fleet, requests = asked
    tell(fleet)
    with only(fleet, scratch) as index:
        snapshot = index.snapshot()
        for request in requests:
            note(json.dumps(request))
            due, hosts = find(fleet, request), fitting(fleet, request)
            for assignments_max in (64, 1):
                # With a memory of its own: an assignment that is kept is not searched again.
                fresh = replace(snapshot, memory=Memory(MEMORY_BYTES))
                with pytest.MonkeyPatch.context() as patched:
                    patched.setattr(assignments, "ASSIGNMENTS_MAX", assignments_max)
                    check(due, search_candidates(fresh, request))
                    assert search_hosts(fresh, request) == sorted(hosts)


@seed(SEED)
@settings(max_examples=scaled(25))
@given(fleets_with_queries())
def test_a_query_and_the_request_that_it_stands_for_are_one(
    scratch: Database, asked: tuple[World, list[Query]]
) -> None:
    """Of a query of 1.39, of `query`, and of the request that is equal to it."""
    fleet, queries = asked
    tell(fleet)
    with only(fleet, scratch) as index:
        snapshot = index.snapshot()
        for query in queries:
            text = query_text(query)
            note(text)
            sent: Request = {"query": fleet.resolve(text)}
            due = find(fleet, {"query": text})
            old = ask(snapshot, fleet, parse_query(text, 39), 39)
            check(due, search_candidates(snapshot, sent))
            assert len(old.candidates) == len(due)
            if all(_is_read_alike(group, query) for group in query.groups):
                request = translated(query)
                assert {*find(fleet, request).values()} == {*due.values()}
                check(due, search_candidates(snapshot, request))


def _is_read_alike(group: Group, query: Query) -> bool:
    """Whether a group can be sent, and means the same, in a request: all but those without
    resources that no relation names, or that have a tree, or nothing that a provider must have."""
    related = any(group.suffix in names for names in query.same_subtree if len(names) > 1)
    isolated = query.group_policy == "isolate" and len(query.suffixed) > 1
    has_positive = bool(group.required or group.member_of)
    return bool(group.resources) or (
        (related or isolated) and group.in_tree is None and has_positive
    )


def check(due: Found, candidates: Sequence[Candidate]) -> None:
    """Each choice has one of its candidates, and there is no other."""
    got = set(candidates)
    assert len(got) == len(candidates), "a candidate stands twice"
    lost = [each for each in due.values() if len(each & got) != 1]
    assert not lost, f"lost: {lost} of {got}"
    invented = got.difference(*due.values())
    assert not invented, f"invented: {invented}"


def tell(fleet: World) -> None:
    """Add to the report of a failure what is needed to repeat it."""
    note(f"{fleet}\n{fleet.labels}\n{fleet.flavors}\n{repeat_with()}")
