# SPDX-License-Identifier: Apache-2.0
"""`berth agent show`: what would be reported, as the driver finds it; no service is asked."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from berth.cli.agent_options import DEFAULT_PATH, driver_option


@click.command()
@click.option(
    "--config",
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help=f"The agent's configuration.  [default: {DEFAULT_PATH}, where it is there]",
)
@driver_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(path: Path | None, driver: str | None, as_json: bool) -> None:
    """Show what this host would report to a service that does not know it yet.

    Reads the configuration, if there is one, and the host. Sends nothing to any service, and writes
    nothing.
    """
    # Here, so that `--help` need not wait for it.
    from berth.cli.tree_drawing import print_tree, tree_as_json
    from berth.hosts.agent_config import read_agent_config
    from berth.hosts.plan import make_plan
    from berth.hosts.provider_tree import ProviderTree
    from berth.hosts.tracker import tree_of_new

    found = read_agent_config(path or DEFAULT_PATH, may_be_missing=path is None)
    if driver and driver != found.driver:
        # The options are those of the configuration's driver.
        found = replace(found, driver=driver, options={})
    knows = found.make_driver(lambda uuid: {}, to_look_only=True)
    nodes: list[list[dict[str, Any]]] = []
    for node in found.nodes(to_look_only=True):
        tree = tree_of_new(knows, node)
        # What could not be sent is told here too.
        make_plan(ProviderTree(), tree, node.uuid)
        if as_json:
            nodes.append([*tree_as_json(tree, node.uuid)])
        else:
            print_tree(tree, node.uuid, since=ProviderTree())
    if as_json:
        click.echo(json.dumps(nodes, indent=2))
