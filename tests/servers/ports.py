# SPDX-License-Identifier: Apache-2.0
"""Free ports on loopback for servers that are restarted on the same port."""

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
    """A port on which no process listens, and that no test process got before.

    It is below the range of outgoing ports: while a server is down, an outgoing connection could
    get its port, or a client could connect to itself.
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
