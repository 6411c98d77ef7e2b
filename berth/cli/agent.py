# SPDX-License-Identifier: Apache-2.0
"""`berth agent`: reports a host's resources, for fleets without Nova."""

import click

from berth.cli.agent_adopt import adopt
from berth.cli.agent_drain import drain, undrain
from berth.cli.agent_plan import plan
from berth.cli.agent_run import run
from berth.cli.agent_sample import sample
from berth.cli.agent_show import show


@click.group()
def agent() -> None:
    """Report this host's resources to the service."""


for command in (adopt, drain, plan, run, sample, show, undrain):
    agent.add_command(command)
