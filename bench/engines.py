# SPDX-License-Identifier: Apache-2.0
"""The database servers of the measurements: those of the tests, but durable and with more memory.

Each is started from its binaries in a temporary directory, serves both services with the same
settings, and is stopped afterwards. `sqlite` is here too, as the one that is compared with.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.servers.binaries import find_program, program
from tests.servers.galera import Galera
from tests.servers.mariadb import MariaDB
from tests.servers.postgresql import PostgreSQL

ENGINES: Final = ("sqlite", "postgresql", "mariadb", "galera")

_POSTGRESQL: Final = {
    "shared_buffers": "512MB",
    "max_connections": "300",
    "max_wal_size": "4GB",
    "autovacuum_naptime": "1min",
}
_MARIADB: Final = {
    "innodb_buffer_pool_size": "512M",
    "innodb_log_file_size": "512M",
    "max_connections": "300",
}


#: A member of a cluster holds a third of the machine's memory at most.
_GALERA: Final = {**_MARIADB, "innodb_buffer_pool_size": "256M", "innodb_log_file_size": "128M"}


@dataclass(frozen=True, slots=True)
class Engine:
    """A running engine."""

    name: str
    #: Makes an empty database of that name; its URL at each node.
    create: Callable[[str], Sequence[str]]
    #: The cluster, where it is one.
    cluster: Galera | None = None
    #: The first process of each server.
    process_ids: Sequence[int] = ()


@contextmanager
def run_engine(name: str) -> Iterator[Engine]:
    """Run an engine for the length of the block."""
    with _RUNS[name]() as engine:
        yield engine


def versions() -> dict[str, str]:
    """The servers' versions, as they report them."""
    programs = {"PostgreSQL": "postgres", "MariaDB": "mariadbd"}
    return {
        name: subprocess.run(
            [program(of_it), "--version"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for name, of_it in programs.items()
        if find_program(of_it) is not None
    }


@contextmanager
def _sqlite() -> Iterator[Engine]:
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as directory:
        yield Engine("sqlite", lambda name: [f"sqlite:///{Path(directory, name)}.sqlite"])


@contextmanager
def _postgresql() -> Iterator[Engine]:
    server = PostgreSQL(durable=True, settings=_POSTGRESQL)
    try:
        yield Engine(
            "postgresql",
            lambda name: [server.create_database(name)],
            process_ids=[server.process_id],
        )
    finally:
        server.close()


@contextmanager
def _mariadb() -> Iterator[Engine]:
    server = MariaDB(durable=True, settings=_MARIADB)
    try:
        yield Engine(
            "mariadb", lambda name: [server.create_database(name)], process_ids=[server.process_id]
        )
    finally:
        server.close()


@contextmanager
def _galera() -> Iterator[Engine]:
    cluster = Galera(durable=True, settings=_GALERA)
    try:
        yield Engine(
            "galera",
            lambda name: cluster.urls(cluster.create_database(name)),
            cluster,
            [node.process_id for node in cluster.nodes],
        )
    finally:
        cluster.close()


_RUNS: Final[dict[str, Callable[[], AbstractContextManager[Engine]]]] = {
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "mariadb": _mariadb,
    "galera": _galera,
}
