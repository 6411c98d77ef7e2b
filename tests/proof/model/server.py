# SPDX-License-Identifier: Apache-2.0
"""One service for all histories; it is emptied before each of them."""

from __future__ import annotations

from dataclasses import dataclass

from berth.config import Settings
from berth.edge.app import create_app
from berth.index import Index
from berth.store.engine.database import Database
from tests.client import Client
from tests.fresh import wipe


@dataclass(frozen=True, slots=True)
class Server:
    """The application on a database with the standard names only."""

    client: Client
    index: Index


def emptied(database: Database, settings: Settings) -> Server:
    """Empty the database without the service, and give it a new index and new caches.

    PERF a tenth of the cost of copying a prepared file: its statements stay compiled.
    """
    wipe(database)
    index = Index(database)
    return Server(Client.of(create_app(settings, database, index)), index)
