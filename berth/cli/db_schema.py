# SPDX-License-Identifier: Apache-2.0
"""The work of `berth db upgrade`, `version`, `release` and `new-identity`."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC

import click

from berth import deploy
from berth.cli.columns import counted
from berth.cli.damaged_rows import damage_of
from berth.cli.db_opened import current, opened
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.fleet.durations import utc_time
from berth.cli.local_database import database_of
from berth.cli.options import ConfigurationSource
from berth.cli.output import confirm, say
from berth.cli.progress import reporting
from berth.store.engine.database import Database
from berth.store.leases import ListedLease
from berth.upkeep import schema


def upgrade_schema(source: ConfigurationSource, *, force: bool) -> None:
    """Upgrade the schema of the configured database to this release, and print the steps.

    Args:
        force: upgrade even if another program wrote to the database within the last minute.
    """
    settings = database_of(source)
    with _resumable(), opened(settings) as database, reporting() as report:
        if not force:
            schema.refuse_while_others_write(database)
        done = schema.upgrade(
            database, owner=deploy.owner_of(settings), report=report, is_cautious=True
        )
        schema.sync_standard_names(database)
        schema.leave(database)
    for sentence in done:
        say(sentence)
    with opened(settings) as database:
        version = schema.current_version(database)
        if damage := damage_of(database):
            say(f"berth: the database has faults: {damage}", err=True)
    say(f"{settings.database.masked_url} is at {version}")


def print_version(source: ConfigurationSource) -> None:
    """Print the revisions of the schema; `None` if there is no database."""
    settings = database_of(source)
    if deploy.is_absent(settings):
        say("None")
        return
    with opened(settings, read_only=True) as database:
        say(schema.current_version(database))


def release_database(source: ConfigurationSource, *, yes: bool, force: bool) -> None:
    """Remove berth's own tables, and print their names.

    Args:
        yes: do not ask.
        force: release even if a berth service wrote to the database within the last minute.

    Raises:
        CommandFailed: there is no database, or the user did not confirm, or must use --yes.
        StillWritten: a berth service uses it.
    """
    settings = database_of(source, changes=True)
    name = settings.database.masked_url
    if deploy.is_absent(settings):
        raise CommandFailed(f"there is no database {name}", ExitCode.DATABASE)
    with opened(settings, read_only=True) as database:
        for sentence in schema.not_honoured(database):
            say(f"berth: {sentence}", err=True)
    with opened(settings) as database:
        _name_lost_leases(database, yes=yes)
        if not yes:
            _confirm(f"Remove berth's own tables from {name}?")
        removed = schema.release(database, force=force)
        version = schema.current_version(database)
    done = f"removed {', '.join(removed)} from" if removed else "no tables of berth's own in"
    say(f"{done} {name}, which is at {version}")


def renew_identity(source: ConfigurationSource) -> None:
    """Give the configured database a new identity.

    Raises:
        SchemaNotReady: there is no database, or its schema is not this release's.
    """
    settings = database_of(source, changes=True)
    with current(settings, "change") as database:
        schema.renew_identity(database)
    name = settings.database.masked_url
    say(f"{name} has a new identity; all earlier revisions are foreign")


def _name_lost_leases(database: Database, *, yes: bool) -> None:
    """Say which leases OpenStack Placement will not honour, the first to expire by name.

    Raises:
        CommandFailed: there are some, and the user did not agree beforehand.
    """
    count, first = schema.leases_to_end(database)
    if not count:
        return
    more = f", and {count - len(first)} more (`berth lease list`)" if count > len(first) else ""
    lost = (
        f"{counted(count, 'lease')} will not be honoured, because OpenStack Placement never takes "
        f"back what consumers hold: {', '.join(map(_in_words, first))}{more}"
    )
    if not yes:
        raise CommandFailed(
            f"{lost}. End them (`berth lease end`); or, once they have expired, run `berth lease "
            f"sweep`, with --config-file while no service runs; or use --yes to hand the database "
            f"back nevertheless",
            ExitCode.USAGE,
        )
    say(f"berth: {lost}", err=True)


def _in_words(lease: ListedLease) -> str:
    """A lease with its consumer and its project."""
    project = lease.project_id
    named = f"{project}/{lease.name}" if lease.name else f"{lease.consumer} of project {project}"
    return f"{named} until {utc_time(lease.expires_at.replace(tzinfo=UTC))}"


@contextmanager
def _resumable() -> Iterator[None]:
    """After Ctrl-C, say how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        say("berth: interrupted; run the same command again to continue", err=True)
        raise


def _confirm(question: str) -> None:
    """Ask the user to confirm.

    Raises:
        CommandFailed: the user did not, or there is no terminal.
    """
    try:
        agreed = confirm(question)
    except click.Abort as error:
        raise CommandFailed(
            "nothing was changed: use --yes to skip the question", ExitCode.USAGE
        ) from error
    if not agreed:
        raise CommandFailed("nothing was changed", ExitCode.INTERRUPTED)
