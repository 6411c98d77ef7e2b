# SPDX-License-Identifier: Apache-2.0
"""Options of the commands that read an agent's configuration."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from berth.cli.completion import driver_names

if TYPE_CHECKING:
    from berth.hosts.agent_config import AgentConfig

#: The agent's configuration, unless `--config` names another file.
DEFAULT_PATH: Final = Path("/etc/berth/agent.yaml")

driver_option = click.option(
    "--driver",
    metavar="NAME",
    shell_complete=driver_names,
    help="Use this driver instead of the configured one.",
)


@dataclass(frozen=True, slots=True)
class AgentSource:
    """Where an agent's configuration comes from."""

    path: Path
    driver: str | None

    def read(self) -> AgentConfig:
        """Read the configuration.

        Raises:
            BadConfiguration: with every fault.
        """
        # Imported here, so that `--help` is fast.
        from berth.hosts.agent_config import read_agent_config

        config = read_agent_config(self.path)
        return replace(config, driver=self.driver) if self.driver else config


def of_agent(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command, which receives them as `agent_source`."""

    @click.option(
        "--config",
        "path",
        default=str(DEFAULT_PATH),
        show_default=True,
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="The agent's configuration: the nodes of this host, and their driver.",
    )
    @driver_option
    @functools.wraps(command)
    def with_source(*args: Any, path: Path, driver: str | None, **options: Any) -> None:
        command(*args, agent_source=AgentSource(path, driver), **options)

    return with_source
