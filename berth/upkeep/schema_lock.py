# SPDX-License-Identifier: Apache-2.0
"""A lock, so that two processes never change one schema at the same time.

The lock belongs to the session, so it ends with its process, however that ends. In a Galera cluster
it applies to one node only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import exc

from berth.store.engine.database import Database


@contextmanager
def schema_lock(db: Database) -> Iterator[None]:
    """Hold the lock of a database's schema; waits as long as another process has it."""
    with db.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        db.dialect.lock_schema(connection)
        try:
            yield
        finally:
            # The lock ends with the session, which does not go back to the pool.
            with suppress(exc.SQLAlchemyError):
                connection.invalidate()
