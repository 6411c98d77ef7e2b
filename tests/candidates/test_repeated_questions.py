# SPDX-License-Identifier: Apache-2.0
"""The same requests again and again, while one world replaces another: an index that has lived
through them all answers as brute force does, whatever it has cached.
"""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, note, seed, settings
from hypothesis import strategies as st

from berth.index import Index
from berth.model.ids import ConsumerUUID, ProviderUUID
from berth.store.allocations import delete_allocations
from berth.store.engine.database import Database
from berth.store.providers import delete_provider
from berth.store.resource_classes import delete_resource_class, ensure_resource_class
from berth.store.traits import create_trait, delete_trait
from tests.answers import read_answer
from tests.brute_force import answer
from tests.candidates.engine import ask_with, copy_of, form_at, request_of
from tests.candidates.strategies import Question, questions, worlds
from tests.effort import SEED, repeat_with, scaled
from tests.index.checking import checked
from tests.queries import query_text
from tests.world_in_store import add_drains, add_provider
from tests.worlds import World, consumer_uuid, provider_uuid

#: Custom classes and traits beside those that worlds use: they take ids away from these.
OTHERS = ("CUSTOM_OTHER", "CUSTOM_OTHER_TOO")


@st.composite
def worlds_in_turn(draw: st.DrawFn) -> tuple[list[World], list[Question]]:
    """Some worlds, and questions that may be asked in each of them."""
    several = draw(st.lists(worlds(), min_size=2, max_size=3))
    asked = [draw(questions(fleet)) for fleet in several for _ in range(4)]
    # To have been there once is not to be there: a tree that is gone is unknown.
    return several, [each for each in asked if not any(g.in_tree for g in each.query.groups)]


@seed(SEED)
@settings(max_examples=scaled(6))
@given(worlds_in_turn(), st.data())
def test_what_was_asked_of_another_world_misleads_nobody(
    prepared: Path, drawn: tuple[list[World], list[Question]], data: st.DataObject
) -> None:
    """Providers, traits and classes are deleted and created in another order, so that other names
    get their ids; queries are sent after each step, or after several."""
    several, asked = drawn
    requests = [request_of(each.query) for each in asked]
    with copy_of(prepared) as db:
        index = Index(db)
        for fleet in several:
            note(f"{fleet}\n{repeat_with()}")
            for kind, names in (("trait", fleet.custom_traits), ("class", fleet.custom_classes)):
                make(kind, data.draw(st.permutations(sorted({*names, *OTHERS}))), db)
            for provider in fleet.providers:
                add_provider(provider, db)
                if data.draw(st.booleans()):
                    index.snapshot()
            add_drains(fleet, db)
            for question, request in zip(asked, requests, strict=True):
                note(f"1.{question.minor} {query_text(question.query)}")
                body = ask_with(index.snapshot(), request, form_at(question.minor))
                due = answer(fleet, question.query, question.minor)
                assert read_answer(json.loads(body), fleet, question.minor) == due
            assert checked(index) == []
            take_down(fleet, db)
            if data.draw(st.booleans()):
                index.snapshot()


def make(kind: str, names: list[str], db: Database) -> None:
    """Create traits or classes, in this order."""
    for name in names:
        if kind == "trait":
            create_trait(db, name)
        else:
            ensure_resource_class(db, name)


def take_down(fleet: World, db: Database) -> None:
    """Delete everything of a world, including all names."""
    for provider in reversed(fleet.providers):
        if provider.used:
            delete_allocations(db, ConsumerUUID(consumer_uuid(provider.name)))
        delete_provider(db, ProviderUUID(provider_uuid(provider.name)))
    for name in {*fleet.custom_traits, *OTHERS}:
        delete_trait(db, name)
    for name in {*fleet.custom_classes, *OTHERS}:
        delete_resource_class(db, name)
