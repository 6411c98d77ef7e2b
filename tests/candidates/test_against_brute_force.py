# SPDX-License-Identifier: Apache-2.0
"""The search and its brute-force twin agree on random questions about random worlds.

`BERTH_SEED` repeats a run, `BERTH_EFFORT=10` draws ten times as many worlds. A failure prints
the world as a drawing that `tests.worlds.world` reads, the query, and the seed.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, note, seed, settings

from berth.candidates import assignments, candidate_texts, find_candidates
from berth.index import Index
from berth.model.errors import UnknownResourceClass
from berth.store.engine.database import Database
from tests.answers import read_answer
from tests.brute_force import answer
from tests.candidates.engine import (
    PLAIN,
    ask,
    ask_raw,
    copy_of,
    form_at,
    request_of,
    snapshot_of,
)
from tests.candidates.strategies import Question, histories, worlds_with_questions
from tests.client import Client
from tests.effort import SEED, repeat_with, scaled
from tests.index.checking import checked
from tests.queries import parse_query, query_text
from tests.world_in_store import (
    add_drains,
    add_provider,
    build_in_store,
    change_provider,
    define_names,
)
from tests.world_over_http import built_over_http
from tests.worlds import World, world

Asked = tuple[World, list[Question]]

#: `FEW_MAX` and `LARGE_BATCH_MIN`: formatted one by one, copied batch by batch, copied together.
WAYS_TO_WRITE = ((1000, 1), (0, 1), (0, 1000))


@seed(SEED)
@settings(max_examples=scaled(50))
@given(worlds_with_questions())
def test_the_search_finds_what_brute_force_finds(prepared: Path, asked: Asked) -> None:
    """The search returns the same candidates as brute force, each once, and the same numbers in the
    summaries.

    Each query is enumerated in both ways, by trying all combinations and by walking, and each
    response is rendered in every form.
    """
    fleet, questions = asked
    tell(fleet)
    with snapshot_of(fleet, prepared) as snapshot:
        for question in questions:
            note(f"1.{question.minor} {query_text(question.query)}")
            due = answer(fleet, question.query, question.minor)
            for few_max, large_min in WAYS_TO_WRITE:
                with pytest.MonkeyPatch.context() as patched:
                    patched.setattr(candidate_texts, "FEW_MAX", few_max)
                    patched.setattr(candidate_texts, "LARGE_BATCH_MIN", large_min)
                    assert ask(snapshot, fleet, question.query, question.minor) == due
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(assignments, "ASSIGNMENTS_MAX", 0)
                assert ask(snapshot, fleet, question.query, question.minor) == due


@seed(SEED)
@settings(max_examples=scaled(20))
@given(worlds_with_questions())
def test_an_index_that_saw_the_world_grow_answers_the_same(prepared: Path, asked: Asked) -> None:
    """An index that applied a world's changes one by one answers as one that loaded the result."""
    fleet, questions = asked
    tell(fleet)
    with copy_of(prepared) as db:
        index = Index(db)
        index.snapshot()
        define_names(fleet, db)
        for provider in fleet.providers:
            add_provider(provider, db)
            index.snapshot()
        add_drains(fleet, db)
        assert checked(index) == []
        for question in questions:
            note(f"1.{question.minor} {query_text(question.query)}")
            due = answer(fleet, question.query, question.minor)
            assert ask(index.snapshot(), fleet, question.query, question.minor) == due


@seed(SEED)
@settings(max_examples=scaled(25))
@given(worlds_with_questions())
def test_the_walk_alone_finds_what_brute_force_finds(prepared: Path, asked: Asked) -> None:
    """Small worlds have few combinations, which the search normally tries; here it always walks."""
    fleet, questions = asked
    tell(fleet)
    with snapshot_of(fleet, prepared) as snapshot, pytest.MonkeyPatch.context() as patched:
        patched.setattr(assignments, "ASSIGNMENTS_MAX", 1)
        for question in questions:
            note(f"1.{question.minor} {query_text(question.query)}")
            due = answer(fleet, question.query, question.minor)
            assert ask(snapshot, fleet, question.query, question.minor) == due


@seed(SEED)
@settings(max_examples=scaled(20))
@given(histories())
def test_an_index_that_lives_through_changes_answers_what_is_so_now(
    prepared: Path, history: tuple[list[World], list[Question]]
) -> None:
    """After each change of inventories and claims, the same query gives the answer for the new
    state."""
    moments, questions = history
    requests = [request_of(question.query) for question in questions]
    with copy_of(prepared) as db:
        build_in_store(moments[0], db)
        index = Index(db)
        for before, fleet in pairwise([moments[0], *moments]):
            tell(fleet)
            for old, new in zip(before.providers, fleet.providers, strict=True):
                change_provider(old, new, db)
            for question, request in zip(questions, requests, strict=True):
                note(f"1.{question.minor} {query_text(question.query)}")
                due = answer(fleet, question.query, question.minor)
                candidates = find_candidates(
                    index.snapshot(),
                    request,
                    settings=PLAIN,
                    form=form_at(question.minor),
                    rng=Random(0),
                )
                assert read_answer(json.loads(bytes(candidates)), fleet, question.minor) == due


@seed(SEED)
@settings(max_examples=scaled(8))
@given(worlds_with_questions())
def test_the_wire_answers_what_brute_force_finds(server: Client, asked: Asked) -> None:
    """The same over HTTP: the query as text, the response as JSON."""
    fleet, questions = asked
    tell(fleet)
    with built_over_http(fleet, server):
        for question in questions:
            text = query_text(question.query)
            note(f"1.{question.minor} {text}")
            response = server.get(
                f"/allocation_candidates?{fleet.resolve(text)}", version=f"1.{question.minor}"
            )
            assert response.status == 200, response.text
            result = read_answer(response.json, fleet, question.minor)
            assert result == answer(fleet, question.query, question.minor)


@pytest.mark.parametrize("tree", ["host", "other", "unknown"])
def test_the_tree_of_a_group_without_resources_must_exist_and_no_more(
    prepared: Path, tree: str
) -> None:
    """`in_tree` of a group without resources filters nothing, but an unknown tree empties the
    answer (5.2)."""
    fleet = world("""
        host    VCPU=4
          numa  HW_NUMA_ROOT
        other   VCPU=4
    """)
    place = "<unknown>" if tree == "unknown" else f"<rp:{tree}>"
    query = parse_query(
        f"resources=VCPU:1&required_N=HW_NUMA_ROOT&in_tree_N={place}&same_subtree=_N", 39
    )
    due = [] if tree == "unknown" else ["host:VCPU=1 <=host _N=numa>"]
    with snapshot_of(fleet, prepared) as snapshot:
        candidates = ask(snapshot, fleet, query, 39)
    assert candidates.candidates == due
    assert candidates == answer(fleet, query, 39)


def tell(fleet: World) -> None:
    """Add to the report of a failure what is needed to reproduce it."""
    note(f"{fleet}\n{repeat_with()}")


def test_an_unknown_class_is_refused_although_there_is_no_host_yet(database: Database) -> None:
    """Without `root_required`, names are checked before any root is tested: an unknown class is
    refused even if there is no host."""
    query = parse_query("resources=CUSTOM_NO:1", 39)
    with pytest.raises(UnknownResourceClass):
        ask_raw(Index(database).snapshot(), query, 39)
    query = parse_query("resources=CUSTOM_NO:1&root_required=HW_CPU_X86_VMX", 39)
    assert json.loads(ask_raw(Index(database).snapshot(), query, 39))["allocation_requests"] == []
