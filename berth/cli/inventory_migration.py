# SPDX-License-Identifier: Apache-2.0
"""Runs `berth migrate-inventory`: on the service's database, or an undo on a running service."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import click

from berth.cli.agent_options import AgentSource
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.migration_report import end, print_json, print_text
from berth.cli.options import ConfigurationSource
from berth.cli.progress import reporting
from berth.cli.service_or_database import service_or_database
from berth.hosts.adoption import take_over
from berth.hosts.agent_config import AgentConfig
from berth.hosts.migration import Outcome, migrate, undo
from berth.hosts.report_client import ReportClient
from berth.hosts.service import Transport
from berth.hosts.state_lock import StateLock
from berth.hosts.tracker import Driver, Tracker
from berth.hosts.undo import UndoNotes, new_undo_path, read_changes

#: Attempts for one node: no other program should write, but it may be busy for a moment.
_ATTEMPTS_MAX: Final = 5


def migrate_or_undo(
    source: ConfigurationSource,
    agent_source: AgentSource,
    *,
    undo_file: Path | None,
    to_undo: Path | None,
    url: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Migrate each node of the host, or undo the reshapes of a file, and print the result.

    Args:
        undo_file: records each reshape; None: a new file in the state directory.
        to_undo: undo the reshapes of this file instead.
        url: with `to_undo`, the URL of a service; None: use the database.

    Raises:
        CommandFailed: there is no database, or some nodes were not migrated.
    """
    done: list[Outcome] = []
    with ExitStack() as stack:
        agent_config = None if to_undo else agent_source.read()
        if url is None:
            _look_at_database(source, dry_run=dry_run)
        transport = service_or_database(source, url, stack, read_only=dry_run)
        notes = None
        if to_undo is not None:
            number, outcomes = _undoing(transport, to_undo, dry_run=dry_run)
        elif agent_config is not None:
            notes = _notes(agent_config, undo_file)
            if not dry_run:
                lock = StateLock()
                stack.callback(lock.close)
                lock.hold(agent_config.state_dir)
            number, outcomes = _migrating(transport, agent_config, notes, dry_run=dry_run)
        try:
            with reporting() as report:
                for outcome in outcomes:
                    done.append(outcome)
                    if number > 1:
                        report("nodes", len(done), number)
        except KeyboardInterrupt:
            click.echo("berth: interrupted; run the same command again to continue", err=True)
            raise
        finally:
            # Print this even if the command is interrupted.
            undo_path = notes.path if notes else None
            (print_json if as_json else print_text)(done, undo_path, dry_run=dry_run)
    end(done, dry_run=dry_run)


def _look_at_database(source: ConfigurationSource, *, dry_run: bool) -> None:
    """Check that the database exists, and warn if a service seems to use it.

    Raises:
        CommandFailed: it does not exist.
    """
    # Imported here: an undo on a running service does not need them.
    from berth import deploy
    from berth.cli.db_opened import opened
    from berth.config import read_settings
    from berth.upkeep import schema

    settings = read_settings(source.load())
    name = settings.database.masked_url
    if deploy.is_absent(settings):
        raise CommandFailed(
            f"there is no database {name}: name the service's configuration with --config-file",
            ExitCode.DATABASE,
        )
    with opened(settings, read_only=True) as database:
        seconds = None if dry_run else schema.seconds_since_write(database)
    if seconds is not None:
        click.echo(
            f"warning: something wrote to {name} {seconds} seconds ago; if that was not this "
            f"command, stop every service that uses it",
            err=True,
        )


def _notes(agent_config: AgentConfig, undo_file: Path | None) -> UndoNotes:
    return UndoNotes(lambda: undo_file or new_undo_path(agent_config.state_dir))


def _migrating(
    transport: Transport, agent_config: AgentConfig, notes: UndoNotes, *, dry_run: bool
) -> tuple[int, Iterator[Outcome]]:
    """The number of nodes, and the result for each."""
    client = ReportClient(transport, note=notes.note)
    nodes = agent_config.nodes(read_only=dry_run)
    driver = agent_config.make_driver(client.get_usages, read_only=dry_run)
    keep = (lambda node: None) if dry_run else agent_config.keep
    return len(nodes), migrate(
        _tracker(client, driver),
        nodes,
        dry_run=dry_run,
        take_over=partial(take_over, client.service, keep=keep if agent_config.adopt else None),
    )


def _undoing(transport: Transport, path: Path, *, dry_run: bool) -> tuple[int, Iterator[Outcome]]:
    """The number of changes, and the result for the node of each."""
    client = ReportClient(transport)
    changes = read_changes(path)
    return len(changes), undo(
        client, changes, lambda driver: _tracker(client, driver), dry_run=dry_run
    )


def _tracker(client: ReportClient, driver: Driver) -> Tracker:
    return Tracker(client, driver, attempts_max=_ATTEMPTS_MAX, pause=time.sleep, rng=Random())
