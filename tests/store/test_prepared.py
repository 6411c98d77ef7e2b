# SPDX-License-Identifier: Apache-2.0
"""Prepared statements have the same results as SQLAlchemy with the same statement, only faster."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Executable, bindparam, func, select
from sqlalchemy.exc import IntegrityError, OperationalError

from berth.store.engine import prepared
from berth.store.engine.database import Database
from berth.store.engine.joined_inserts import joined_inserts
from berth.store.engine.prepared import Statements, insert_of
from berth.store.engine.tables import projects, resource_providers
from berth.store.engine.transaction import Tx
from tests.store.fleet import add_provider

#: Statements of other engines are run by all other tests here.
pytestmark = pytest.mark.engines("sqlite")


_rp = resource_providers.c
NOW = datetime(2030, 1, 2, 3, 4, 5)

BY_NAMES = select(_rp.name, _rp.created_at, _rp.updated_at).where(
    _rp.name.in_(bindparam("names", expanding=True)), _rp.generation >= 0
)
BY_TWO_LISTS = (
    select(_rp.name, func.coalesce(_rp.generation, 7))
    .where(
        _rp.name.in_(bindparam("names", expanding=True))
        | _rp.id.in_(bindparam("ids", expanding=True))
    )
    .order_by(_rp.id)
)
OF_TIME = select(_rp.name).where(_rp.created_at < bindparam("now")).order_by(_rp.id)


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        *((BY_NAMES, {"names": [f"p{n}" for n in range(count)]}) for count in (0, 1, 4)),
        *((BY_TWO_LISTS, {"names": ["p1"] * n, "ids": [2, 3][:m]}) for n in (0, 1) for m in (0, 2)),
        (OF_TIME, {"now": NOW}),
        (OF_TIME, {"now": datetime(2000, 1, 1)}),
    ],
)
def test_a_query_finds_what_sqlalchemy_finds(
    db: Database, query: Executable, parameters: dict[str, Any]
) -> None:
    """With times converted and lists of any length, on the first and the second run."""
    for number in range(1, 5):
        add_provider(db, number)
    with db.read() as tx:
        expected = [tuple(row) for row in tx.connection.execute(query, parameters)]
        assert tx.rows(query, parameters) == expected
        assert tx.rows(query, parameters) == expected


def test_a_write_says_how_many_rows_it_wrote(db: Database) -> None:
    """For one or many sets of values, with times converted."""
    insert = insert_of(projects, "external_id", "created_at")

    def unit(tx: Tx) -> tuple[int, int]:
        return (
            tx.change(insert, {"external_id": "a", "created_at": NOW}),
            tx.change(insert, [{"external_id": name, "created_at": NOW} for name in "bcd"]),
        )

    assert db.write(unit) == (1, 3)
    with db.read() as tx:
        rows = tx.connection.execute(select(projects.c.external_id, projects.c.created_at)).all()
    assert sorted(map(tuple, rows)) == [(name, NOW) for name in "abcd"]


def test_errors_are_sqlalchemys(db: Database) -> None:
    """The rest of the store handles one kind of error. Its message does not contain the values."""
    insert = insert_of(projects, "id", "external_id")

    def twice(tx: Tx) -> None:
        tx.change(insert, [{"id": 1, "external_id": "secret"}, {"id": 1, "external_id": "b"}])

    with pytest.raises(IntegrityError) as refused:
        db.write(twice)
    assert "secret" not in str(refused.value)
    with db.read() as tx, pytest.raises(OperationalError, match="no such function"):
        tx.rows(select(func.nonsense(_rp.id)), {})


def test_statements_must_not_be_built_again_for_each_call(db: Database) -> None:
    """They would be cached without limit."""
    statements = Statements(db.engine.dialect)
    with pytest.raises(AssertionError, match="built again"):
        for _ in range(1000):
            statements.prepared(select(_rp.id))


def test_texts_of_many_lengths_do_not_pile_up(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With three lists of up to 500 names, a statement has a hundred million different texts."""
    monkeypatch.setattr(prepared, "_TEXTS_MAX", 3)
    with db.read() as tx:
        known = tx._statements.prepared(BY_TWO_LISTS)
        for count in range(10):
            assert tx.rows(BY_TWO_LISTS, {"names": ["p"] * count, "ids": []}) == []
            assert len(known._texts) <= 3


@pytest.mark.parametrize("most", [1, 3, 4, 7, 8, 100])
def test_rows_are_joined_into_few_inserts(most: int) -> None:
    """All of them, in their order, for engines that take many rows faster than many statements."""
    rows = [(number, f"p{number}") for number in range(8)]
    insert = "INSERT INTO things (id, name) VALUES (?, ?) ON CONFLICT DO NOTHING"
    sent: list[Any] = []
    with closing(sqlite3.connect(":memory:")) as things:
        things.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT)")
        for statement, values in joined_inserts(insert, rows, most):
            sent.append(things.execute(statement, values).rowcount)
        assert things.execute("SELECT * FROM things ORDER BY id").fetchall() == rows
    assert len(sent) == -(-len(rows) // most)
    assert max(sent) == min(most, len(rows))


def test_a_connection_that_falls_before_its_first_transaction_is_told_as_lost(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As SQLAlchemy's error for a lost connection, so that clients get 503 and retry."""

    class Fallen:
        def autocommit(self, on: bool) -> None:
            raise sqlite3.OperationalError("lost connection")

    with db.engine.connect() as connection:
        run = prepared.Runner(connection)
        monkeypatch.setattr(run, "_driver", Fallen())
        with pytest.raises(OperationalError, match="lost connection"):
            run.begin_by_hand()
