# SPDX-License-Identifier: Apache-2.0
"""`berth agent`: reports a host's resources, for fleets without Nova."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from berth.cli.deferred import work_in
from berth.cli.failure import CommandFailed, ExitCode, Misused
from berth.cli.options import driver_option, flag, of_agent, option
from berth.cli.output import say, say_json
from berth.cli.sources import AGENT_FILE, AgentSource
from berth.model.paths import DRAINS, path_of
from berth.model.refusals import NotThere

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client


@click.group()
def agent() -> None:
    """Report this host's resources to the service."""


@agent.command()
@of_agent
@flag(
    "--take-over",
    "Confirm that the other machine no longer reports; two would undo each other's changes.",
    required=True,
)
def adopt(agent_source: AgentSource, take_over: bool) -> None:
    """Take over the host that another machine reported with this state directory.

    An agent refuses to start with the state of another machine, which a cloned image has, because
    both would report one host. Use this where a machine replaces another one and has its disk,
    or where this machine has a new name.
    """
    # Imported here, so that `--help` is fast.
    from berth.hosts.state_dir import take_over_state

    config = agent_source.read()
    if config.has_list:
        raise CommandFailed(
            f"{config.path} has a list of nodes, which belong to no machine: there is nothing to "
            "take over"
        )
    take_over_state(config.state_dir, config.machine)
    say(f"{config.state_dir} belongs to this machine now, which reports {config.machine.name}.")


name_option = option("--name DRAIN", "The name of the drain.  [default: that of the host]")


@agent.command()
@of_agent
@name_option
@option("--reason TEXT", "Why; shown in lists and in the agent's log.")
@flag("--dry-run", "Print what it would do, and write nothing.")
@flag("--json", "Print the API's answer.", parameter="as_json")
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

    own = _own_drain(agent_source, name)
    own.client.as_json = as_json
    body = {
        "providers": own.uuids,
        "effect": "exclude",
        **({} if reason is None else {"reason": reason}),
    }
    send_drain(own.client, own.name, body, dry_run=dry_run, may_replace=own.is_there)


@agent.command()
@of_agent
@flag("--json", "Print JSON.", parameter="as_json")
def plan(agent_source: AgentSource, as_json: bool) -> None:
    """Show what the next start would change in the service, and write nothing.

    Prints the changes of the tree, marked with +, - and ~, and the allocations that would move.

    Exit codes: 0 no changes; 13 changes pending; 12 the host's tree conflicts with existing
    allocations.
    """
    # Imported here, so that `--help` is fast.
    from berth.cli.migrate_inventory import migrating
    from berth.cli.migration_report import end, print_json, print_text
    from berth.hosts.report_client import ReportClient
    from berth.hosts.transports import of_service

    config = agent_source.read()
    client = ReportClient(of_service(config.access()))
    _, outcomes = migrating(client, config, dry_run=True)
    done = list(outcomes)
    (print_json if as_json else print_text)(done, None, dry_run=True)
    end(done, dry_run=True)


@agent.command("run")
@of_agent
@flag("--once", "Report once, as at a start, and exit.")
@flag("--adopt", "If the name is taken by a provider without allocations, take that provider over.")
@click.pass_obj
@work_in("agent_running")
def run_agent() -> None:
    """Report this host at the start, and then periodically.

    At the start, the agent may reshape the host's tree, moving allocations with it. If that fails
    permanently, the agent ends. Send SIGHUP to make it read its configuration again.
    """


SAMPLE: Final = """\
# /etc/berth/agent.yaml: what `berth agent run` reports, and to which service.
# Lines that begin with # show the defaults, or examples.
# `berth agent show` prints what would be reported, without contacting a service.

service:
  url: http://127.0.0.1:8778
  # Create it on the service's host, after `umask 077`:
  # berth token create --role agent --host HOST > agent.token
  token_file: /etc/berth/agent.token
  # With Keystone, use these instead of the two above:
  # auth_type: password
  # auth:
  #   auth_url: https://keystone.example.org/v3
  #   username: placement
  #   password: secret
  #   project_name: service
  #   user_domain_name: Default
  #   project_domain_name: Default

# The driver that examines the host: linux, libvirt or static. Each has its own options.
driver: linux
options: {}
#  model: numa
#  reserved: {VCPU: 2, MEMORY_MB: 1024}
#  allocation_ratios: {VCPU: 4.0}

# By default, the node has the host's name, and a UUID that is generated once.
# node: {name: host-1}

# interval_s: 60
# start_patience_s: 300
# state_dir: /var/lib/berth-agent
# provider_config: /etc/berth/provider_config
# metrics: {bind: 127.0.0.1:9109}
# adopt: false
"""


@agent.command()
def sample() -> None:
    """Print an agent.yaml to start from."""
    say(*SAMPLE.splitlines())


@agent.command()
@option(
    "--config FILE",
    f"The agent's configuration.  [default: {AGENT_FILE}, if it exists]",
    parameter="path",
    type=click.Path(path_type=Path),
)
@driver_option
@flag("--json", "Print JSON.", parameter="as_json")
def show(path: Path | None, driver: str | None, as_json: bool) -> None:
    """Show what this host would report to a service that does not know it yet.

    Reads the configuration, if it exists, and the host. Contacts no service, and writes nothing.
    """
    # Imported here, so that `--help` is fast.
    from berth.cli.tree_drawing import print_tree, tree_as_json
    from berth.hosts.agent_config import read_agent_config
    from berth.hosts.plan import make_plan
    from berth.hosts.provider_tree import ProviderTree
    from berth.hosts.tracker import tree_of_new

    config = read_agent_config(path or AGENT_FILE, may_be_missing=path is None)
    if driver and driver != config.driver:
        # The options belong to the driver of the configuration.
        config = config.replace(driver=driver, options={})
    knows = config.make_driver(lambda uuid: {}, read_only=True)
    nodes: list[list[dict[str, Any]]] = []
    for node in config.nodes(read_only=True):
        tree = tree_of_new(knows, node)
        # Report an invalid tree here too.
        make_plan(ProviderTree(), tree, node.uuid)
        if as_json:
            nodes.append([*tree_as_json(tree, node.uuid)])
        else:
            print_tree(tree, node.uuid, since=ProviderTree())
    if as_json:
        say_json(nodes)


@agent.command()
@of_agent
@name_option
def undrain(agent_source: AgentSource, name: str | None) -> None:
    """End the drain of this host: it gets new work again.

    A drain of the same name that has other providers is not deleted.
    """
    own = _own_drain(agent_source, name)
    own.client.send("DELETE", f"{DRAINS}{path_of(own.name)}")
    say(f"deleted {own.name}")


class _OwnDrain(NamedTuple):
    """The drain of this host, which the service has or not."""

    client: Client
    name: str
    #: Of the host's nodes.
    uuids: list[str]
    is_there: bool


def _own_drain(agent_source: AgentSource, name: str | None) -> _OwnDrain:
    """The drain of this host, by its name as given, or that of the host. That of an operator who
    happened to choose the same name is not touched.

    Raises:
        CommandFailed: no drain can have the name (USAGE), or the drain has providers that are not
            this host's (SERVICE).
    """
    # Imported here, so that `--help` is fast.
    from berth.cli.fleet.client import of_transport
    from berth.hosts.transports import of_service
    from berth.model.names import is_path_name

    config = agent_source.read()
    nodes = config.nodes(read_only=True)
    client = of_transport(of_service(config.access()))
    drain = nodes[0].name if name is None else name
    own = _OwnDrain(client, drain, [node.uuid for node in nodes], is_there=True)
    if not is_path_name(own.name):
        raise Misused(
            f'a drain cannot be named "{own.name}": give another --name, of letters, digits, ".",'
            ' "_" and "-"'
        )
    try:
        named = client.read(f"{DRAINS}{path_of(own.name)}")["named"]
    except NotThere:
        return own._replace(is_there=False)
    others = [provider["name"] for provider in named if provider["uuid"] not in own.uuids]
    if others:
        raise CommandFailed(
            f"the drain {own.name} has other providers than this host, such as {others[0]}: give "
            "another --name, or use berth drain",
            ExitCode.SERVICE,
        )
    return own
