# SPDX-License-Identifier: Apache-2.0
"""A server with unusual nodes: one has only CPUs, one only memory, one only offline CPUs."""

from tests.hosts.machines.machine import GIB, Machine, Node

SPARSE = Machine(
    {
        0: Node(cpus="0-3", memory_kib=32 * GIB),
        2: Node(cpus="4-6", memory_kib=32 * GIB),
        5: Node(cpus="8-9"),
        8: Node(memory_kib=128 * GIB),
        9: Node(),
    },
    present="0-9",
    disk_turns=None,
)
