# SPDX-License-Identifier: Apache-2.0
"""The work of `berth db copy`."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from berth import deploy
from berth.cli.db_opened import opened
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.options import ConfigurationSource
from berth.cli.progress import reporting
from berth.config import Settings, read_settings
from berth.model.errors import DatabaseUnavailable
from berth.store.engine.database import Database
from berth.upkeep import schema
from berth.upkeep.copying import Difference, Outcome, copy_database


def copy_to_empty(
    configuration: ConfigurationSource, from_url: str, to_url: str, *, force: bool
) -> None:
    """Copy a database into an empty one, compare the two, and print what was copied.

    Args:
        force: although somebody wrote to the first within the last minute.

    Raises:
        CommandFailed: there is nothing to copy, the copy broke off, or it is not the same.
    """
    origin, destination = (_settings_for(configuration, url) for url in (from_url, to_url))
    if deploy.is_absent(origin):
        raise CommandFailed(
            f"there is no database {origin.database.masked_url} to copy", ExitCode.DATABASE
        )
    with _reached(origin, to_look_only=True) as source, _reached(destination) as target:
        outcome = _copied(origin, destination, source, target, force=force)
    _tell(outcome, origin, destination)


def _settings_for(configuration: ConfigurationSource, url: str) -> Settings:
    """The settings of the service, but for another database."""
    conf = configuration.load()
    conf.set_override("connection", url, group="placement_database")
    conf.set_override("connection_parameters", "", group="placement_database")
    return read_settings(conf)


@contextmanager
def _reached(settings: Settings, *, to_look_only: bool = False) -> Iterator[Database]:
    """A database that can be read, whatever is in it; where it cannot, that is said of this one."""
    with opened(settings, to_look_only=to_look_only) as database:
        schema.is_empty(database)
        yield database


def _copied(
    origin: Settings, destination: Settings, source: Database, target: Database, *, force: bool
) -> Outcome:
    way = f"{origin.database.masked_url} to {destination.database.masked_url}"
    try:
        with reporting() as report:
            return copy_database(source, target, report=report, force=force)
    except Difference as error:
        raise CommandFailed(
            f"the copy from {way} is not the same: {error}; if somebody wrote to the source, stop "
            f"that, empty the target and begin again",
            ExitCode.INCONSISTENT,
        ) from error
    except DatabaseUnavailable as error:
        raise CommandFailed(
            f"the copy from {way} broke off: {error}; run the same command again to go on",
            ExitCode.DATABASE,
        ) from error


def _tell(outcome: Outcome, origin: Settings, destination: Settings) -> None:
    for note in outcome.notes:
        click.echo(f"note: {note}")
    for fault in outcome.faults:
        click.echo(fault)
    rows = sum(outcome.rows.values())
    click.echo(
        f"{destination.database.masked_url} is a copy of {origin.database.masked_url}: {rows} rows "
        f"in {len(outcome.rows)} tables, each compared"
    )
    if outcome.faults:
        raise CommandFailed(
            f"{len(outcome.faults)} faults were found in the copy, and are in "
            f"{origin.database.masked_url} too: see `berth db check`",
            ExitCode.INCONSISTENT,
        )
