# SPDX-License-Identifier: Apache-2.0
"""What an operator may say of a Linux host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from berth.hosts.drivers.hosts import configuration as said
from berth.hosts.drivers.hosts.options import HostOptions, Placement


@dataclass(frozen=True, slots=True)
class Options(HostOptions):
    """All that may be said of a Linux host."""

    root: Path = Path("/")
    disk: Path | None = Path("/")
    nvml: bool = True
    #: Which consumer is on which NUMA nodes.
    placements: Mapping[str, Placement] = field(default_factory=dict)


def read_options(options: Mapping[str, object]) -> Options:
    """The options as an operator wrote them.

    Raises:
        BadConfiguration: some of them cannot be meant; all of those are told.
    """
    own: dict[str, said.Read] = {
        "root": said.path,
        "nvml": said.switch,
        "placements": said.placements,
    }
    return said.read_options("The linux driver", options, own, Options)
