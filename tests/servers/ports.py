# SPDX-License-Identifier: Apache-2.0
"""Free ports on loopback for servers that come back to theirs after a fall."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

HOST = "127.0.0.1"

#: From the first port that needs no privileges and no well-known service uses.
_FIRST = 12_000

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")

_given: set[int] = set()

#: Test processes that run side by side, and the number of this one: each has ports of its own, or
#: two could be given one that neither uses yet.
_PROCESSES = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_NUMBER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def free_port() -> int:
    """A port that nobody listens on, and that no test process was given before.

    It lies below the range from which the kernel takes the ports of outgoing connections: while a
    server is down, one of those could take its place, or a client that dials it meet itself.
    """
    last = int(_RANGE.read_text().split()[0]) - 1
    for port in random.sample(range(_FIRST, last), last - _FIRST):
        if port % _PROCESSES == _NUMBER and port not in _given and _is_free(port):
            _given.add(port)
            return port
    raise OSError(f"no port between {_FIRST} and {last} is free on {HOST}")


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
        return True
