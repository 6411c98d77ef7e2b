# SPDX-License-Identifier: Apache-2.0
"""`placement-manage` for deployment tools: OpenStack Placement's commands, options, texts and exit
codes (spec/operations.md 5.1).

`db sync` makes a database that berth can serve: it also converts one of OpenStack Placement's, with
its data migrations, as `berth db upgrade` does. A failure prints one line, not a traceback.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from oslo_config import cfg
from prettytable import PrettyTable

from berth import config, deploy
from berth.cli.failure import failure_for
from berth.cli.local_database import opened
from berth.cli.output import say
from berth.config import Settings, read_settings
from berth.store.engine.database import Database
from berth.store.versions import versions_of
from berth.upkeep import schema
from berth.upkeep.integrity.consumers import make_consumers
from berth.upkeep.integrity.trees import give_roots

PROGRAM: Final = "placement-manage"

#: Rows in a batch of `online_data_migrations`.
BATCH_ROWS: Final = 50

#: Exit codes of `online_data_migrations` besides 0.
SOME_WERE_MIGRATED: Final = 1
A_MIGRATION_FAILED: Final = 2
NO_COUNT: Final = 127

#: Runs a command and returns its exit code.
_Run = Callable[[Database, Settings, argparse.Namespace], int]


def run(args: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    command = cfg.SubCommandOpt(
        "command", title="Command", help="Available commands", handler=_add_commands
    )
    if not args:
        _show_help(command)
        return 1
    try:
        conf = config.load_for_command(args, PROGRAM, command)
        chosen = conf.command
        if chosen.run is None:
            chosen.show_help()
            return 0
        settings = read_settings(conf)
        deploy.set_up_logging(conf)
        with opened(settings) as database:
            done: int = chosen.run(database, settings, chosen)
            return done
    except Exception as error:  # noqa: BLE001 - the outermost edge
        say(f"{PROGRAM}: {failure_for(error)}", err=True)
        return 1


def _show_help(command: cfg.SubCommandOpt) -> None:
    try:
        config.load_for_command(["--help"], PROGRAM, command)
    except SystemExit:
        return


def _add_commands(commands: Any) -> None:
    db = commands.add_parser("db", help="Available DB commands")
    db.set_defaults(run=None, show_help=db.print_help)
    of_db = db.add_subparsers(title="subcommands", description="database commands")

    def add(name: str, run: _Run, text: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = of_db.add_parser(name, help=text, description=text)
        parser.set_defaults(run=run)
        return parser

    add("sync", _sync, "Sync the database to the current version.")
    add("version", _show_version, "Report the current database version.")
    stamp = add("stamp", _stamp, "Stamp the revision table with the given version.")
    stamp.add_argument("version", help="the version to stamp, or head")
    migrate = add("online_data_migrations", _migrate_data, "Run the online data migrations.")
    migrate.add_argument(
        "--max-count", metavar="<number>", help="migrate this many rows, not everything"
    )


# --- The commands ---------------------------------------------------------------------------------


def _sync(database: Database, settings: Settings, _chosen: argparse.Namespace) -> int:
    schema.upgrade(database, owner=deploy.owner_of(settings))
    schema.sync_standard_names(database)
    return 0


def _show_version(database: Database, _settings: Settings, _chosen: argparse.Namespace) -> int:
    say(str(versions_of(database).placement))
    return 0


def _stamp(database: Database, _settings: Settings, chosen: argparse.Namespace) -> int:
    schema.stamp(database, chosen.version)
    return 0


def _migrate_data(database: Database, settings: Settings, chosen: argparse.Namespace) -> int:
    wanted = chosen.max_count
    if wanted is not None and not (wanted.isascii() and wanted.isdigit() and int(wanted)):
        say("Must supply a positive value for max_count")
        return NO_COUNT
    migrations = _Migrations(database, settings)
    if wanted is None:
        say(f"Running batches of {BATCH_ROWS} until complete")
        while migrations.run_batch(BATCH_ROWS):
            pass
        migrated = 0
    else:
        migrated = migrations.run_batch(int(wanted))
    say(*str(migrations.table()).splitlines())
    if migrations.has_failed and not migrated:
        return A_MIGRATION_FAILED
    return SOME_WERE_MIGRATED if migrated else 0


class _Migrations:
    """Runs the data migrations in batches, and counts the rows."""

    def __init__(self, database: Database, settings: Settings) -> None:
        owner = deploy.owner_of(settings)
        self._parts: dict[str, Callable[[int], Iterator[int]]] = {
            "set_root_provider_ids": lambda most: give_roots(database, most),
            "create_incomplete_consumers": lambda most: make_consumers(database, owner, most),
        }
        #: Migrated rows by migration, for those that a batch reached.
        self._migrated: dict[str, int] = {}
        self.has_failed = False

    def run_batch(self, most: int) -> int:
        """Migrate up to `most` rows, and return how many."""
        left = most
        for name, part in self._parts.items():
            if not left:
                break
            try:
                migrated = next(part(left), 0)
            except Exception as error:  # noqa: BLE001 - reported; the other migrations still run
                say(f"Error attempting to run {name}: {failure_for(error)}", err=True)
                self.has_failed = True
                migrated = 0
            if migrated:
                say(f"{migrated} rows matched query {name}, {migrated} migrated")
            self._migrated[name] = self._migrated.get(name, 0) + migrated
            left -= migrated
        return most - left

    def table(self) -> PrettyTable:
        """The migrated rows as a table."""
        table = PrettyTable(["Migration", "Total Found", "Completed"])
        for name, migrated in self._migrated.items():
            table.add_row([name, migrated, migrated])
        return table
