# SPDX-License-Identifier: Apache-2.0
"""`berth agent run`: report this host, once or continuously."""

import click

from berth.cli.agent_options import AgentSource, of_agent


@click.command()
@of_agent
@click.option("--once", is_flag=True, help="Report once, as at a start, and exit.")
@click.option(
    "--adopt",
    is_flag=True,
    help="If the name is taken by a provider without allocations, take that provider over.",
)
@click.pass_obj
def run(debug: bool, agent_source: AgentSource, once: bool, adopt: bool) -> None:
    """Report this host at the start, and then periodically.

    At the start, the agent may reshape the host's tree, moving allocations with it. If that fails
    permanently, the agent ends. Send SIGHUP to make it read its configuration again.
    """
    # Imported here, so that `--help` is fast.
    from berth.cli.agent_running import run_agent

    run_agent(agent_source, once=once, adopt=adopt, debug=debug)
