# SPDX-License-Identifier: Apache-2.0
"""`berth agent plan`: what the next start of the agent would change in the service."""

from __future__ import annotations

import time
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import click

from berth.cli.agent_options import AgentSource, of_agent

if TYPE_CHECKING:
    from berth.hosts.tracker import Node


@click.command()
@of_agent
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(agent_source: AgentSource, as_json: bool) -> None:
    """Show what the next start would change in the service, and write nothing.

    Prints the changes of the tree, marked with +, - and ~, and the allocations that would move.

    Exit codes: 0 no changes; 13 changes pending; 12 the host's tree conflicts with existing
    allocations.
    """
    # Imported here, so that `--help` is fast.
    from berth.cli.migration_report import end, print_json, print_text
    from berth.hosts.adoption import take_over
    from berth.hosts.migration import migrate
    from berth.hosts.report_client import ReportClient
    from berth.hosts.tracker import Tracker
    from berth.hosts.transports import of_service

    config = agent_source.read()
    client = ReportClient(of_service(config.access()))
    driver = config.make_driver(client.get_usages, client.drains_of, read_only=True)
    tracker = Tracker(client, driver, attempts_max=1, pause=time.sleep, rng=Random())
    done = list(
        migrate(
            tracker,
            config.nodes(read_only=True),
            dry_run=True,
            take_over=partial(take_over, client.service, keep=_forget if config.adopt else None),
        )
    )
    (print_json if as_json else print_text)(done, None, dry_run=True)
    end(done, dry_run=True)


def _forget(node: Node) -> None:
    """Keep nothing: neither the service nor the host is written to."""
