# SPDX-License-Identifier: Apache-2.0
"""The work of `berth db upgrade`, `version`, `release` and `new-identity`."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from berth import deploy
from berth.cli.db_opened import current, opened
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.options import ConfigurationSource
from berth.cli.progress import reporting
from berth.config import read_settings
from berth.upkeep import schema


def upgrade_schema(source: ConfigurationSource, *, force: bool) -> None:
    """Upgrade the schema of the configured database to this release, and print the steps.

    Args:
        force: upgrade even if another program wrote to the database within the last minute.
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
    """Print the revisions of the schema; `None` if there is no database."""
    settings = read_settings(source.load())
    if deploy.is_absent(settings):
        click.echo("None")
        return
    with opened(settings, read_only=True) as database:
        click.echo(schema.current_version(database))


def release_database(source: ConfigurationSource, *, yes: bool, force: bool) -> None:
    """Remove berth's own tables, and print their names.

    Args:
        yes: do not ask.
        force: release even if a berth service wrote to the database within the last minute.

    Raises:
        CommandFailed: there is no database, or the user did not confirm.
        StillWritten: a berth service uses it.
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
    done = f"removed {', '.join(removed)} from" if removed else "no tables of berth's own in"
    click.echo(f"{done} {name}, which is at {version}")


def renew_identity(source: ConfigurationSource) -> None:
    """Give the configured database a new identity.

    Raises:
        SchemaNotReady: there is no database, or its schema is not this release's.
    """
    settings = read_settings(source.load())
    with current(settings, "change") as database:
        schema.renew_identity(database)
    name = settings.database.masked_url
    click.echo(f"{name} has a new identity; all earlier revisions are foreign")


@contextmanager
def _resumable() -> Iterator[None]:
    """After Ctrl-C, say how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("berth: interrupted; run the same command again to continue", err=True)
        raise


def _confirm(question: str) -> None:
    """Ask the user to confirm.

    Raises:
        CommandFailed: the user did not, or there is no terminal.
    """
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort as error:
        raise CommandFailed(
            "nothing was changed: use --yes to skip the question", ExitCode.USAGE
        ) from error
    if not agreed:
        raise CommandFailed("nothing was changed", ExitCode.INTERRUPTED)
