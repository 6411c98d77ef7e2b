# SPDX-License-Identifier: Apache-2.0
"""Options of the commands that read an agent's configuration."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from berth.compute.agent_config import DEFAULT_PATH, AgentConfig, read_agent_config


@dataclass(frozen=True, slots=True)
class AgentSource:
    """Where an agent's configuration comes from."""

    path: Path
    driver: str | None

    def read(self) -> AgentConfig:
        """Read it.

        Raises:
            BadConfiguration: it cannot be read, or not be meant.
        """
        found = read_agent_config(self.path)
        return replace(found, driver=self.driver) if self.driver else found


def of_agent(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take the options, and hand it an `AgentSource` as `agent_source`."""

    @click.option(
        "--config",
        "path",
        default=str(DEFAULT_PATH),
        show_default=True,
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="The agent's configuration: the nodes of this host, and their driver.",
    )
    @click.option(
        "--driver", metavar="NAME", help="Use this driver, whatever the configuration says."
    )
    @functools.wraps(command)
    def with_source(*args: Any, path: Path, driver: str | None, **options: Any) -> None:
        command(*args, agent_source=AgentSource(path, driver), **options)

    return with_source
