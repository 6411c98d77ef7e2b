# SPDX-License-Identifier: Apache-2.0
"""The identity of a database."""

from __future__ import annotations

from sqlalchemy import delete

from berth.index import Index
from berth.store.engine.database import Database
from berth.store.engine.tables import berth_meta
from berth.store.identity import IDENTITY_BYTES, NO_IDENTITY, read_identity, renew_identity
from berth.upkeep import schema
from berth.upkeep.data_migrations import NOBODY_IN_PARTICULAR


def identity(db: Database) -> bytes:
    """The stored identity."""
    with db.read() as tx:
        return read_identity(tx)


def test_a_database_has_an_identity_until_it_is_renewed(db: Database) -> None:
    """An upgrade keeps it; every running index sees a new one."""
    first = identity(db)
    assert len(first) == IDENTITY_BYTES and first != NO_IDENTITY
    schema.upgrade(db)
    assert identity(db) == first
    index = Index(db)
    assert index.snapshot().clock.identity == first
    renew_identity(db)
    assert identity(db) != first
    assert index.snapshot().clock.identity == identity(db)
    assert index.counts.loads == 1


def test_a_lost_identity_is_found_and_replaced(db: Database) -> None:
    """By a repair."""
    db.write_unnoted(lambda tx: tx.connection.execute(delete(berth_meta)) and None)
    assert identity(db) == NO_IDENTITY
    assert schema.check(db) == ["the database has no identity"]
    faults = list(schema.iter_repaired(db, NOBODY_IN_PARTICULAR))
    assert [fault.action for fault in faults] == ["give the database a new identity"]
    assert schema.check(db) == [] and identity(db) != NO_IDENTITY
