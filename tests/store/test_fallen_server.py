# SPDX-License-Identifier: Apache-2.0
"""InnoDB shows a commit before it is on disk. A server that crashes in between has shown a commit
that is lost, and an index may have applied it.
"""

from __future__ import annotations

import pytest
from sqlalchemy import text

from berth.index import Index
from berth.store.engine import journal
from berth.store.engine.database import Database
from berth.store.engine.journal import Touched
from berth.store.engine.project_deltas import ProjectDeltas
from berth.store.engine.transaction import Tx, Writer
from tests.index.checking import checked
from tests.store.fleet import add_provider, claim, holding

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")


def heads(db: Database) -> dict[int, int]:
    """writer -> seq."""
    with db.read() as tx:
        rows = tx.connection.execute(text("SELECT id, seq FROM berth_writer"))
        return {writer: seq for writer, seq in rows}  # noqa: C416 - rows are no pairs to mypy


def last_commit(db: Database, before: dict[int, int]) -> Writer:
    """The only commit since the start."""
    ((writer, seq),) = heads(db).items() - before.items()
    return Writer(writer, seq)


def take_back(db: Database, commit: Writer) -> Touched:
    """Undo the first claim of a fleet, as a crash would; return what it had changed."""
    of_commit = f"writer_id = {commit.id} AND seq = {commit.seq}"

    def unit(tx: Tx) -> Touched:
        provider = tx.connection.scalar(
            text(f"SELECT provider_id FROM berth_journal WHERE {of_commit}")
        )
        assert provider is not None
        for statement in (
            f"DELETE FROM berth_journal WHERE {of_commit}",
            f"UPDATE berth_writer SET seq = seq - 1 WHERE id = {commit.id}",
            "DELETE FROM allocations",
            "DELETE FROM consumers",
            "UPDATE berth_usages SET used = 0",
        ):
            tx.connection.execute(text(statement))
        return Touched(frozenset(), frozenset({provider}), ProjectDeltas(), {})

    return db.write_unnoted(unit)


def test_what_a_fallen_server_had_shown_is_forgotten(db: Database, other: Database) -> None:
    """The writer finds its commit missing, and adds the providers to the journal again, so that
    every index reloads them although the counter has not moved."""
    index = Index(other)
    add_provider(db, 1, VCPU=8)
    before = heads(db)
    claim(db, holding(1, {1: {"VCPU": 2}}))
    commit = last_commit(db, before)
    assert checked(index) == []
    touched = take_back(db, commit)
    db.write_unnoted(lambda tx: journal.fence(tx, commit, touched, tx.now))
    assert checked(index) == []
    with db.read() as tx:
        assert not journal.has_noted(tx, commit)


def test_a_commit_that_is_there_is_left_alone(db: Database, other: Database) -> None:
    """Its journal entry exists, so the clock stays as it is."""
    index = Index(other)
    add_provider(db, 1, VCPU=8)
    before = heads(db)
    claim(db, holding(1, {1: {"VCPU": 2}}))
    commit = last_commit(db, before)
    after = heads(db)
    touched = Touched(frozenset(), frozenset({1}), ProjectDeltas(), {})
    db.write_unnoted(lambda tx: journal.fence(tx, commit, touched, tx.now))
    assert heads(db) == after
    with db.read() as tx:
        assert journal.has_noted(tx, commit)
    assert checked(index) == []
