# SPDX-License-Identifier: Apache-2.0
"""`berth agent drain` and `undrain`: whoever services a host keeps new work off it, from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from berth.cli.agent_options import AgentSource, of_agent
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.output import say

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.hosts.agent_config import AgentConfig
    from berth.hosts.tracker import Node

name_option = click.option(
    "--name", metavar="DRAIN", help="The name of the drain.  [default: that of the host]"
)


@click.command()
@of_agent
@name_option
@click.option("--reason", metavar="TEXT", help="Why; shown in lists and in the agent's log.")
@click.option("--dry-run", is_flag=True, help="Print what it would do, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the API's answer.")
def drain(
    agent_source: AgentSource,
    name: str | None,
    reason: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Drain this host: searches place nothing new on it.

    Its consumers stay; `berth drain show` counts them, and `berth agent undrain` ends the drain.
    A drain of the same name that has other providers is not replaced.

    Exit codes: 0 done; 13 changes pending (--dry-run).
    """
    # Imported here, so that `--help` is fast.
    from berth.cli.fleet.drain import send_drain

    config = agent_source.read()
    nodes = config.nodes(read_only=True)
    body = {
        "providers": [node.uuid for node in nodes],
        "effect": "exclude",
        **({} if reason is None else {"reason": reason}),
    }
    client = _client_of(config)
    client.as_json = as_json
    drain_name = _name_of(name, nodes)
    is_there = _is_there_and_ours(client, drain_name, nodes)
    send_drain(client, drain_name, body, dry_run=dry_run, may_replace=is_there)


@click.command()
@of_agent
@name_option
def undrain(agent_source: AgentSource, name: str | None) -> None:
    """End the drain of this host: it gets new work again.

    A drain of the same name that has other providers is not deleted.
    """
    # Imported here, so that `--help` is fast.
    from berth.cli.fleet.client import DRAINS, path_of

    config = agent_source.read()
    nodes = config.nodes(read_only=True)
    client = _client_of(config)
    drain_name = _name_of(name, nodes)
    _is_there_and_ours(client, drain_name, nodes)
    client.send("DELETE", f"{DRAINS}{path_of(drain_name)}")
    say(f"deleted {drain_name}")


def _name_of(name: str | None, nodes: Sequence[Node]) -> str:
    """The name of the drain: as given, or that of the host.

    Raises:
        CommandFailed: no drain can have it (USAGE).
    """
    # Imported here, so that `--help` is fast.
    from berth.model.names import is_path_name

    drain_name = nodes[0].name if name is None else name
    if not is_path_name(drain_name):
        raise CommandFailed(
            f'a drain cannot be named "{drain_name}": give another --name, of letters, digits, ".",'
            ' "_" and "-"',
            ExitCode.USAGE,
        )
    return drain_name


def _is_there_and_ours(client: Client, drain_name: str, nodes: Sequence[Node]) -> bool:
    """Whether there is a drain of this name; refuse to touch that of an operator who happened to
    choose the same one.

    Raises:
        CommandFailed: the drain has providers that are not this host's (SERVICE).
    """
    # Imported here, so that `--help` is fast.
    from berth.cli.fleet.client import DRAINS, path_of
    from berth.cli.fleet.refusals import NotThere

    try:
        named = client.read(f"{DRAINS}{path_of(drain_name)}")["named"]
    except NotThere:
        return False
    own = {node.uuid for node in nodes}
    others = [provider["name"] for provider in named if provider["uuid"] not in own]
    if others:
        raise CommandFailed(
            f"the drain {drain_name} has other providers than this host, such as {others[0]}: give "
            "another --name, or use berth drain",
            ExitCode.SERVICE,
        )
    return True


def _client_of(config: AgentConfig) -> Client:
    # Imported here, so that `--help` is fast.
    from berth.cli.fleet.client import of_transport
    from berth.hosts.transports import of_service

    return of_transport(of_service(config.access()))
