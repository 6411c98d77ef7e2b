# SPDX-License-Identifier: Apache-2.0
"""A server with a GPU on each NUMA node, which can be divided into mediated devices."""

from tests.hosts.machines.machine import GIB, PCI, Machine, Node

GPU_HOST = Machine(
    {
        0: Node(cpus="0-7", memory_kib=96 * GIB),
        1: Node(cpus="8-15", memory_kib=96 * GIB),
    },
    pci={
        "0000:84:00.0": PCI(
            "10de:1eb8", node=0, kind="030200", mdev={"nvidia-222": (1, 3), "nvidia-223": (0, 0)}
        ),
        "0000:85:00.0": PCI(
            "10de:1eb8", node=1, kind="030200", mdev={"nvidia-222": (0, 4), "nvidia-223": (0, 2)}
        ),
    },
)
