# SPDX-License-Identifier: Apache-2.0
"""What an operator may say of a host with libvirt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from berth.hosts.drivers.hosts import configuration as said
from berth.hosts.drivers.hosts.options import HostOptions


@dataclass(frozen=True, slots=True)
class Options(HostOptions):
    """All that may be said of a host with libvirt."""

    uri: str = "qemu:///system"
    disk: Path | None = Path("/var/lib/libvirt/images")
    #: By the uuid of a migration, its instance's.
    migrations: Mapping[str, str] = field(default_factory=dict)
    #: By consumer, the device on which its vGPUs are, where the host cannot tell.
    assume: Mapping[str, str] = field(default_factory=dict)


def read_options(options: Mapping[str, object]) -> Options:
    """The options as an operator wrote them.

    Raises:
        BadConfiguration: some of them cannot be meant; all of those are told.
    """
    own: dict[str, said.Read] = {
        "uri": said.text,
        "migrations": said.by_uuid(str.lower),
        "assume": said.by_uuid(said.device),
    }
    return said.read_options("The libvirt driver", options, own, Options)
