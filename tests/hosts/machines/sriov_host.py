# SPDX-License-Identifier: Apache-2.0
"""A server with a network card of two ports, whose virtual functions are enabled."""

from tests.hosts.machines.machine import GIB, PCI, Machine, Node

SRIOV_HOST = Machine(
    {
        0: Node(cpus="0-3", memory_kib=32 * GIB),
        1: Node(cpus="4-7", memory_kib=32 * GIB),
    },
    pci={
        "0000:af:00.0": PCI(
            "8086:1572", node=1, functions={f"0000:af:02.{n}": "8086:154c" for n in range(4)}
        ),
        "0000:af:00.1": PCI(
            "8086:1572", node=1, functions={f"0000:af:0a.{n}": "8086:154c" for n in range(2)}
        ),
        "0000:05:00.0": PCI("1af4:1041"),
        "0000:b3:00.0": PCI("15b3:1017", node=0),
    },
)
