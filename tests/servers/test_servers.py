# SPDX-License-Identifier: Apache-2.0
"""The tests' PostgreSQL and MariaDB leave nothing behind. That they fall and come back with what is
committed is seen where they do: tests/faults/."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.serving import wait_until
from tests.engines import need
from tests.servers.family import family_of, is_alive

#: Starts a server, says which process and directory are its own, and waits to be killed.
_STARTER = """
import sys, time
from tests.servers.{module} import {name}
server = {name}()
print(server.process_id, server.directory, flush=True)
sys.stdin.read()
"""


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
