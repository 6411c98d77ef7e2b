# SPDX-License-Identifier: Apache-2.0
"""What every database server of the tests can do, whichever engine it is."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from itertools import count
from pathlib import Path
from typing import Protocol, Self

from tests.servers.ports import HOST, free_port
from tests.servers.process import Account, Command, ServerProcess, make_directory, remove_directory

#: The account that the URLs name; it may do everything in the databases made for it.
USER = "berth"
PASSWORD = "secret"

_numbers = count(1)


class Databases(Protocol):
    """Somewhere a test gets databases from."""

    #: As in `BERTH_REQUIRE_ENGINES`.
    engine: str

    def create_database(self, name: str | None = None) -> str:
        """The URL of a new empty database, under a name of its own unless it is given one."""

    def drop_database(self, url: str) -> None:
        """Remove a database, whoever is connected to it."""


class DatabaseServer(Databases, Protocol):
    """One server, or a cluster that is treated as one."""

    host: str
    port: int

    def start(self) -> None:
        """Start it on the data and the port that it has had; it answers when this returns."""

    def stop(self) -> None:
        """Stop it as an operator would: what is begun is broken off, what is committed is kept."""

    def kill(self) -> None:
        """SIGKILL every process of it."""

    def pause(self) -> None:
        """Freeze every process of it (SIGSTOP): connections stay open, and nothing answers."""

    def resume(self) -> None:
        """Let the frozen processes go on."""

    def close(self) -> None:
        """End it for good, and remove its data."""


class Server(ABC):
    """A server in a temporary directory, on a free port of loopback.

    As a context it is closed at the end.

    Args:
        durable: commits reach the disk before they are answered. Otherwise they only survive the
            death of the server's processes, and everything is faster.
        data: an empty directory for the data, which may lie on a file system of its own; otherwise
            it lies in the temporary directory. It is not removed.
        settings: more of the server's own settings, by their names there.
    """

    engine: str
    host = HOST
    #: The program to start, by name, and the signal that ends it cleanly at once.
    stop_signal: signal.Signals

    def __init__(
        self,
        account: Account,
        *,
        durable: bool = False,
        data: Path | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.account = account
        self.durable = durable
        self.settings = settings or {}
        self.port = free_port()
        #: For sockets and logs, and for the data unless that was given a place.
        self.directory = make_directory(account)
        self.data = data or self.directory / "data"
        self.log = self.directory / "log"
        self._process = ServerProcess(account, self.directory, self.log)

    def start(self) -> None:
        """Start it on the data and the port that it has had; it answers when this returns."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start it, and do not wait."""
        self._process.start(self.command())

    def wait_until_ready(self) -> None:
        """Wait until it answers queries."""
        self._process.wait_until_ready(self.is_ready)

    def is_running(self) -> bool:
        """Whether its processes are there; they may be frozen, or not answer yet."""
        return self._process.is_running()

    @property
    def process_id(self) -> int:
        """The id of its first process, from which the others descend."""
        return self._process.process_id

    def stop(self) -> None:
        """Stop it as an operator would: what is begun is broken off, what is committed is kept."""
        self._process.stop(self.stop_signal)

    def kill(self) -> None:
        """SIGKILL every process of it."""
        self._process.kill()

    def pause(self) -> None:
        """Freeze every process of it (SIGSTOP): connections stay open, and nothing answers."""
        self._process.pause()

    def resume(self) -> None:
        """Let the frozen processes go on."""
        self._process.resume()

    def close(self) -> None:
        """End it for good, and remove its data."""
        self.kill()
        remove_directory(self.directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def command(self) -> Command:
        """The program to start, and how."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether it answers queries now."""

    @abstractmethod
    def create_database(self, name: str | None = None) -> str:
        """The URL of a new empty database, under a name of its own unless it is given one."""

    @abstractmethod
    def url_for(self, name: str) -> str:
        """The URL of a database of that name on this server, whether there is one or not."""

    @abstractmethod
    def drop_database(self, url: str) -> None:
        """Remove a database, whoever is connected to it."""


def new_name() -> str:
    """A name that no database of this run has yet."""
    return f"placement_{next(_numbers)}"


def name_in(url: str) -> str:
    """The name of the database that a URL leads to."""
    return url.rpartition("/")[2]
