# SPDX-License-Identifier: Apache-2.0
"""The open database of a `berth db` command."""

from collections.abc import Iterator
from contextlib import contextmanager

from berth import deploy
from berth.cli.failure import naming_the_database
from berth.config import Settings
from berth.store.engine.database import Database


@contextmanager
def opened(settings: Settings, *, to_look_only: bool = False) -> Iterator[Database]:
    """The configured database, whatever state its schema is in.

    Args:
        to_look_only: leave it as it is, down to the file; works where it can only be read.

    Raises:
        CommandFailed: it cannot be used; says which it is, and what to look at.
    """
    database = deploy.open_store(settings, to_look_only=to_look_only)
    try:
        with naming_the_database(settings):
            database.reach()
            yield database
    finally:
        database.dispose()
