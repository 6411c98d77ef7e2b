# SPDX-License-Identifier: Apache-2.0
"""One service for all histories, emptied before each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import delete

from berth.api.app import create_app
from berth.config import Settings
from berth.index import Index
from berth.store.database import Database
from berth.store.tables import berth_writer, metadata, resource_classes, traits
from tests.client import Client

#: What an emptied database keeps: the clock goes on, and standard names are always there.
_KEPT: Final = (berth_writer, resource_classes, traits)


@dataclass(frozen=True, slots=True)
class Server:
    """The application over a database that holds nothing but the standard names."""

    client: Client
    index: Index


def emptied(database: Database, settings: Settings) -> Server:
    """The service anew: the database emptied behind its back, the index and all caches fresh.

    PERF a tenth of what a copy of a prepared file costs: its statements need not be compiled again.
    """
    with database.engine.begin() as connection:
        for table in reversed(metadata.sorted_tables):
            if table not in _KEPT:
                connection.execute(delete(table))
        for names in (resource_classes, traits):
            connection.execute(delete(names).where(names.c.name.startswith("CUSTOM_")))
    index = Index(database)
    return Server(Client.of(create_app(settings, database, index)), index)
