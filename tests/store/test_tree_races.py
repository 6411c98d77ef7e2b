# SPDX-License-Identifier: Apache-2.0
"""Races over the parent of a provider, in threads over two open databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from berth.model.errors import (
    BerthError,
    DuplicateProviderName,
    ParentNotFound,
    ProviderHasChildren,
    TreeLoop,
)
from berth.store.engine.database import Database
from berth.store.providers import create_provider, delete_provider, update_provider
from berth.upkeep import schema
from tests.store.fleet import add_provider, provider


def race(*calls: object) -> list[type[BerthError] | None]:
    """Run the calls at the same time; return the error of each, or None."""
    start = Barrier(len(calls))

    def run(call: object) -> type[BerthError] | None:
        assert callable(call)
        start.wait()
        try:
            call()
        except BerthError as error:
            return type(error)
        return None

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@pytest.mark.parametrize("turn", range(5))
def test_two_moves_cannot_make_a_loop(db: Database, other: Database, turn: int) -> None:
    """Each alone is allowed; of both, the second is refused."""
    for number, parent in ((1, None), (2, 1), (3, None), (4, 3)):
        add_provider(db, number, parent=parent)

    def move(where: Database, number: int, parent: int) -> None:
        update_provider(
            where,
            provider(number),
            name=f"p{number}",
            parent_uuid=provider(parent),
            may_reparent=True,
        )

    outcome = race(lambda: move(db, 1, 4), lambda: move(other, 3, 2))
    assert sorted(outcome, key=str) == [TreeLoop, None]
    assert schema.check(db) == []


@pytest.mark.parametrize("turn", range(5))
def test_a_parent_cannot_go_while_it_gets_a_child(db: Database, other: Database, turn: int) -> None:
    """Either the child is created first, or its parent no longer exists."""
    add_provider(db, 1)
    outcome = race(
        lambda: delete_provider(db, provider(1)), lambda: add_provider(other, 2, parent=1)
    )
    assert outcome in ([None, ParentNotFound], [ProviderHasChildren, None])
    assert schema.check(db) == []


@pytest.mark.parametrize("turn", range(5))
def test_a_name_is_taken_once(db: Database, other: Database, turn: int) -> None:
    """The loser gets "name taken", not a lost race."""
    outcome = race(
        lambda: create_provider(db, uuid=provider(1), name="n", parent_uuid=None),
        lambda: create_provider(other, uuid=provider(2), name="n", parent_uuid=None),
    )
    assert sorted(outcome, key=str) == [DuplicateProviderName, None]
