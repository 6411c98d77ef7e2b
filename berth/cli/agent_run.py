# SPDX-License-Identifier: Apache-2.0
"""`berth agent run`: report this host, and go on doing so."""

import click

from berth.cli.agent_options import AgentSource, of_agent


@click.command()
@of_agent
@click.option("--once", is_flag=True, help="Report once, as at a start, and end.")
@click.option(
    "--adopt",
    is_flag=True,
    help="If the name is taken by a provider without allocations, take that provider over.",
)
@click.pass_obj
def run(debug: bool, agent_source: AgentSource, once: bool, adopt: bool) -> None:
    """Report this host when the agent starts, and again from time to time.

    At the start, the tree may take a new shape, together with the allocations of its consumers. If
    that fails for a reason that does not pass by itself, the agent ends. SIGHUP makes the agent
    read its configuration again.
    """
    # Here, so that `--help` need not wait for it.
    from berth.cli.agent_running import run_agent

    run_agent(agent_source, once=once, adopt=adopt, debug=debug)
