# SPDX-License-Identifier: Apache-2.0
"""Open the database for a `berth db` command."""

from collections.abc import Iterator
from contextlib import contextmanager

from berth import deploy
from berth.cli.failure import naming_the_database
from berth.config import Settings
from berth.store.engine.database import Database
from berth.upkeep import schema


@contextmanager
def opened(settings: Settings, *, read_only: bool = False) -> Iterator[Database]:
    """The configured database, whatever its schema.

    Args:
        read_only: change nothing, not even the file; a read-only file is enough.

    Raises:
        CommandFailed: the database cannot be used; names it and the next step.
    """
    database = deploy.open_store(settings, read_only=read_only)
    try:
        with naming_the_database(settings):
            database.reach()
            yield database
    finally:
        database.dispose()


@contextmanager
def current(settings: Settings, purpose: str, *, read_only: bool = False) -> Iterator[Database]:
    """The configured database, if its schema is this release's.

    Args:
        purpose: a verb, for messages.
        read_only: change nothing.

    Raises:
        SchemaNotReady: there is no database, or it has another schema.
        CommandFailed: it cannot be used.
    """
    name = settings.database.masked_url
    if deploy.is_absent(settings):
        raise deploy.SchemaNotReady(
            f"there is no database {name} to {purpose}; create it with `berth db upgrade`"
        )
    with opened(settings, read_only=read_only) as database:
        if (versions := schema.versions_of(database)) != schema.CURRENT:
            why = schema.why_not_current(versions)
            raise deploy.SchemaNotReady(f"cannot {purpose} {name}: {why}")
        yield database
