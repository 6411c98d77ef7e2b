# SPDX-License-Identifier: Apache-2.0
"""The work of `berth db upgrade`, `version` and `release`: the schema of the database."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from berth import deploy
from berth.cli.db_opened import opened
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.options import ConfigurationSource
from berth.cli.progress import reporting
from berth.config import read_settings
from berth.upkeep import schema


def upgrade_schema(source: ConfigurationSource, *, force: bool) -> None:
    """Bring the schema of the configured database to this release, and print what was done.

    Args:
        force: even if another program has written to the database within the last minute.
    """
    settings = read_settings(source.load())
    with _resumable(), opened(settings) as database, reporting() as report:
        if not force:
            schema.refuse_while_others_write(database)
        done = schema.upgrade(database, owner=deploy.owner_of(settings), report=report)
        schema.sync_standard_names(database)
    for sentence in done:
        click.echo(sentence)
    with opened(settings) as database:
        version = schema.current_version(database)
    click.echo(f"{settings.database.masked_url} is at {version}")


def print_version(source: ConfigurationSource) -> None:
    """Print the revisions of the schema; `None` where there is no database."""
    settings = read_settings(source.load())
    if deploy.is_absent(settings):
        click.echo("None")
        return
    with opened(settings, to_look_only=True) as database:
        click.echo(schema.current_version(database))


def release_database(source: ConfigurationSource, *, yes: bool, force: bool) -> None:
    """Remove berth's own tables, and print which they were.

    Args:
        yes: do not ask.
        force: although a berth wrote to the database within the last minute.

    Raises:
        CommandFailed: there is no database, or nobody agrees.
        StillWritten: a berth serves from it.
    """
    settings = read_settings(source.load())
    name = settings.database.masked_url
    if deploy.is_absent(settings):
        raise CommandFailed(f"there is no database {name}", ExitCode.DATABASE)
    if not yes:
        _confirm(f"Remove berth's own tables from {name}?")
    with opened(settings) as database:
        removed = schema.release(database, force=force)
        version = schema.current_version(database)
    what = f"removed {', '.join(removed)} from" if removed else "there is nothing of berth's in"
    click.echo(f"{what} {name}, which is at {version}")


@contextmanager
def _resumable() -> Iterator[None]:
    """Say after Ctrl-C that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("berth: broken off; the same command goes on from here", err=True)
        raise


def _confirm(question: str) -> None:
    """Go on only if somebody agrees.

    Raises:
        CommandFailed: nobody does, or nobody is there to be asked.
    """
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort as error:
        raise CommandFailed(
            "nothing has been changed: say --yes if nobody can answer", ExitCode.USAGE
        ) from error
    if not agreed:
        raise CommandFailed("nothing has been changed", ExitCode.INTERRUPTED)
