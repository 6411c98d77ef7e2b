# SPDX-License-Identifier: Apache-2.0
"""The work of `berth db check`."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from berth import deploy
from berth.cli.db_opened import opened
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.options import ConfigurationSource
from berth.config import Settings, read_settings
from berth.store.engine.database import Database
from berth.upkeep import schema


def check_database(source: ConfigurationSource, *, repair: bool, dry_run: bool) -> None:
    """Print what is wrong in the configured database, and with `repair` what is done about it.

    Raises:
        CommandFailed: something is wrong, or is left so.
        SchemaNotReady: it has not the schema whose invariants this release knows.
    """
    settings = read_settings(source.load())
    with _current(settings, to_look_only=dry_run or not repair) as database:
        if not repair:
            _check(database, settings)
        else:
            _repair(database, settings, dry_run=dry_run)


@contextmanager
def _current(settings: Settings, *, to_look_only: bool) -> Iterator[Database]:
    """The database, if it has the schema whose invariants this release knows."""
    name = settings.database.masked_url
    if deploy.is_absent(settings):
        raise deploy.SchemaNotReady(
            f"there is no database {name} to check: `berth db upgrade` makes it"
        )
    with opened(settings, to_look_only=to_look_only) as database:
        if (versions := schema.versions_of(database)) != schema.CURRENT:
            raise deploy.SchemaNotReady(
                f"{name} cannot be checked: {schema.why_not_current(versions)}"
            )
        yield database


def _check(database: Database, settings: Settings) -> None:
    found = 0
    for fault in schema.iter_faults(database):
        click.echo(fault.sentence)
        found += 1
    name = settings.database.masked_url
    if found:
        raise CommandFailed(
            f"{_counted(found)} found in {name}; `berth db check --repair --dry-run` says which of "
            f"them can be put right",
            ExitCode.INCONSISTENT,
        )
    click.echo(f"nothing wrong in {name}")


def _repair(database: Database, settings: Settings, *, dry_run: bool) -> None:
    """Say of each fault what is done about it, and do it unless this is a dry run."""
    find = schema.iter_faults if dry_run else schema.iter_repaired
    repaired = left = 0
    for fault in find(database, deploy.owner_of(settings)):
        click.echo(fault.sentence)
        if fault.action is not None:
            repaired += 1
            click.echo(f"  repair: {fault.action}")
        else:
            left += 1
            click.echo(f"  left alone: {fault.advice}")
    name = settings.database.masked_url
    if dry_run:
        click.echo(
            f"dry run: --repair would put right {_counted(repaired)} in {name} and leave {left}"
        )
    else:
        click.echo(f"put right {_counted(repaired)} in {name}")
    if left or (dry_run and repaired):
        raise CommandFailed(
            f"{_counted(left)} in {name} cannot be put right without you"
            if not dry_run
            else f"nothing has been changed in {name}",
            ExitCode.INCONSISTENT,
        )


def _counted(number: int) -> str:
    return f"{number} fault{'' if number == 1 else 's'}"
