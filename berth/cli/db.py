# SPDX-License-Identifier: Apache-2.0
"""The work of `berth db`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC

import click

from berth import deploy
from berth.cli.columns import counted, utc_time
from berth.cli.failure import CommandFailed, ExitCode, Misused
from berth.cli.local_database import current, damage_of, database_of, opened
from berth.cli.output import confirm, say
from berth.cli.progress import reporting
from berth.cli.sources import ConfigurationSource
from berth.config import Settings, read_settings
from berth.model.errors import DatabaseUnavailable
from berth.store import identity
from berth.store.engine.database import Database
from berth.store.leases import ListedLease
from berth.store.versions import current_version, is_empty
from berth.upkeep import schema
from berth.upkeep.copying import Difference, Outcome, copy_database
from berth.upkeep.integrity import iter_faults, iter_repaired
from berth.upkeep.left_state import leave


def check_database(source: ConfigurationSource, *, repair: bool, dry_run: bool) -> None:
    """Print the inconsistencies in the configured database, and repair them with `repair`.

    Raises:
        CommandFailed: there are inconsistencies, or some are left.
        SchemaNotReady: the schema is not this release's.
        UsageError: a dry run of nothing.
    """
    if dry_run and not repair:
        raise click.UsageError("--dry-run needs --repair: it prints what --repair would do")
    settings = database_of(source, changes=repair and not dry_run)
    with current(settings, "check", read_only=dry_run or not repair) as database:
        if not repair:
            _check(database, settings)
        else:
            _repair(database, settings, dry_run=dry_run)


def _check(database: Database, settings: Settings) -> None:
    count = 0
    for fault in iter_faults(database):
        say(fault.sentence)
        count += 1
    name = settings.database.masked_url
    if count:
        raise CommandFailed(
            f"{_counted(count)} found in {name}; `berth db check --repair --dry-run` shows which "
            f"of them berth can repair",
            ExitCode.INCONSISTENT,
        )
    say(f"no faults found in {name}")


def _repair(database: Database, settings: Settings, *, dry_run: bool) -> None:
    """Print each fault with its repair, and make the repair unless this is a dry run."""
    find = iter_faults if dry_run else iter_repaired
    repaired = left = 0
    for fault in find(database, deploy.owner_of(settings)):
        say(fault.sentence)
        if fault.action is not None:
            repaired += 1
            say(f"  repair: {fault.action}")
        else:
            left += 1
            say(f"  left alone: {fault.advice}")
    name = settings.database.masked_url
    if dry_run:
        say(f"dry run: --repair would repair {_counted(repaired)} in {name} and leave {left}")
    else:
        say(f"repaired {_counted(repaired)} in {name}")
    if left or (dry_run and repaired):
        raise CommandFailed(
            f"{_counted(left)} in {name} need your attention"
            if not dry_run
            else f"nothing in {name} was changed",
            ExitCode.INCONSISTENT,
        )


def _counted(number: int) -> str:
    return f"{number} fault{'' if number == 1 else 's'}"


def copy_to_empty(source: ConfigurationSource, from_url: str, to_url: str, *, force: bool) -> None:
    """Copy a database into an empty one, compare the two, and print what was copied.

    Args:
        force: copy even if something wrote to the source within the last minute.

    Raises:
        CommandFailed: there is nothing to copy, the copy was interrupted, or it differs.
    """
    origin, destination = (_settings_for(source, url) for url in (from_url, to_url))
    if deploy.is_absent(origin):
        raise CommandFailed(
            f"there is no database {origin.database.masked_url} to copy", ExitCode.DATABASE
        )
    with _reached(origin, read_only=True) as copied, _reached(destination) as target:
        outcome = _copied(origin, destination, copied, target, force=force)
    _print(outcome, origin, destination)


def _settings_for(source: ConfigurationSource, url: str) -> Settings:
    """The settings of the service with another database."""
    conf = source.load()
    conf.set_override("connection", url, group="placement_database")
    conf.set_override("connection_parameters", "", group="placement_database")
    return read_settings(conf)


@contextmanager
def _reached(settings: Settings, *, read_only: bool = False) -> Iterator[Database]:
    """Open a database with any schema; an error names this database."""
    with opened(settings, read_only=read_only) as database:
        is_empty(database)
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
        leave(database)
    for sentence in done:
        say(sentence)
    with opened(settings) as database:
        version = current_version(database)
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
        say(current_version(database))


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
        version = current_version(database)
    done = f"removed {', '.join(removed)} from" if removed else "no tables of berth's own in"
    say(f"{done} {name}, which is at {version}")


def renew_identity(source: ConfigurationSource) -> None:
    """Give the configured database a new identity.

    Raises:
        SchemaNotReady: there is no database, or its schema is not this release's.
    """
    settings = database_of(source, changes=True)
    with current(settings, "change") as database:
        identity.renew_identity(database)
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
        raise Misused(
            f"{lost}. End them (`berth lease end`); or, once they have expired, run `berth lease "
            f"sweep`, with --config-file while no service runs; or use --yes to hand the database "
            f"back nevertheless"
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
        raise Misused("nothing was changed: use --yes to skip the question") from error
    if not agreed:
        raise CommandFailed("nothing was changed", ExitCode.INTERRUPTED)
