# SPDX-License-Identifier: Apache-2.0
"""`GET /allocation_candidates` answers what its brute-force twin finds, at every microversion.

`BERTH_SEED` repeats a run, `BERTH_EFFORT=10` draws ten times as many worlds. A failure prints
the world as a drawing that `tests.worlds.world` reads, the query, and the seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, note, seed, settings

from berth.candidates import assign, filter, render
from berth.index import texts
from berth.index.memory import Memory
from tests.answers import Answer, providers_of
from tests.brute_force import answer, summaries
from tests.candidates.engine import Stand, Standing
from tests.candidates.strategies import Dice, Question, changed, fleet, question, seeded
from tests.effort import SEED, scaled
from tests.index.checking import checked
from tests.queries import query_text
from tests.world_over_http import built_over_http, changed_over_http
from tests.worlds import World

#: Bounds that a small world does not reach: all combinations tried at most; from how many on texts
#: are made by columns, and from how many candidates a batch on batch by batch; rows that are
#: filtered at once; and bytes of memory.
WAYS = (
    (64, 1000, 1, 4096, 1 << 24),
    (0, 0, 1, 4096, 1 << 24),
    (1, 0, 1000, 2, 0),
)
#: Bytes of the pieces of a long answer: one for each candidate and tree, several in each, all in
#: one.
PIECES = (0, 1000, 1 << 20)

Asked = tuple[World, list[Question], dict[str, Any], int]


def fleet_with_questions(dice: Dice) -> Asked:
    """A world, questions, and what the operator and a caller bound."""
    world = fleet(dice)
    options = {
        "randomize_allocation_candidates": dice.half(),
        "max_allocation_candidates": dice.one((-7, -1, 0, 1, 2, 3, 5)),
        "allocation_candidates_generation_strategy": dice.one(("depth-first", "breadth-first")),
    }
    return world, [question(dice, world) for _ in range(12)], options, dice.number(0, 6)


@contextmanager
def one_way(
    standing: Standing, combinations: int, many: int, large: int, rows: int, memory: int
) -> Iterator[None]:
    """The index begins anew, and the bounds of a search are small."""
    standing.forget(Memory(memory))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(assign, "ASSIGNMENTS_MAX", combinations)
        patched.setattr(texts, "MANY_ROWS", many)
        patched.setattr(texts, "MANY_NUMBERS", many)
        patched.setattr(render, "LARGE_BATCH_MIN", large)
        patched.setattr(filter, "ROWS_MAX", rows)
        yield


@contextmanager
def long_answers(piece_bytes: int) -> Iterator[None]:
    """Every answer is a long one, made by columns in pieces of some size."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(render, "WHOLE_BYTES_MAX", 0)
        patched.setattr(render, "ESTIMATED_FROM", 0)
        patched.setattr(texts, "MANY_ROWS", 0)
        patched.setattr(texts, "MANY_NUMBERS", 0)
        for module in (render, texts):
            patched.setattr(module, "PIECE_BYTES", piece_bytes)
        yield


@seed(SEED)
@settings(max_examples=scaled(60))
@given(seeded(fleet_with_questions))
def test_a_query_finds_what_brute_force_finds(stand: Stand, asked: Asked) -> None:
    """The same candidates, each once, and the same numbers in the summaries, in whichever way the
    search goes and the answer is written; a long one has the bytes of one made at once; and of
    fewer candidates each is one of all."""
    world, questions, options, limit = asked
    standing = stand(world)
    standing.note()
    wholes = [answer(world, each.query, each.minor) for each in questions]
    for way in WAYS:
        with one_way(standing, *way):
            for number, (each, whole) in enumerate(zip(questions, wholes, strict=True)):
                text = f"/allocation_candidates?{world.resolve(query_text(each.query))}"
                note(f"1.{each.minor} {query_text(each.query)} {way}")
                assert standing.queried(query_text(each.query), each.minor) == whole
                plain = standing.client.get(text, version=f"1.{each.minor}")
                with long_answers(PIECES[number % 3]):
                    long = standing.client.get(text, version=f"1.{each.minor}")
                assert long.body == plain.body
                assert long.headers["content-length"] == str(len(plain.body))
            _check_fewer(standing, questions, wholes, options, limit)


def _check_fewer(
    standing: Standing,
    questions: Sequence[Question],
    wholes: Sequence[Answer],
    options: dict[str, Any],
    limit: int,
) -> None:
    """As many candidates as the limit and the cap allow, all of them valid, each once; the
    summaries describe exactly their trees."""
    cap: int = options["max_allocation_candidates"]
    note(f"{options} limit={limit}")
    for each, whole in zip(questions, wholes, strict=True):
        if limit and each.minor < 16:
            continue
        query = replace(each.query, limit=limit or None)
        fewer = standing.queried(query_text(query), each.minor, **options)
        assert Counter(fewer.candidates) <= Counter(whole.candidates)
        bounds = ([limit] if limit else []) + ([] if cap < 0 else [max(1, cap)])
        assert len(fewer.candidates) == min([len(whole.candidates), *bounds])
        used = providers_of(fewer.candidates)
        assert fewer.summaries == summaries(standing.fleet, query, used, each.minor)


Lives = list[tuple[list[str], World, World, list[Question]]]

#: Custom classes and traits beside those that worlds use: they take ids away from these.
OTHERS = ("CUSTOM_OTHER", "CUSTOM_OTHER_TOO")


def worlds_in_turn(dice: Dice) -> Lives:
    """Worlds, the same ones a little later, and questions, of which those of another world come
    again."""
    lives: Lives = []
    for _ in range(2):
        world = fleet(dice)
        later = changed(dice, world)
        asked = [question(dice, world) for _ in range(5)]
        # To have been there once is not to be there: a tree that is gone is unknown.
        again = [each for life in lives for each in life[3]]
        asked += [each for each in again if not any(g.in_tree for g in each.query.groups)]
        lives.append((dice.some(OTHERS, 0, 2), world, later, asked))
    return lives


@seed(SEED)
@settings(max_examples=scaled(10))
@given(seeded(worlds_in_turn))
def test_an_index_that_lives_through_everything_answers_what_is_so_now(
    stand: Stand, lives: Lives
) -> None:
    """Worlds come, change and go through the API, so that other names get the ids of those before;
    whatever was asked of another world, or before a change, misleads nobody."""
    standing = stand(World(()))
    client = standing.client

    def ask(now: World, questions: Sequence[Question]) -> None:
        standing.fleet = now
        for each in questions:
            note(f"1.{each.minor} {query_text(each.query)}")
            due = answer(now, each.query, each.minor)
            assert standing.queried(query_text(each.query), each.minor) == due

    def look() -> None:
        """A query while the world is being built."""
        client.get("/allocation_candidates?resources=VCPU:1")

    for others, world, later, questions in lives:
        for name in others:
            client.put(f"/traits/{name}")
            client.put(f"/resource_classes/{name}")
        with built_over_http(world, client, after_each=look):
            standing.fleet = world
            standing.note()
            ask(world, questions)
            changed_over_http(world, later, client)
            standing.fleet = later
            standing.note()
            ask(later, questions)
            assert checked(standing.index) == []
            changed_over_http(later, world, client)
        for name in others:
            client.delete(f"/traits/{name}")
            client.delete(f"/resource_classes/{name}")
