# SPDX-License-Identifier: Apache-2.0
"""Prepared statements have the same results as SQLAlchemy with the same statement, only faster."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import bindparam, func, select, update
from sqlalchemy.exc import IntegrityError, OperationalError

from berth.store.engine import prepared
from berth.store.engine.database import Database
from berth.store.engine.prepared import Statements, _Packets, insert_of
from berth.store.engine.tables import projects, resource_providers
from berth.store.engine.transaction import Tx
from berth.store.engine.wire import Packed, Statement, in_batches, joined_inserts
from tests.store.fleet import add_provider

#: Statements of other engines are run by all other tests here.
pytestmark = pytest.mark.engines("sqlite")

_rp = resource_providers.c
NOW = datetime(2030, 1, 2, 3, 4, 5)
BY_TWO_LISTS = (
    select(_rp.name, func.coalesce(_rp.generation, 7), _rp.created_at)
    .where(
        _rp.name.in_(bindparam("names", expanding=True))
        | _rp.id.in_(bindparam("ids", expanding=True)),
        _rp.created_at < bindparam("now"),
    )
    .order_by(_rp.id)
)


def test_a_query_finds_what_sqlalchemy_finds(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """With times converted and lists of any length, on the first and the second run. Texts of many
    lengths do not pile up, nor do statements that are built again for each call: with three lists
    of up to 500 names, a statement has a hundred million different texts."""
    monkeypatch.setattr(prepared, "_TEXTS_MAX", 3)
    for number in range(1, 5):
        add_provider(db, number)
    with db.read() as tx:
        known = tx._statements.prepared(BY_TWO_LISTS)
        for count in (0, 1, 4, 9):
            for ids in ([], [2, 3]):
                for now in (NOW, datetime(2000, 1, 1)):
                    names = [f"p{number}" for number in range(count)]
                    values = {"names": names, "ids": ids, "now": now}
                    due = [tuple(row) for row in tx.connection.execute(BY_TWO_LISTS, values)]
                    assert tx.rows(BY_TWO_LISTS, values) == due
                    assert tx.rows(BY_TWO_LISTS, values) == due
                    assert len(known._texts) <= 3
    statements = Statements(db.engine.dialect)
    with pytest.raises(AssertionError, match="built again"):
        for _ in range(1000):
            statements.prepared(select(_rp.id))


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


@pytest.mark.engines("mariadb")
def test_a_write_of_many_rows_is_sent_in_parts(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers to one part must fit into the buffers between client and server."""
    parts: list[int] = []
    counts = _Packets._sent

    def counted(packets: _Packets, statements: Sequence[Any]) -> list[int]:
        parts.append(len(statements))
        return counts(packets, statements)

    def unit(tx: Tx) -> tuple[list[int], int]:
        tx.change(insert_of(projects, "external_id"), [{"external_id": name} for name in "abde"])
        rows = [{"old": name, "new": f"{name}2"} for name in "abcde"]
        written = tx.change_each(rename, rows)
        return written, tx.change(rename, [{"old": row["new"], "new": row["old"]} for row in rows])

    name = projects.c.external_id
    rename = update(projects).where(name == bindparam("old")).values(external_id=bindparam("new"))
    monkeypatch.setattr(prepared, "_PACKET_MAX", 2)
    monkeypatch.setattr(_Packets, "_sent", counted)
    assert db.write(unit) == ([1, 1, 0, 1, 1], 4)
    assert parts[-6:] == [2, 2, 1] * 2


def test_errors_are_sqlalchemys(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the store handles one kind of error. Its message does not contain the values. A
    connection that falls before its first transaction is told as lost, so that clients get 503."""
    insert = insert_of(projects, "id", "external_id")

    def twice(tx: Tx) -> None:
        tx.change(insert, [{"id": 1, "external_id": "secret"}, {"id": 1, "external_id": "b"}])

    with pytest.raises(IntegrityError) as refused:
        db.write(twice)
    assert "secret" not in str(refused.value)
    with db.read() as tx, pytest.raises(OperationalError, match="no such function"):
        tx.rows(select(func.nonsense(_rp.id)), {})

    class Fallen:
        def autocommit(self, on: bool) -> None:
            raise sqlite3.OperationalError("lost connection")

    with db.engine.connect() as connection:
        run = prepared.Runner(connection)
        monkeypatch.setattr(run, "_driver", Fallen())
        with pytest.raises(OperationalError, match="lost connection"):
            run.begin_by_hand()


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


@pytest.mark.parametrize("statements_max", [1, 2, 3, 4, 5, 100])
def test_counts_come_back_to_their_statements(statements_max: int) -> None:
    """Wherever a part ends: within a statement's sets of values, or between two statements."""
    sizes: list[int] = []

    def run(statements: Sequence[Statement]) -> list[int]:
        sizes.append(len(statements))
        return [sum(values) for _, values in statements]

    batch = [
        Packed("UPDATE a SET x = ?", [(1,), (2,), (3,)]),
        Packed("INSERT INTO b (x) VALUES (?)", [(4,), (5,), (6,)]),
        Packed("DELETE FROM c WHERE x = ?", [(7,)]),
    ]
    assert in_batches(batch, 2, statements_max, run) == [[1, 2, 3], [9, 6], [7]]
    assert sum(sizes) == 6
    assert max(sizes) == min(statements_max, 6)
