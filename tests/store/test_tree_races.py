# SPDX-License-Identifier: Apache-2.0
"""Races over the parent and the name of a provider, in threads over two open databases."""

from __future__ import annotations

from functools import partial

import pytest

from berth.model.errors import (
    DuplicateProviderName,
    ParentNotFound,
    ProviderHasChildren,
    TreeLoop,
)
from berth.store.engine.database import Database
from berth.store.providers import create_provider, delete_provider
from berth.upkeep import schema
from tests.store.fleet import add_provider, move, provider
from tests.store.together import race

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")

TURNS = range(0, 50, 10)


def test_two_moves_cannot_make_a_loop(db: Database, other: Database) -> None:
    """Each alone is allowed; of both, the second is refused."""
    for turn in TURNS:
        for number, parent in ((1, None), (2, 1), (3, None), (4, 3)):
            add_provider(db, turn + number, parent=parent and turn + parent)
        outcome = race(
            partial(move, db, turn + 1, turn + 4), partial(move, other, turn + 3, turn + 2)
        )
        assert sorted(outcome, key=str) == [TreeLoop, None]
    assert schema.check(db) == []


def test_a_parent_cannot_go_while_it_gets_a_child(db: Database, other: Database) -> None:
    """Either the child is created first, or its parent no longer exists."""
    for turn in TURNS:
        add_provider(db, turn + 1)
        outcome = race(
            partial(delete_provider, db, provider(turn + 1)),
            partial(add_provider, other, turn + 2, parent=turn + 1),
        )
        assert outcome in ([None, ParentNotFound], [ProviderHasChildren, None])
    assert schema.check(db) == []


def test_a_name_is_taken_once(db: Database, other: Database) -> None:
    """The loser gets "name taken", not a lost race."""
    for turn in TURNS:
        calls = (
            partial(create_provider, where, uuid=provider(turn + number), name=f"n{turn}")
            for number, where in enumerate((db, other))
        )
        outcome = race(*(partial(call, parent_uuid=None) for call in calls))
        assert sorted(outcome, key=str) == [DuplicateProviderName, None]
