# SPDX-License-Identifier: Apache-2.0
"""Hosts for tests of the linux driver, each described in a few lines."""

from tests.hosts.machines.arm import ARM_SERVER
from tests.hosts.machines.gpu_host import GPU_HOST
from tests.hosts.machines.grown import GROWN
from tests.hosts.machines.one_socket import ONE_SOCKET
from tests.hosts.machines.sparse import SPARSE
from tests.hosts.machines.sriov_host import SRIOV_HOST
from tests.hosts.machines.two_sockets import FOUR_NODES, TWO_SOCKETS

MACHINES = {
    "one socket": ONE_SOCKET,
    "two sockets": TWO_SOCKETS,
    "two sockets, four nodes": FOUR_NODES,
    "GPU host": GPU_HOST,
    "SR-IOV host": SRIOV_HOST,
    "sparse nodes": SPARSE,
    "memory added while it ran": GROWN,
    "ARM server": ARM_SERVER,
}

__all__ = [
    "ARM_SERVER",
    "FOUR_NODES",
    "GPU_HOST",
    "GROWN",
    "MACHINES",
    "ONE_SOCKET",
    "SPARSE",
    "SRIOV_HOST",
    "TWO_SOCKETS",
]
