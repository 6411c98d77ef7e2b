# SPDX-License-Identifier: Apache-2.0
"""Servers with two sockets, each with one NUMA node or two."""

from tests.hosts.machines.machine import AMD, GIB, Machine, Node

#: The host of scenario B: 16 CPUs and 32 GiB on each node.
TWO_SOCKETS = Machine(
    {
        0: Node(cpus="0-15", memory_kib=32 * GIB),
        1: Node(cpus="16-31", memory_kib=32 * GIB),
    }
)

FOUR_NODES = Machine(
    {
        0: Node(cpus="0-7,32-39", memory_kib=64 * GIB - 777_777, pages={2048: 4096, 1048576: 8}),
        1: Node(cpus="8-15,40-47", memory_kib=64 * GIB, pages={2048: 0, 1048576: 8}),
        2: Node(cpus="16-23,48-55", memory_kib=64 * GIB, pages={2048: 100, 1048576: 0}),
        3: Node(cpus="24-31,56-63", memory_kib=64 * GIB - 1, pages={2048: 0, 1048576: 0}),
    },
    vendor="AuthenticAMD",
    flags=AMD,
)
