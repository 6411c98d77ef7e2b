# SPDX-License-Identifier: Apache-2.0
"""An ARM server in which some CPUs have fewer features than others."""

from tests.hosts.machines.machine import GIB, Machine, Node

ARM_SERVER = Machine(
    {0: Node(cpus="0-3", memory_kib=16 * GIB, pages={64: 512, 524288: 2})},
    arch="aarch64",
    vendor="",
    flags="fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics sve bf16",
    odd_flags={3: "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics"},
    has_threads=False,
)
