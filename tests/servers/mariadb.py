# SPDX-License-Identifier: Apache-2.0
"""MariaDB, started from `mariadb-install-db` and `mariadbd`."""

from __future__ import annotations

import os
import pwd
import signal
from contextlib import suppress
from pathlib import Path

import pymysql

from tests.e2e.serving import PATIENCE
from tests.servers.binaries import program
from tests.servers.process import Command, account_for, run_tool
from tests.servers.server import PASSWORD, USER, Server, name_in, new_name

_SETTINGS = {
    "innodb_buffer_pool_size": "64M",
    "innodb_log_file_size": "16M",
    "max_connections": "200",
}

#: A commit is in the kernel's hands when it is answered: it survives the server, not the machine.
_HASTE = {"innodb_flush_log_at_trx_commit": "2", "debug_no_sync": "1"}


class MariaDB(Server):
    """A MariaDB server, see `Server`; its port checks passwords."""

    engine = "mariadb"
    stop_signal = signal.SIGTERM

    def __init__(
        self,
        *,
        durable: bool = False,
        data: Path | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        super().__init__(account_for("mysql"), durable=durable, data=data, settings=settings)
        self.socket = self.directory / "socket"
        self.prepare()

    def prepare(self) -> None:
        """Create the data, start the server, and create the account."""
        self.install()
        self.start()
        self.create_account()

    def create_account(self) -> None:
        """Create the account in the URLs."""
        self.administer(f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'")

    def command(self) -> Command:
        """The server with its settings; it reads no other configuration file."""
        settings = {
            "datadir": str(self.data),
            "socket": str(self.socket),
            "pid_file": str(self.directory / "pid"),
            # A server that starts removes the temporary tables that it finds, whoever made them.
            "tmpdir": str(self.directory),
            "bind_address": self.host,
            "port": str(self.port),
            "skip_name_resolve": "1",
            **self.engine_settings(),
            **self.settings,
        }
        options = [f"--{name.replace('_', '-')}={text}" for name, text in settings.items()]
        return [program("mariadbd"), "--no-defaults", *options]

    def engine_settings(self) -> dict[str, str]:
        """The settings of the tests' servers, besides their directories and ports."""
        return {**_SETTINGS, **({} if self.durable else _HASTE)}

    def is_ready(self) -> bool:
        """Whether it answers queries now."""
        try:
            self.administer("SELECT 1")
        except pymysql.Error:
            return False
        return True

    def create_database(self, name: str | None = None) -> str:
        """The URL of a new empty database, with a generated name unless one is given.

        Its character set is utf8mb4, with the server's default collation.
        """
        name = name or new_name()
        self.administer(
            f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4",
            f"GRANT ALL ON `{name}`.* TO {USER}@'%'",
        )
        return self.url_for(name)

    def url_for(self, name: str) -> str:
        """The URL of a database on this server, whether it exists or not."""
        return f"mysql+pymysql://{USER}:{PASSWORD}@{self.host}:{self.port}/{name}"

    def drop_database(self, url: str) -> None:
        """Drop a database with its connections."""
        name = name_in(url)
        connected = self.administer(
            f"SELECT id FROM information_schema.processlist WHERE db = '{name}'"
        )
        for (number,) in connected:
            with suppress(pymysql.OperationalError):  # gone by itself
                self.administer(f"KILL {number}")
        self.administer(f"DROP DATABASE IF EXISTS `{name}`")

    def administer(self, *statements: str) -> list[tuple[str, ...]]:
        """Run statements as the server's administrator, over its socket; return the last one's
        rows."""
        with (
            pymysql.connect(
                unix_socket=str(self.socket),
                user=_system_user(),
                autocommit=True,
                read_timeout=PATIENCE,
                write_timeout=PATIENCE,
            ) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
            return [tuple(map(str, row)) for row in cursor.fetchall()]

    def install(self) -> None:
        """Create the data of an empty server, whose administrator is the user of this process."""
        self.data.mkdir(exist_ok=True)
        os.chown(self.data, self.account.uid, self.account.gid)
        who = ["--auth-root-authentication-method=socket", "--skip-test-db", "--skip-name-resolve"]
        how = [f"--innodb-log-file-size={_SETTINGS['innodb_log_file_size']}", "--debug-no-sync"]
        install = [str(program("mariadb-install-db")), "--no-defaults", f"--datadir={self.data}"]
        socket_user = f"--auth-root-socket-user={_system_user()}"
        run_tool([*install, *who, socket_user, *how], self.account, self.directory)


def _system_user() -> str:
    """The user of the tests, as the socket authenticates it."""
    return pwd.getpwuid(os.getuid()).pw_name
