# SPDX-License-Identifier: Apache-2.0
"""The work of `berth db check`."""

from berth import deploy
from berth.cli.db_opened import current
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.local_database import database_of
from berth.cli.options import ConfigurationSource
from berth.cli.output import say
from berth.config import Settings
from berth.store.engine.database import Database
from berth.upkeep import schema


def check_database(source: ConfigurationSource, *, repair: bool, dry_run: bool) -> None:
    """Print the inconsistencies in the configured database, and repair them with `repair`.

    Raises:
        CommandFailed: there are inconsistencies, or some are left.
        SchemaNotReady: the schema is not this release's.
    """
    settings = database_of(source, changes=repair and not dry_run)
    with current(settings, "check", read_only=dry_run or not repair) as database:
        if not repair:
            _check(database, settings)
        else:
            _repair(database, settings, dry_run=dry_run)


def _check(database: Database, settings: Settings) -> None:
    count = 0
    for fault in schema.iter_faults(database):
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
    find = schema.iter_faults if dry_run else schema.iter_repaired
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
