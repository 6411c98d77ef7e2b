# SPDX-License-Identifier: Apache-2.0
"""`berth migrate-inventory`: what an agent does when it starts, with every service stopped."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import click

from berth import deploy
from berth.cli.agent_options import AgentSource, of_agent
from berth.cli.db_opened import opened
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.migration_report import end, print_json, print_text
from berth.cli.options import ConfigurationSource, configured
from berth.cli.progress import reporting
from berth.cli.service_or_database import service_or_database
from berth.compute.adoption import take_over
from berth.compute.agent_config import AgentConfig
from berth.compute.migration import Outcome, migrate, undo
from berth.compute.report_client import ReportClient
from berth.compute.service import Transport
from berth.compute.state_lock import StateLock
from berth.compute.tracker import Driver, Tracker
from berth.compute.undo import UndoNotes, new_undo_path, read_changes
from berth.config import read_settings
from berth.store import schema

#: Attempts for one node: nobody else should write, and a database may be busy for a moment.
_ATTEMPTS_MAX: Final = 5


@click.command("migrate-inventory")
@of_agent
@click.option(
    "--dry-run", is_flag=True, help="Show what would be done, before and after; write nothing."
)
@click.option(
    "--undo-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where each reshape is written down.  [default: undo/reshape-TIME.jsonl in the agent's "
    "state directory]",
)
@click.option(
    "--undo",
    "to_undo",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take back the reshapes of such a file, and do nothing else.",
)
@click.option(
    "--url",
    metavar="URL",
    help="With --undo: of a service, which is asked with the token in OS_TOKEN; without it the "
    "database is opened directly.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@configured
def migrate_inventory(
    source: ConfigurationSource,
    agent_source: AgentSource,
    dry_run: bool,
    undo_file: Path | None,
    to_undo: Path | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Bring hosts into the shape that they are to have, with every service stopped.

    For each node of this host, inventory and what is held of it move as at the start of an agent,
    but in the database itself. A node is migrated wholly or not at all, one that cannot be does
    not hold up the others, and a second run finds nothing to do.

    Exit code: 0 where all is done, 13 where a dry run found something to do, 12 where what a host
    says and what is held of it do not agree, 10 where somebody else writes.
    """
    if url is not None and to_undo is None:
        raise click.UsageError("--url is for --undo: an agent reports to its service by itself")
    done: list[Outcome] = []
    with ExitStack() as stack:
        found = None if to_undo else agent_source.read()
        if url is None:
            _look_at_database(source, dry_run=dry_run)
        transport = service_or_database(source, url, stack, to_look_only=dry_run)
        notes = None
        if to_undo is not None:
            number, outcomes = _undoing(transport, to_undo, dry_run=dry_run)
        elif found is not None:
            notes = _notes(found, undo_file)
            if not dry_run:
                lock = StateLock()
                stack.callback(lock.close)
                lock.hold(found.state_dir)
            number, outcomes = _migrating(transport, found, notes, dry_run=dry_run)
        try:
            with reporting() as report:
                for outcome in outcomes:
                    done.append(outcome)
                    if number > 1:
                        report("nodes", len(done), number)
        except KeyboardInterrupt:
            click.echo("berth: broken off; the same command goes on from here", err=True)
            raise
        finally:
            # What was done is told even where the rest is broken off.
            undo_path = notes.path if notes else None
            (print_json if as_json else print_text)(done, undo_path, dry_run=dry_run)
    end(done, dry_run=dry_run)


def _look_at_database(source: ConfigurationSource, *, dry_run: bool) -> None:
    """See that the database is there, and tell of whoever seems to use it.

    Raises:
        CommandFailed: there is none.
    """
    settings = read_settings(source.load())
    name = settings.database.masked_url
    if deploy.is_absent(settings):
        raise CommandFailed(
            f"there is no database {name}: name the service's own with --config-file",
            ExitCode.DATABASE,
        )
    with opened(settings, to_look_only=True) as database:
        seconds = None if dry_run else schema.seconds_since_write(database)
    if seconds is not None:
        click.echo(
            f"warning: something wrote to {name} {seconds} seconds ago; if that was not this "
            f"command, stop every service that uses it",
            err=True,
        )


def _notes(found: AgentConfig, undo_file: Path | None) -> UndoNotes:
    return UndoNotes(lambda: undo_file or new_undo_path(found.state_dir))


def _migrating(
    transport: Transport, found: AgentConfig, notes: UndoNotes, *, dry_run: bool
) -> tuple[int, Iterator[Outcome]]:
    """How many nodes there are, and what becomes of each."""
    client = ReportClient(transport, note=notes.note)
    nodes = found.nodes(to_look_only=dry_run)
    driver = found.make_driver(client.get_usages, to_look_only=dry_run)
    keep = (lambda node: None) if dry_run else found.keep
    return len(nodes), migrate(
        _tracker(client, driver),
        nodes,
        dry_run=dry_run,
        take_over=partial(take_over, client.service, keep=keep if found.adopt else None),
    )


def _undoing(transport: Transport, path: Path, *, dry_run: bool) -> tuple[int, Iterator[Outcome]]:
    """How many changes there are, and what becomes of the node of each."""
    client = ReportClient(transport)
    changes = read_changes(path)
    return len(changes), undo(
        client, changes, lambda driver: _tracker(client, driver), dry_run=dry_run
    )


def _tracker(client: ReportClient, driver: Driver) -> Tracker:
    return Tracker(client, driver, attempts_max=_ATTEMPTS_MAX, pause=time.sleep, rng=Random())
