# SPDX-License-Identifier: Apache-2.0
"""`berth agent adopt`: this machine takes the place of the one that the agent's state is from."""

import click

from berth.cli.agent_options import AgentSource, of_agent
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.output import say


@click.command()
@of_agent
@click.option(
    "--take-over",
    is_flag=True,
    required=True,
    help="Confirm that the other machine no longer reports; two would undo each other's changes.",
)
def adopt(agent_source: AgentSource, take_over: bool) -> None:
    """Take over the host that another machine reported with this state directory.

    An agent refuses to start with the state of another machine, which a cloned image has, because
    both would report one host. Use this where a machine replaces another one and has its disk,
    or where this machine has a new name.
    """
    # Imported here, so that `--help` is fast.
    from berth.hosts.machine_claim import take_over_state

    config = agent_source.read()
    if config.has_list:
        raise CommandFailed(
            f"{config.path} has a list of nodes, which belong to no machine: there is nothing to "
            "take over",
            ExitCode.CONFIGURATION,
        )
    take_over_state(config.state_dir, config.machine)
    say(f"{config.state_dir} belongs to this machine now, which reports {config.machine.name}.")
