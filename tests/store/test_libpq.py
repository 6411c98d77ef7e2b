# SPDX-License-Identifier: Apache-2.0
"""What PostgreSQL's connections keep."""

from __future__ import annotations

import gc
from weakref import ref

import pytest
from sqlalchemy import select

from berth.store.engine.database import Database
from berth.store.engine.tables import traits

pytestmark = pytest.mark.engines("postgresql")


def test_a_closed_connection_is_forgotten(db: Database) -> None:
    """Statements that were prepared on it do not keep it; a process may reconnect for ever."""
    with db.read() as tx:
        tx.rows(select(traits.c.id).limit(1), {})
        driver = ref(tx.connection.connection.dbapi_connection)
        del tx
    assert driver() is not None, "it is in the pool"
    db.dispose()
    gc.collect()
    assert driver() is None
