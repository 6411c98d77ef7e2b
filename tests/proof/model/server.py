# SPDX-License-Identifier: Apache-2.0
"""One service for all histories, emptied before each of them."""

from __future__ import annotations

from dataclasses import dataclass

from berth.api.app import create_app
from berth.config import Settings
from berth.index import Index
from berth.store.engine.database import Database
from tests.client import Client
from tests.fresh import wipe


@dataclass(frozen=True, slots=True)
class Server:
    """The application over a database that holds nothing but the standard names."""

    client: Client
    index: Index


def emptied(database: Database, settings: Settings) -> Server:
    """The service anew: the database emptied behind its back, the index and all caches fresh.

    PERF a tenth of what a copy of a prepared file costs: its statements need not be compiled again.
    """
    wipe(database)
    index = Index(database)
    return Server(Client.of(create_app(settings, database, index)), index)
