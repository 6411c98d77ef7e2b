# SPDX-License-Identifier: Apache-2.0
"""One at a time may change the schema: two upgrades of one database do not meet.

The lock is the session's, so it ends with whoever holds it, however that ends. Within a Galera
cluster it holds on one node only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from sqlalchemy import Connection, exc, func, select

from berth.store.engine.database import Database

#: How the lock is called where locks have numbers: the letters of "berth".
_NUMBER: Final = int.from_bytes(b"berth", "big")

#: How long the lock is waited for at a time, where an engine wants to know.
_WAIT_S: Final = 60


@contextmanager
def schema_lock(db: Database) -> Iterator[None]:
    """Hold the lock of a database's schema; waits for as long as another does.

    SQLite needs none: what changes the schema there has the whole file to itself.
    """
    with db.read() as tx:
        engine = tx.connection.dialect.name
    if engine == "sqlite":
        yield
        return
    with db.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        _take(connection, engine)
        try:
            yield
        finally:
            # It ends with the session, which does not go back to the pool.
            with suppress(exc.SQLAlchemyError):
                connection.invalidate()


def _take(connection: Connection, engine: str) -> None:
    if engine == "postgresql":
        connection.execute(select(func.pg_advisory_lock(_NUMBER)))
        return
    # Locks of this kind are the whole server's.
    name = func.left(func.concat("berth ", func.database()), 64)
    while connection.scalar(select(func.get_lock(name, _WAIT_S))) != 1:
        continue
