# SPDX-License-Identifier: Apache-2.0
"""Connections to given workers, although the kernel chooses who accepts a connection."""

from __future__ import annotations

import time
from pathlib import Path

from tests.e2e.serving import PATIENCE, Service
from tests.e2e.test_serve import inodes_of_connections, link_target
from tests.proof.wire import Connection


def connections_to_all_workers(service: Service) -> list[Connection]:
    """A connection to each worker, once all of them serve."""
    found: dict[int, Connection] = {}
    deadline = time.monotonic() + PATIENCE
    while not found.keys() >= (workers := service.workers()):
        assert time.monotonic() < deadline, f"only {set(found)} of {workers} can be reached"
        connection = Connection(service.host, service.port)
        port = connection.local_port()
        connection.ask("GET", "/")
        for worker in _owners(service, port):
            if found.setdefault(worker, connection) is not connection:
                connection.close()
    return [found[worker] for worker in workers]


def _owners(service: Service, client_port: int) -> set[int]:
    """The worker at the other end of a connection."""
    inodes = inodes_of_connections(service.port, {client_port})
    return {
        pid
        for pid in service.workers()
        if any(link_target(link) in inodes for link in Path(f"/proc/{pid}/fd").iterdir())
    }
