# SPDX-License-Identifier: Apache-2.0
"""`berth db`: prepare the database, and look after it."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from berth import deploy
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed, naming_the_database
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
    settings = read_settings(source.load())
    with opened(settings) as database:
        schema.upgrade(database)
        schema.sync_standard_names(database)
        click.echo(f"{settings.database.masked_url} is at {version_line(database)}")


@db.command()
@configured
def version(source: ConfigurationSource) -> None:
    """Print the schema's revisions: the original's, then berth's own; `None` for an empty one."""
    settings = read_settings(source.load())
    if deploy.is_absent(settings):
        click.echo("None")
        return
    with opened(settings) as database:
        click.echo(version_line(database))


@db.command()
@configured
def check(source: ConfigurationSource) -> None:
    """Look for anything in the database that should not be; changes nothing."""
    settings = read_settings(source.load())
    name = settings.database.masked_url
    if deploy.is_absent(settings):
        raise deploy.SchemaNotReady(
            f"there is no database {name} to check: `berth db upgrade` makes it"
        )
    with opened(settings) as database:
        if not schema.is_current(database):
            raise deploy.SchemaNotReady(
                f"the schema of {name} is at {version_line(database)}, which this release cannot "
                f"check: run `berth db upgrade` first"
            )
        faults = schema.check(database)
    for fault in faults:
        click.echo(fault)
    if faults:
        plural = "" if len(faults) == 1 else "s"
        raise CommandFailed(f"{len(faults)} fault{plural} found in {name}", ExitCode.INCONSISTENT)
    click.echo(f"nothing wrong in {name}")


@contextmanager
def opened(settings: Settings) -> Iterator[Database]:
    """The open database of a command, whatever state the schema is in."""
    deploy.check_engine(settings)
    database = deploy.open_store(settings)
    try:
        with naming_the_database(settings):
            yield database
    finally:
        database.dispose()


def version_line(database: Database) -> str:
    """The schema's version, for people."""
    return schema.current_version(database)
