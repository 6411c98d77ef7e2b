# SPDX-License-Identifier: Apache-2.0
"""The work of `berth db copy`."""

from collections.abc import Iterator
from contextlib import contextmanager

from berth import deploy
from berth.cli.db_opened import opened
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.options import ConfigurationSource
from berth.cli.output import say
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
        force: copy even if something wrote to the source within the last minute.

    Raises:
        CommandFailed: there is nothing to copy, the copy was interrupted, or it differs.
    """
    origin, destination = (_settings_for(configuration, url) for url in (from_url, to_url))
    if deploy.is_absent(origin):
        raise CommandFailed(
            f"there is no database {origin.database.masked_url} to copy", ExitCode.DATABASE
        )
    with _reached(origin, read_only=True) as source, _reached(destination) as target:
        outcome = _copied(origin, destination, source, target, force=force)
    _print(outcome, origin, destination)


def _settings_for(configuration: ConfigurationSource, url: str) -> Settings:
    """The settings of the service with another database."""
    conf = configuration.load()
    conf.set_override("connection", url, group="placement_database")
    conf.set_override("connection_parameters", "", group="placement_database")
    return read_settings(conf)


@contextmanager
def _reached(settings: Settings, *, read_only: bool = False) -> Iterator[Database]:
    """Open a database with any schema; an error names this database."""
    with opened(settings, read_only=read_only) as database:
        schema.is_empty(database)
        yield database


def _copied(
    origin: Settings, destination: Settings, source: Database, target: Database, *, force: bool
) -> Outcome:
    urls = f"{origin.database.masked_url} to {destination.database.masked_url}"
    try:
        with reporting() as report:
            return copy_database(source, target, report=report, force=force)
    except Difference as error:
        raise CommandFailed(
            f"the copy from {urls} differs from the source: {error}; stop every service that "
            f"writes to the source, empty the target and start again",
            ExitCode.INCONSISTENT,
        ) from error
    except DatabaseUnavailable as error:
        raise CommandFailed(
            f"the copy from {urls} was interrupted: {error}; run the same command again to "
            f"continue",
            ExitCode.DATABASE,
        ) from error


def _print(outcome: Outcome, origin: Settings, destination: Settings) -> None:
    for note in outcome.notes:
        say(f"note: {note}")
    for fault in outcome.faults:
        say(fault)
    rows = sum(outcome.rows.values())
    say(
        f"{destination.database.masked_url} is a copy of {origin.database.masked_url}: {rows} rows "
        f"in {len(outcome.rows)} tables, all compared"
    )
    if outcome.faults:
        raise CommandFailed(
            f"the copy has {len(outcome.faults)} faults, as {origin.database.masked_url} has: "
            f"see `berth db check`",
            ExitCode.INCONSISTENT,
        )
