# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: databases with the standard names and nothing else, on each engine.

A file is copied. A server is slow at making tables, so there one database serves all tests of the
run, and is emptied for each.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from berth.store.engine.database import Database
    from tests.servers.server import Databases

#: From a folder that a file may be put into to the URL of a database.
Fresh = Callable[[Path], str]


@pytest.fixture(scope="session")
def fresh(engine: str, databases: Databases, prepared: Path) -> Fresh:
    """Makes a fresh database; on a server that is the end of the one before."""
    if engine == "sqlite":
        return lambda folder: f"sqlite:///{shutil.copy(prepared, folder / 'berth.db')}"
    url = databases.create_database()
    prepare(url)

    def emptied(_folder: Path) -> str:
        empty(url)
        return url

    return emptied


#: Ids begin anew.
_RESTART: Final = "SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'"


def opened_at(url: str, *, in_list_max: int | None = None) -> Database:
    """The database of a URL; if it is a file, commits need not survive the machine.

    Args:
        in_list_max: after how many values a list is cut; None: as in service.
    """
    from berth.store.engine.opening import DatabaseOptions, open_database
    from berth.store.engine.transaction import IN_LIST_MAX

    options = DatabaseOptions(synchronous=False)
    return open_database(url, options=options, in_list_max=in_list_max or IN_LIST_MAX)


def prepare(url: str) -> None:
    """Make the tables, and write the standard names."""
    from berth.upkeep import schema

    db = opened_at(url)
    schema.upgrade(db)
    schema.sync_standard_names(db)
    db.dispose()


def wipe(db: Database) -> None:
    """Take everything out but the names, the standard ones of which stay, the clock, and the
    identity."""
    from berth.store.engine.tables import (
        berth_meta,
        berth_writer,
        metadata,
        resource_classes,
        resource_providers,
        traits,
    )

    names = (resource_classes, traits)
    with db.engine.begin() as connection:
        # MariaDB does not delete a row to which one that goes later refers.
        alone = resource_providers.update().values(parent_provider_id=None, root_provider_id=None)
        connection.execute(alone)
        for table in reversed(metadata.sorted_tables):
            if table not in (*names, berth_writer, berth_meta):
                connection.execute(table.delete())
        for table in names:
            connection.execute(table.delete().where(table.c.name.startswith("CUSTOM_")))


def empty(url: str) -> None:
    """Take everything out of a server's database but the standard names and its identity; ids begin
    anew."""
    from sqlalchemy import text

    from berth.store.engine.tables import berth_meta, berth_writer, metadata, resource_providers
    from berth.upkeep import schema

    db = opened_at(url)
    with db.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        if connection.dialect.name == "postgresql":
            # A tenth of the time of a TRUNCATE, which makes files anew.
            tables = [table for table in metadata.sorted_tables if table is not berth_meta]
            deletes = "".join(f"DELETE FROM {table.name}; " for table in reversed(tables))
            connection.execute(text(f"DO $$ BEGIN {deletes}END $$"))
            connection.execute(text(_RESTART))
        else:
            connection.execute(text("SET SESSION foreign_key_checks = 0"))
            for table in set(metadata.sorted_tables) - {berth_meta}:
                is_numbered = table in (resource_providers, berth_writer)
                how = "TRUNCATE" if is_numbered else "DELETE FROM"
                connection.execute(text(f"{how} {table.name}"))
            connection.execute(text("SET SESSION foreign_key_checks = 1"))
    schema.sync_standard_names(db)
    db.dispose()
