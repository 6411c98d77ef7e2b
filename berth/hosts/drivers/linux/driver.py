# SPDX-License-Identifier: Apache-2.0
"""The driver of a Linux host, which reads the kernel's files."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from berth.hosts.drivers.host_model.facts import HostDriver
from berth.hosts.drivers.host_model.options import LinuxOptions
from berth.hosts.drivers.host_model.shaping import Shaper, counts_disk
from berth.hosts.drivers.linux.host import Measure, measure, read_host
from berth.hosts.drivers.linux.nvml import NVML, find_nvml
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree


class LinuxDriver(HostDriver):
    """Reports the host that this process runs on, or whose files it can read.

    Args:
        nvml: NVIDIA's library, if it is installed.
        measure: reads the file system of a directory.
    """

    #: See `drivers.KnowsOneHost`.
    one_host = "the one that this process runs on"

    def __init__(
        self, options: LinuxOptions, *, nvml: NVML | None = None, measure: Measure = measure
    ) -> None:
        super().__init__(options)
        self._options = options
        self._nvml = nvml
        self._measure = measure

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
        facts = read_host(options, measure=self._measure, nvml=self._nvml, remembered=self._node_of)
        self._node_of = facts.node_of
        shaper = Shaper(
            provider_tree,
            root,
            facts,
            options,
            placements=options.placements.get,
            used=self.used,
            keeping=self.keeping,
            allocations=allocations,
        )
        shaper.shape()
        self._tell(shaper.notices)


def make_driver(options: Mapping[str, object]) -> LinuxDriver:
    """Create the driver, which is registered as `linux`.

    Raises:
        BadConfiguration: with every fault of the options.
    """
    return LinuxDriver(LinuxOptions.read(options), nvml=find_nvml())
