# SPDX-License-Identifier: Apache-2.0
"""The driver of a Linux host: what its kernel tells of it becomes its tree of providers."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from berth.compute.drivers import Used
from berth.compute.drivers.linux.configuration import read_options
from berth.compute.drivers.linux.disks import Measure, measure
from berth.compute.drivers.linux.host import read_host
from berth.compute.drivers.linux.moving import Placements
from berth.compute.drivers.linux.nvml import NVML, find_nvml
from berth.compute.drivers.linux.options import Options
from berth.compute.drivers.linux.shaping import Shaper
from berth.compute.drivers.linux.wanted import wanted_providers
from berth.compute.plan import Allocations
from berth.compute.provider_tree import ProviderTree

LOG = logging.getLogger(__name__)


class LinuxDriver:
    """Knows the host that this process runs on, or whose files it can read.

    Args:
        placements: tells on which NUMA nodes a consumer is; none: as the options say.
        used: tells what is used of a provider, so that a device that is gone leaves the service as
            soon as nobody holds it; none: it stays until a pass is told the allocations.
        nvml: the library that tells of NVIDIA GPUs, if there is one.
        measure: asks for the file system of a directory.
    """

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
        #: What the last pass found that an operator should know, a sentence each.
        self.notices: tuple[str, ...] = ()
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
        host = read_host(
            self._options, measure=self._measure, nvml=self._nvml, remembered=self._node_of
        )
        self._node_of = host.topology.node_of
        root = provider_tree.data(nodename)
        shaper = Shaper(
            provider_tree,
            root,
            wanted_providers(host, self._options, root.name),
            self._options,
            placements=self._placements,
            used=self.used,
        )
        shaper.shape(allocations)
        self._notice(shaper.notices)

    def _notice(self, notices: list[str]) -> None:
        """Tell what was not told after the pass before."""
        for notice in notices:
            if notice not in self.notices:
                LOG.warning("%s", notice)
        self.notices = tuple(notices)


def make_driver(options: Mapping[str, object]) -> LinuxDriver:
    """The driver with options as they stand in the configuration.

    Raises:
        BadConfiguration: some of them cannot be meant.
    """
    return LinuxDriver(read_options(options), nvml=find_nvml())
