# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL, started from `initdb` and `postgres`."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql

from tests.e2e.serving import PATIENCE
from tests.servers.binaries import program
from tests.servers.process import Command, account_for, run_tool
from tests.servers.server import PASSWORD, USER, Server, name_in, new_name

#: Who administers the server, over its socket only.
_ADMINISTRATOR = "postgres"

_SETTINGS = {
    "max_connections": "200",
    "shared_buffers": "64MB",
    # What is measured here is correctness, on machines with two processors.
    "max_parallel_workers_per_gather": "0",
    "autovacuum_naptime": "10s",
}

#: What only a crash of the machine would make a difference for.
_HASTE = {"fsync": "off", "full_page_writes": "off", "wal_level": "minimal", "max_wal_senders": "0"}


class PostgreSQL(Server):
    """A PostgreSQL server, see `Server`; its port checks passwords.

    Args:
        has_log_apart: its write-ahead log is in the temporary directory, wherever the data is.
    """

    engine = "postgresql"
    #: The fast shutdown: clients are sent away.
    stop_signal = signal.SIGINT

    def __init__(
        self,
        *,
        durable: bool = False,
        data: Path | None = None,
        settings: dict[str, str] | None = None,
        has_log_apart: bool = False,
    ) -> None:
        super().__init__(account_for("postgres"), durable=durable, data=data, settings=settings)
        self._make_cluster(["--waldir", self.directory / "pg_wal"] if has_log_apart else [])
        self.start()
        self._administer(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")

    def command(self) -> Command:
        """The server with its settings; it reads no other configuration file."""
        settings = {
            "listen_addresses": self.host,
            "port": str(self.port),
            "unix_socket_directories": str(self.directory),
            **_SETTINGS,
            **({} if self.durable else _HASTE),
            **self.settings,
        }
        options = [f"--{name}={text}" for name, text in settings.items()]
        return [program("postgres"), "-D", self.data, *options]

    def is_ready(self) -> bool:
        """Whether it answers queries now."""
        try:
            self._administer("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def create_database(self, name: str | None = None, *, encoding: str = "UTF8") -> str:
        """The URL of a new empty database, with a generated name unless one is given."""
        name = name or new_name()
        how = (
            ""
            if encoding == "UTF8"
            else "ENCODING {} LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
        names = [name] if encoding == "UTF8" else [name, encoding]
        self._administer(f"CREATE DATABASE {{}} OWNER {USER} {how}", *names)
        return self.url_for(name)

    def url_for(self, name: str) -> str:
        """The URL of a database on this server, whether it exists or not."""
        return f"postgresql://{USER}:{PASSWORD}@{self.host}:{self.port}/{name}"

    def drop_database(self, url: str) -> None:
        """Drop a database with its connections."""
        self._administer("DROP DATABASE IF EXISTS {} WITH (FORCE)", name_in(url))

    def _make_cluster(self, where: Command) -> None:
        self.data.mkdir(exist_ok=True)
        os.chown(self.data, self.account.uid, self.account.gid)
        how = ["--no-sync", "--no-instructions", "--encoding=UTF8", "--locale=C.UTF-8"]
        who = ["--auth-local=trust", "--auth-host=scram-sha-256", f"--username={_ADMINISTRATOR}"]
        # Segments of 1 MiB: a server on a small file system has little to lay out in advance.
        command: Command = [program("initdb"), "-D", self.data, "--wal-segsize=1", *how, *who]
        run_tool([*command, *where], self.account, self.directory)

    def _administer(self, statement: LiteralString, *names: str) -> None:
        """Run a statement as the server's administrator; names in its braces are quoted."""
        with psycopg.connect(
            host=str(self.directory),
            port=self.port,
            user=_ADMINISTRATOR,
            dbname="postgres",
            autocommit=True,
            connect_timeout=round(PATIENCE),
            options=f"-c statement_timeout={PATIENCE:.0f}s",
        ) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
