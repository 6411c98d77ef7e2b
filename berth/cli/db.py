# SPDX-License-Identifier: Apache-2.0
"""`berth db`: prepare the database, and look after it."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from berth import deploy
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.options import ConfigurationSource, configured
from berth.config import Settings, read_settings
from berth.store import schema
from berth.store.database import Database


@click.group()
def db() -> None:
    """Prepare the database, and look after it."""


@db.command()
@configured
def upgrade(source: ConfigurationSource) -> None:
    """Bring the schema to this release; repeatable, and the data stays.

    A database of the original service is taken over in place, and can be handed back.
    """
    with opened(source) as (settings, database):
        schema.upgrade(database)
        schema.sync_standard_names(database)
        click.echo(f"{settings.database.masked_url} is at {version_line(database)}")


@db.command()
@configured
def version(source: ConfigurationSource) -> None:
    """Print the schema's revisions: the original's, then berth's own; `None` for an empty one."""
    with opened(source) as (_, database):
        click.echo(version_line(database))


@db.command()
@configured
def check(source: ConfigurationSource) -> None:
    """Look for anything in the database that should not be; changes nothing."""
    with opened(source) as (settings, database):
        if not schema.is_current(database):
            raise deploy.SchemaNotReady(
                f"the database {settings.database.masked_url} is at {version_line(database)}, "
                f"which this release cannot check: run `berth db upgrade` first"
            )
        faults = schema.check(database)
    for fault in faults:
        click.echo(fault)
    if faults:
        raise CommandFailed(
            f"{len(faults)} faults found in {settings.database.masked_url}", ExitCode.INCONSISTENT
        )
    click.echo(f"nothing wrong in {settings.database.masked_url}")


@contextmanager
def opened(source: ConfigurationSource) -> Iterator[tuple[Settings, Database]]:
    """The settings and the open database of a command, whatever state the schema is in."""
    settings = read_settings(source.load())
    deploy.check_engine(settings)
    database = deploy.open_store(settings)
    try:
        yield settings, database
    finally:
        database.dispose()


def version_line(database: Database) -> str:
    """The schema's version, for people."""
    return schema.current_version(database)
