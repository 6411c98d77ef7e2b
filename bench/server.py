# SPDX-License-Identifier: Apache-2.0
"""Servers as subprocesses on free loopback ports, always stopped at the end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

_START_SECONDS_MAX = 60.0
_STOP_SECONDS_MAX = 10.0
#: Between two looks whether a server answers yet: a start is measured no finer.
_POLL_SECONDS = 0.01
_LOG_TAIL_CHARACTERS = 4000


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that answers at `http://127.0.0.1:<port>`."""

    name: str
    port: int
    #: The outermost process; its children are the workers.
    process_id: int
    directory: Path
    #: False where the server closes each connection after one answer.
    keeps_connections: bool
    #: Further servers of the same service, on other nodes of its database: clients spread over all.
    others: tuple[RunningServer, ...] = ()

    @property
    def url(self) -> str:
        """The base URL, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"


class ServerNotStarted(RuntimeError):
    """A server exited, or did not answer in time."""

    def __init__(self, name: str, *, log: str) -> None:
        super().__init__(f"{name} did not start; the end of its output:\n{log}")
        self.name = name
        self.log = log


def free_port() -> int:
    """A free TCP port on loopback."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def run_server(
    name: str,
    command: Sequence[str],
    *,
    port: int,
    environment: Mapping[str, str],
    directory: Path,
    keeps_connections: bool = True,
    start_seconds_max: float = _START_SECONDS_MAX,
) -> Iterator[RunningServer]:
    """Run `command` for the length of the block, once it answers `GET /` on `port`.

    Args:
        start_seconds_max: how long it may take until then.

    Raises:
        ServerNotStarted: with the end of what the server printed.
    """
    log = directory / f"server-{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=directory,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        _wait_until_it_answers(name, process, port, log, start_seconds_max)
        yield RunningServer(name, port, process.pid, directory, keeps_connections)
    finally:
        _stop(process)


@contextmanager
def run_berth(*, workers: int = 2, extra_configuration: str = "") -> Iterator[RunningServer]:
    """Serve berth from an empty database for the length of the block, as `berth serve` does.

    Args:
        workers: worker processes.
        extra_configuration: more text for placement.conf, sections included.
    """
    with (
        tempfile.TemporaryDirectory(prefix="berth-bench-") as name,
        serve_berth(Path(name), workers=workers, extra_configuration=extra_configuration) as server,
    ):
        yield server


def berth_database(directory: Path) -> Path:
    """The SQLite file that `serve_berth` serves."""
    return directory / "berth.sqlite"


def berth_url(directory: Path) -> str:
    """The URL of that file."""
    return f"sqlite:///{berth_database(directory)}"


@contextmanager
def serve_berth(
    directory: Path,
    *,
    workers: int = 2,
    extra_configuration: str = "",
    start_seconds_max: float = _START_SECONDS_MAX,
    database_url: str | None = None,
    checkout: Path | None = None,
    awaits_all: bool = True,
) -> Iterator[RunningServer]:
    """Serve berth from a database, whose tables are made if they are not there.

    Several may serve from the same directory.

    Args:
        directory: where its configuration and its log are to be.
        workers: worker processes.
        extra_configuration: more text for placement.conf, sections included.
        start_seconds_max: how long it may take until it answers.
        database_url: the database; none: an SQLite file in the directory.
        checkout: serve the berth of this checkout, with its `.venv`, under the name `before`;
            none: this one.
        awaits_all: wait until each worker listens: whoever connects before has all connections in
            the first one. Else until one answers.
    """
    port = free_port()
    url = database_url or berth_url(directory)
    configuration = directory / f"placement-{port}.conf"
    configuration.write_text(
        "[api]\nauth_strategy = noauth2\n"
        f"[placement_database]\nconnection = {url}\n"
        f"{extra_configuration}\n"
    )
    python = sys.executable if checkout is None else str(checkout / ".venv" / "bin" / "python")
    command = [
        *(python, "-m", "berth.cli", "serve", "--config-file", str(configuration)),
        *("--bind", f"127.0.0.1:{port}", "--workers", str(workers)),
    ]
    root = str(checkout or Path(__file__).resolve().parent.parent)
    with run_server(
        "berth" if checkout is None else "before",
        command,
        port=port,
        environment={**os.environ, "PYTHONPATH": root},
        directory=directory,
        start_seconds_max=start_seconds_max,
    ) as server:
        while awaits_all and _listeners(port) < workers:
            time.sleep(_POLL_SECONDS)
        yield server


def _listeners(port: int) -> int:
    """How many sockets listen on a port of IPv4. Source: proc(5), /proc/net/tcp."""
    table = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in table)


def _wait_until_it_answers(
    name: str, process: subprocess.Popen[bytes], port: int, log: Path, seconds_max: float
) -> None:
    """Return once `GET /` answers 200."""
    give_up_at = time.monotonic() + seconds_max
    while time.monotonic() < give_up_at and process.poll() is None:
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/")
            if connection.getresponse().status == 200:
                return
        except (OSError, HTTPException):
            pass
        finally:
            connection.close()
        time.sleep(_POLL_SECONDS)
    raise ServerNotStarted(name, log=log.read_text(errors="replace")[-_LOG_TAIL_CHARACTERS:])


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server's whole session, so that workers do not outlive a killed supervisor."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_SECONDS_MAX)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
