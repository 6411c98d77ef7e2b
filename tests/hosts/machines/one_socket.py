# SPDX-License-Identifier: Apache-2.0
"""A small server: one socket, one NUMA node, a rotating disk."""

from tests.hosts.machines.machine import GIB, Machine, Node

ONE_SOCKET = Machine(
    {0: Node(cpus="0-7", memory_kib=16 * GIB - 300_000, pages={2048: 1024})},
    has_threads=False,
    disk_turns=True,
)
