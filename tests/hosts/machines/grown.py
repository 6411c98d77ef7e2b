# SPDX-License-Identifier: Apache-2.0
"""A virtual machine that got memory while it ran, which the figures of its nodes do not include."""

from tests.hosts.machines.machine import Machine, Node

#: As one was seen: node 0 said 7.2 GiB, where there were 23.5, in 192 blocks of 128 MiB.
GROWN = Machine(
    {
        0: Node(cpus="0-1", memory_kib=7_549_747, blocks=128),
        1: Node(cpus="2-3", memory_kib=0, blocks=64),
    },
    memory_kib=24_684_084,
    has_threads=False,
)
