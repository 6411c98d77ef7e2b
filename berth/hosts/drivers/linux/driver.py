# SPDX-License-Identifier: Apache-2.0
"""The driver of a Linux host: what its kernel tells of it becomes its tree of providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from berth.hosts.drivers import Used
from berth.hosts.drivers.hosts.moving import Placements
from berth.hosts.drivers.hosts.notices import Notices
from berth.hosts.drivers.hosts.shaping import Shaper, counts_disk
from berth.hosts.drivers.linux.disks import Measure, measure
from berth.hosts.drivers.linux.host import read_host
from berth.hosts.drivers.linux.nvml import NVML, find_nvml
from berth.hosts.drivers.linux.options import Options, read_options
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree


class LinuxDriver:
    """Knows the host that this process runs on, or whose files it can read.

    Args:
        placements: tells on which NUMA nodes a consumer is; none: as the options say.
        used: tells what is used of a provider, so that a device that is gone leaves the service as
            soon as nobody holds it; none: it stays until a pass is told the allocations.
        nvml: the library that tells of NVIDIA GPUs, if there is one.
        measure: asks for the file system of a directory.
    """

    #: See `drivers.KnowsOneHost`.
    one_host = "the one that this process runs on"

    def __init__(
        self,
        options: Options,
        *,
        placements: Placements | None = None,
        used: Used | None = None,
        nvml: NVML | None = None,
        measure: Measure = measure,
    ) -> None:
        self.used = used
        self._notices = Notices()
        self._options = options
        self._placements = placements or options.placements.get
        self._nvml = nvml
        self._measure = measure
        #: On which NUMA node each CPU was in the last pass.
        self._node_of: Mapping[int, int] = {}

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """See `tracker.Driver`.

        Raises:
            ReshapeNeeded: inventory has to move, and `allocations` is None; nothing was edited.
            ReshapeFailed, BadProviderTree: it cannot be done.
            BadConfiguration: the options name what the host does not have.
            HostUnreadable: the host does not tell what it has.
        """
        root = provider_tree.data(nodename)
        options = self._options
        if not counts_disk(provider_tree, root):
            options = replace(options, disk=None)
        facts, topology = read_host(
            options, measure=self._measure, nvml=self._nvml, remembered=self._node_of
        )
        self._node_of = topology.node_of
        shaper = Shaper(
            provider_tree,
            root,
            facts,
            options,
            placements=self._placements,
            used=self.used,
        )
        shaper.shape(allocations)
        self._notices.tell(shaper.notices)

    @property
    def notices(self) -> tuple[str, ...]:
        """What the last pass found that an operator should know, a sentence each."""
        return self._notices.last


def make_driver(options: Mapping[str, object]) -> LinuxDriver:
    """The driver with options as they stand in the configuration.

    Raises:
        BadConfiguration: some of them cannot be meant.
    """
    return LinuxDriver(read_options(options), nvml=find_nvml())
