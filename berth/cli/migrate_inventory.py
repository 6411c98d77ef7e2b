# SPDX-License-Identifier: Apache-2.0
"""The work of `berth migrate-inventory`: on the database, or an undo on a running service."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click

from berth.cli.fleet.access import Access, connect
from berth.cli.migration_report import end, print_json, print_text
from berth.cli.output import say
from berth.cli.progress import reporting
from berth.cli.sources import AgentSource, ConfigurationSource
from berth.hosts.adoption import take_over
from berth.hosts.agent_config import AgentConfig
from berth.hosts.migration import Outcome, migrate, undo
from berth.hosts.report_client import ReportClient
from berth.hosts.service import Transport
from berth.hosts.state_dir import StateLock
from berth.hosts.tracker import Tracker
from berth.hosts.undo import UndoNotes, new_undo_path, read_changes


def migrate_inventory(
    access: Access,
    agent_source: AgentSource,
    *,
    undo_file: Path | None,
    to_undo: Path | None,
    dry_run: bool,
) -> None:
    """Migrate each node of the host, or undo the reshapes of a file, and print the result.

    Args:
        undo_file: records each reshape; None: a new file in the state directory.
        to_undo: undo the reshapes of this file instead, also on a service.

    Raises:
        CommandFailed: there is no database, or some nodes were not migrated.
        UsageError: it is a service that would be migrated.
    """
    is_on_database = not access.is_of_service(os.environ)
    if to_undo is None and not is_on_database:
        raise click.UsageError(
            "a service is named (--url, BERTH_URL or the like), where the agent itself migrates; "
            "name the database with --config-file, or use --undo"
        )
    done: list[Outcome] = []
    with ExitStack() as stack:
        agent_config = None if to_undo else agent_source.read()
        if is_on_database:
            _look_at_database(access.source, dry_run=dry_run)
        transport = connect(access, os.environ, stack, read_only=dry_run, is_quiet=is_on_database)
        notes = None
        if to_undo is not None:
            number, outcomes = _undoing(transport, to_undo, dry_run=dry_run)
        elif agent_config is not None:
            notes = _notes(agent_config, undo_file)
            if not dry_run:
                lock = StateLock()
                stack.callback(lock.close)
                lock.hold(agent_config.state_dir)
            client = ReportClient(transport, note=notes.note)
            number, outcomes = migrating(client, agent_config, dry_run=dry_run)
        try:
            with reporting() as report:
                for outcome in outcomes:
                    done.append(outcome)
                    if number > 1:
                        report("nodes", len(done), number)
        except KeyboardInterrupt:
            say("berth: interrupted; run the same command again to continue", err=True)
            raise
        finally:
            # Print this even if the command is interrupted.
            undo_path = notes.path if notes else None
            (print_json if access.as_json else print_text)(done, undo_path, dry_run=dry_run)
    end(done, dry_run=dry_run)


def migrating(
    client: ReportClient, agent_config: AgentConfig, *, dry_run: bool
) -> tuple[int, Iterator[Outcome]]:
    """The number of nodes of a host, and the result for each, as it is migrated.

    Args:
        dry_run: write nothing, neither to the service nor to the host.
    """
    nodes = agent_config.nodes(read_only=dry_run)
    driver = agent_config.make_driver(client.get_usages, client.drains_of, read_only=dry_run)
    keep = (lambda node: None) if dry_run else agent_config.keep
    return len(nodes), migrate(
        Tracker(client, driver),
        nodes,
        dry_run=dry_run,
        take_over=partial(take_over, client.service, keep=keep if agent_config.adopt else None),
    )


def _look_at_database(source: ConfigurationSource, *, dry_run: bool) -> None:
    """Check that the database exists, and warn if a service seems to use it.

    Raises:
        CommandFailed: it does not exist, or nothing names it.
    """
    # Imported here: an undo on a running service does not need them.
    from berth.cli.local_database import database_of, opened
    from berth.upkeep import schema

    settings = database_of(
        source, changes=not dry_run, must_exist=True, instead="--url or BERTH_URL"
    )
    name = settings.database.masked_url
    with opened(settings, read_only=True) as database:
        seconds = None if dry_run else schema.seconds_since_write(database)
    if seconds is not None:
        say(
            f"warning: something wrote to {name} {seconds} seconds ago; if that was not this "
            f"command, stop every service that uses it",
            err=True,
        )


def _notes(agent_config: AgentConfig, undo_file: Path | None) -> UndoNotes:
    return UndoNotes(lambda: undo_file or new_undo_path(agent_config.state_dir))


def _undoing(transport: Transport, path: Path, *, dry_run: bool) -> tuple[int, Iterator[Outcome]]:
    """The number of changes, and the result for the node of each."""
    client = ReportClient(transport)
    changes = read_changes(path)
    return len(changes), undo(client, changes, partial(Tracker, client), dry_run=dry_run)
