# SPDX-License-Identifier: Apache-2.0
"""The tests' PostgreSQL and MariaDB: committed rows stay, and nothing is left behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from tests.e2e.serving import PATIENCE, wait_until
from tests.engines import need
from tests.servers.family import family_of, is_alive
from tests.servers.server import PASSWORD, Server
from tests.servers.statements import connected, run

# The servers of this module are started once, by one of the processes that share the tests.
pytestmark = pytest.mark.xdist_group("servers of their own")

#: Starts a server, says which process and directory are its own, and waits to be killed.
_STARTER = """
import sys, time
from tests.servers.{module} import {name}
server = {name}()
print(server.process_id, server.directory, flush=True)
sys.stdin.read()
"""


def make(engine: str) -> Server:
    """A server that a test may damage."""
    need(engine)
    if engine == "postgresql":
        from tests.servers.postgresql import PostgreSQL

        return PostgreSQL()
    from tests.servers.mariadb import MariaDB

    return MariaDB()


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server for the tests of this module."""
    with make(request.param) as server:
        yield server


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    """A database on it, with a table of one row."""
    url = server.create_database()
    run(url, "CREATE TABLE kept (number INTEGER)", "INSERT INTO kept VALUES (1)")
    yield url
    server.drop_database(url)


def numbers(url: str) -> list[int]:
    """The rows of the table."""
    return [number for (number,) in run(url, "SELECT number FROM kept ORDER BY number")]


@pytest.mark.parametrize("fall", [Server.kill, Server.stop])
def test_what_is_committed_is_there_after_a_fall(
    server: Server, url: str, fall: Callable[[Server], None]
) -> None:
    """A killed or stopped server comes back on its port with its data."""
    run(url, "INSERT INTO kept VALUES (2)")
    fall(server)
    assert not server.is_running()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((server.host, server.port))
    server.start()
    assert numbers(url) == [1, 2]


def test_a_kill_leaves_no_process(server: Server, url: str) -> None:
    """Not even those that serve a client at that moment."""
    with connected(url) as client:
        client.exec_driver_sql("INSERT INTO kept VALUES (2)")
        family = family_of(server.process_id)
        server.kill()
        assert not any(map(is_alive, family))
        client.invalidate()
    server.start()
    assert numbers(url) == [1]


def test_a_frozen_server_answers_when_it_thaws(server: Server, url: str) -> None:
    """Its connections stay, and requests of the meantime are answered late."""
    with connected(url) as client, ThreadPoolExecutor() as threads:
        client.exec_driver_sql("INSERT INTO kept VALUES (2)")
        server.pause()
        try:
            for process in family_of(server.process_id):
                wait_until(partial(is_at_rest, process), f"process {process} to stop")
            done = threads.submit(client.commit)
        finally:
            server.resume()
        done.result(PATIENCE)
    assert numbers(url) == [1, 2]


def is_at_rest(process: int) -> bool:
    """Whether a process is stopped or has exited."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return "\nState:\tT" in status or "\nState:\tZ" in status


def test_the_password_is_checked(server: Server, url: str) -> None:
    """A wrong one is refused, as on an operator's server."""
    with pytest.raises(OperationalError, match=r"(?i)password|access denied"):
        run(url.replace(PASSWORD, "wrong"), "SELECT 1")


def test_a_database_is_new_and_can_be_dropped_under_its_clients(server: Server, url: str) -> None:
    """Names can be given, and open connections do not block the next test."""
    other = server.create_database("other")
    assert other == server.url_for("other")
    run(other, "CREATE TABLE held (number INTEGER)")
    with connected(other) as client:
        client.exec_driver_sql("SELECT * FROM held")
        server.drop_database(other)
        client.invalidate()
    with pytest.raises(OperationalError, match="other"):
        run(other, "SELECT 1")
    assert numbers(url) == [1]


@pytest.mark.engines("postgresql", "mariadb")
def test_a_server_ends_with_the_tests(engine: str) -> None:
    """If the tests are killed, neither a process nor a directory remains."""
    need(engine)
    name = {"postgresql": "PostgreSQL", "mariadb": "MariaDB"}[engine]
    tests = subprocess.Popen(
        [sys.executable, "-c", _STARTER.format(module=engine, name=name)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with tests:
        assert tests.stdout is not None
        process, directory = tests.stdout.readline().split()
        family = family_of(int(process))
        tests.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(map(is_alive, family)), "the server's processes to end")
    wait_until(lambda: not Path(directory).exists(), "the server's directory to be removed")
