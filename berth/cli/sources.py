# SPDX-License-Identifier: Apache-2.0
"""Where a command reads its configuration, and an agent its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from oslo_config import cfg

    from berth.hosts.agent_config import AgentConfig


@dataclass(frozen=True, slots=True)
class ConfigurationSource:
    """Where a command reads its configuration; picklable, so that workers can get it."""

    files: tuple[str, ...]
    dirs: tuple[str, ...]
    debug: bool

    @property
    def is_given(self) -> bool:
        """Whether the command line names a configuration."""
        return bool(self.files or self.dirs)

    def load(self) -> cfg.ConfigOpts:
        """Read the configuration; without any, use the embedded defaults.

        Raises:
            ConfigurationError: a file is missing or cannot be read.
        """
        # Deferred: `--help` and completion do not need it.
        from berth import config

        return config.load(self.files, self.dirs, embedded=True, debug=self.debug)


#: The agent's configuration, unless `--config` names another file.
AGENT_FILE: Final = Path("/etc/berth/agent.yaml")


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
        # Deferred: `--help` does not need it.
        from berth.hosts.agent_config import read_agent_config

        config = read_agent_config(self.path)
        return config.replace(driver=self.driver) if self.driver else config
