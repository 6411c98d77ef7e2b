# SPDX-License-Identifier: Apache-2.0
"""The driver of a Linux host, which reads the kernel's files."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from berth.hosts.drivers import Used
from berth.hosts.drivers.hosts.moving import Placements
from berth.hosts.drivers.hosts.notices import Notices
from berth.hosts.drivers.hosts.shaping import Shaper, counts_disk
from berth.hosts.drivers.kept import Keeping
from berth.hosts.drivers.linux.disks import Measure, measure
from berth.hosts.drivers.linux.host import read_host
from berth.hosts.drivers.linux.nvml import NVML, find_nvml
from berth.hosts.drivers.linux.options import Options, read_options
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree


class LinuxDriver:
    """Reports the host that this process runs on, or whose files it can read.

    Args:
        placements: looks up the NUMA nodes of a consumer; None: in the options.
        used: reads the usage of a provider, so that a device that is gone is removed from the
            service
            as soon as it is free; None: it stays until a pass provides the allocations.
        nvml: NVIDIA's library, if it is installed.
        measure: reads the file system of a directory.
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
        self.keeping = Keeping(options.keep_days)
        self._options = options
        self._placements = placements or options.placements.get
        self._nvml = nvml
        self._measure = measure
        #: The NUMA node of each CPU in the last pass.
        self._node_of: Mapping[int, int] = {}

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """See `tracker.Driver`.

        Raises:
            ReshapeNeeded: inventory has to move, and `allocations` is None; nothing was edited.
            ReshapeFailed, BadProviderTree: the move is impossible.
            BadConfiguration: the options name something that the host does not have.
            HostUnreadable: the host's files cannot be read.
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
            keeping=self.keeping,
            allocations=allocations,
        )
        shaper.shape()
        self._notices.tell(shaper.notices)

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices of the last pass for the operator, a sentence each."""
        return self._notices.last


def make_driver(options: Mapping[str, object]) -> LinuxDriver:
    """Create the driver, which is registered as `linux`.

    Raises:
        BadConfiguration: with every fault of the options.
    """
    return LinuxDriver(read_options(options), nvml=find_nvml())
