# SPDX-License-Identifier: Apache-2.0
"""`berth agent show`: what the driver would report; contacts no service."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from berth.cli.agent_options import DEFAULT_PATH, driver_option
from berth.cli.output import say_json


@click.command()
@click.option(
    "--config",
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help=f"The agent's configuration.  [default: {DEFAULT_PATH}, if it exists]",
)
@driver_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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

    config = read_agent_config(path or DEFAULT_PATH, may_be_missing=path is None)
    if driver and driver != config.driver:
        # The options belong to the driver of the configuration.
        config = replace(config, driver=driver, options={})
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
