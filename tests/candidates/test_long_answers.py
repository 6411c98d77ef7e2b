# SPDX-License-Identifier: Apache-2.0
"""Long answers are made in pieces while they are sent: the same bytes as those made at once, and as
many as announced."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, note, seed, settings
from sqlalchemy import update

from berth.candidates import LongAnswer, candidate_texts, find_candidates
from berth.index import Index, Snapshot, summary_text
from berth.index.memory import Memory
from berth.store.engine.tables import resource_providers
from tests.candidates.engine import PLAIN, ask_raw, copy_of, form_at, request_of, snapshot_of
from tests.candidates.strategies import Question, worlds_with_questions
from tests.client import Client
from tests.effort import SEED, scaled
from tests.queries import Query, parse_query, query_text
from tests.world_in_store import build_in_store
from tests.world_over_http import built_over_http
from tests.worlds import World, provider_uuid, world

HOSTS_COUNT = 40
HOSTS = world("\n".join(f"host{number}  VCPU=8" for number in range(HOSTS_COUNT)))
EVERY_HOST = parse_query("resources=VCPU:1", 39)

#: Its name in the package is that of its function.
render = sys.modules[LongAnswer.__module__]

#: A piece for each candidate and each tree; several in each; all in one.
PIECES = (0, 1000, 1 << 20)


@contextmanager
def long_answers(piece_bytes: int) -> Iterator[None]:
    """Every answer is a long one, made by columns in pieces of some size."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(render, "WHOLE_BYTES_MAX", 0)
        patched.setattr(render, "ESTIMATED_FROM", 0)
        patched.setattr(summary_text, "MANY_ROWS", 0)
        for module in (render, candidate_texts, summary_text):
            patched.setattr(module, "PIECE_BYTES", piece_bytes)
        yield


def forgetful(snapshot: Snapshot, memory: Memory) -> Snapshot:
    """The same fleet with another memory, and no texts in it."""
    for _, block in snapshot.occupied():
        block.summaries.fill(None)
    memory.follow(snapshot.names, snapshot.blocks)
    return replace(snapshot, memory=memory)


def pieces_of(snapshot: Snapshot, query: Query, minor: int) -> list[bytes]:
    """The pieces of an answer, which are as long together as it says."""
    answer = find_candidates(
        snapshot, request_of(query), settings=PLAIN, form=form_at(minor), rng=Random(0)
    )
    if isinstance(answer, bytes):
        return [answer]
    pieces = list(answer)
    assert len(answer) == sum(map(len, pieces))
    return pieces


@seed(SEED)
@settings(max_examples=scaled(25))
@given(worlds_with_questions())
def test_a_long_answer_has_the_bytes_of_one_made_at_once(
    prepared: Path, asked: tuple[World, list[Question]]
) -> None:
    """Whatever the size of its pieces, whether texts are kept or not, and when it is read again."""
    fleet, questions = asked
    with snapshot_of(fleet, prepared) as snapshot:
        for question in questions:
            note(f"1.{question.minor} {query_text(question.query)}")
            due = ask_raw(snapshot, question.query, question.minor)
            for piece_bytes in PIECES:
                for memory in (Memory(0), Memory()):
                    fresh = forgetful(snapshot, memory)
                    with long_answers(piece_bytes):
                        for _ in range(2):
                            pieces = pieces_of(fresh, question.query, question.minor)
                            assert b"".join(pieces) == due


@pytest.mark.parametrize("minor", [10, 12, 39])
def test_pieces_are_small_and_none_is_made_before_it_is_read(prepared: Path, minor: int) -> None:
    """An answer of forty hosts in pieces of one host or a little more; it can be read again."""
    with snapshot_of(HOSTS, prepared, memory=Memory(0)) as snapshot:
        due = ask_raw(snapshot, EVERY_HOST, minor)
        with long_answers(0):
            pieces = pieces_of(snapshot, EVERY_HOST, minor)
            assert len(pieces) > 2 * HOSTS_COUNT
            assert max(map(len, pieces)) < 600
            answer = find_candidates(
                snapshot,
                request_of(EVERY_HOST),
                settings=PLAIN,
                form=form_at(minor),
                rng=Random(0),
            )
            assert isinstance(answer, LongAnswer)
            reading = iter(answer)
            next(reading)
            assert bytes(answer) == due


@pytest.mark.parametrize("minor", [12, 39])
def test_a_uuid_may_be_shorter_than_36_characters(prepared: Path, minor: int) -> None:
    """As an old database allows: the length is still that of the bytes."""
    with copy_of(prepared) as db:
        build_in_store(HOSTS, db)
        shorten = (
            update(resource_providers)
            .where(resource_providers.c.uuid == provider_uuid("host7"))
            .values(uuid="short")
        )
        db.write(lambda tx: tx.change(shorten, {}))
        snapshot = Index(db).snapshot()
        due = ask_raw(snapshot, EVERY_HOST, minor)
        assert b'"short"' in due
        for piece_bytes in PIECES:
            with long_answers(piece_bytes):
                fresh = forgetful(snapshot, Memory(0))
                assert b"".join(pieces_of(fresh, EVERY_HOST, minor)) == due


@pytest.mark.parametrize(("texts_max", "least", "most"), [(0, 0, 0), (30, 4, 26), (1000, 40, 40)])
def test_a_long_answer_keeps_texts_while_there_is_room_and_drops_none(
    prepared: Path, texts_max: int, least: int, most: int
) -> None:
    """An eighth of the memory is left to others, and plans take a part; what was kept stays."""
    in_host3 = parse_query("resources=VCPU:1&in_tree=<host3>", 39)
    with snapshot_of(HOSTS, prepared) as snapshot:
        pieces_of(snapshot, EVERY_HOST, 39)
        ((_, block),) = snapshot.occupied()
        each = max(map(len, block.summaries.tolist())) + summary_text.OBJECT_BYTES
        fresh = forgetful(snapshot, Memory(texts_max * each))
        pieces_of(fresh, in_host3, 39)
        kept_before = block.summaries.tolist()
        with long_answers(0):
            pieces_of(fresh, EVERY_HOST, 39)
        kept = block.summaries.tolist()
    assert least <= len(kept) - kept.count(None) <= most
    assert len(kept_before) - kept_before.count(None) == (1 if texts_max else 0)
    assert all(old in (None, new) for old, new in zip(kept_before, kept, strict=True))


def test_the_wire_announces_the_length_of_a_long_answer(server: Client) -> None:
    """The header and the body are those of an answer that is made at once."""
    with built_over_http(HOSTS, server):
        plain = server.get("/allocation_candidates?resources=VCPU:1", version="1.39")
        with long_answers(0):
            long = server.get("/allocation_candidates?resources=VCPU:1", version="1.39")
    assert long.status == 200
    assert long.body == plain.body
    assert long.headers["content-length"] == str(len(plain.body))
    assert set(long.headers) == set(plain.headers)
