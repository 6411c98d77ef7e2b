# SPDX-License-Identifier: Apache-2.0
"""The interface of the tests' database servers, for all engines."""

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
    """A source of databases for tests."""

    #: As in `BERTH_REQUIRE_ENGINES`.
    engine: str

    def create_database(self, name: str | None = None) -> str:
        """The URL of a new empty database, with a generated name unless one is given."""

    def drop_database(self, url: str) -> None:
        """Drop a database with its connections."""


class DatabaseServer(Databases, Protocol):
    """A server, or a cluster that is treated as one."""

    host: str
    port: int

    def start(self) -> None:
        """Start it with its data, on its port; it answers when this returns."""

    def stop(self) -> None:
        """Stop it as an operator would: open transactions are rolled back, committed ones stay."""

    def kill(self) -> None:
        """SIGKILL every process of it."""

    def pause(self) -> None:
        """Freeze every process of it (SIGSTOP): connections stay open, and nothing answers."""

    def resume(self) -> None:
        """Continue the frozen processes."""

    def close(self) -> None:
        """Stop it and remove its data."""


class Server(ABC):
    """A server in a temporary directory, on a free port of loopback.

    As a context manager it is closed at the end.

    Args:
        durable: commits reach the disk before they are answered. Otherwise they survive only the
            death of the server's processes, and everything is faster.
        data: an empty directory for the data, which may be on a file system of its own; otherwise
            it is in the temporary directory. It is not removed.
        settings: further settings of the server, by their names there.
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
        """Start it with its data, on its port; it answers when this returns."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start it without waiting."""
        self._process.start(self.command())

    def wait_until_ready(self) -> None:
        """Wait until it answers queries."""
        self._process.wait_until_ready(self.is_ready)

    def is_running(self) -> bool:
        """Whether its processes exist; they may be frozen, or not answer yet."""
        return self._process.is_running()

    @property
    def process_id(self) -> int:
        """The id of its first process, the ancestor of the others."""
        return self._process.process_id

    def stop(self) -> None:
        """Stop it as an operator would: open transactions are rolled back, committed ones stay."""
        self._process.stop(self.stop_signal)

    def kill(self) -> None:
        """SIGKILL every process of it."""
        self._process.kill()

    def pause(self) -> None:
        """Freeze every process of it (SIGSTOP): connections stay open, and nothing answers."""
        self._process.pause()

    def resume(self) -> None:
        """Continue the frozen processes."""
        self._process.resume()

    def close(self) -> None:
        """Stop it and remove its data."""
        self.kill()
        remove_directory(self.directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def command(self) -> Command:
        """The program to start, with its arguments."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether it answers queries now."""

    @abstractmethod
    def create_database(self, name: str | None = None) -> str:
        """The URL of a new empty database, with a generated name unless one is given."""

    @abstractmethod
    def url_for(self, name: str) -> str:
        """The URL of a database on this server, whether it exists or not."""

    @abstractmethod
    def drop_database(self, url: str) -> None:
        """Drop a database with its connections."""


def new_name() -> str:
    """A name that no database of this run has."""
    return f"placement_{next(_numbers)}"


def name_in(url: str) -> str:
    """The name of the database in a URL."""
    return url.rpartition("/")[2]
