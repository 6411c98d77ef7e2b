# SPDX-License-Identifier: Apache-2.0
"""`berth serve` in a process of its own, on a free port; tests always stop it."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from berth.cli.main import main
from tests.e2e.warm import run_warm

BERTH = (sys.executable, "-m", "berth.cli")

#: Seconds that a server may take to start or to stop before a test gives up; generous, because
#: the machine may be busy, and never an assertion about speed.
PATIENCE = 60.0


@dataclass
class Service:
    """A running `berth serve`."""

    process: subprocess.Popen[bytes]
    url: str
    #: What it printed at start.
    banner: str
    home: Path
    #: Where its log goes.
    log: Path

    @property
    def host(self) -> str:
        """The host of its address."""
        return self.url.partition("://")[2].rpartition(":")[0]

    @property
    def port(self) -> int:
        """The port of its address."""
        return int(self.url.rpartition(":")[2])

    def workers(self) -> set[int]:
        """The process ids of its workers."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return {int(pid) for pid in path.read_text().split()}

    def terminate(self) -> int:
        """Send it SIGTERM and wait; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


def environment(home: Path, **variables: str) -> dict[str, str]:
    """The environment of a command with an empty home and no configuration."""
    unwanted = ("OS_", "XDG_", "SNAP")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(unwanted)}
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [root, kept.get("PYTHONPATH")]))
    # Where stevedore keeps what it reads of all installed packages: without it, every command with
    # a new home reads that again.
    cache = str(Path(root) / "build" / "cache")
    defaults = {"HOME": str(home), "PYTHONPATH": path, "XDG_CACHE_HOME": cache}
    return {**kept, **defaults, **variables}


def run_berth(
    home: Path, *arguments: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a `berth` command to its end; a service takes a free port unless the caller gives one."""
    if "serve" in arguments and "--bind" not in arguments:
        arguments = (*arguments, "--bind", "127.0.0.1:0")
    return run_warm(
        main,
        arguments,
        folder=home,
        variables=environment(home, **(variables or {})),
        timeout=PATIENCE,
    )


def run_anew(
    home: Path, *arguments: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """As `run_berth`, in a new Python process, for tests that depend on its start."""
    return subprocess.run(
        [*BERTH, *arguments],
        env=environment(home, **(variables or {})),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def configured(home: Path, url: str) -> Path:
    """Write the configuration of a service without authentication on a database, into `home`."""
    conf = home / "placement.conf"
    conf.write_text(f"[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = {url}\n")
    return conf


@contextmanager
def serving(
    home: Path,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    command: Sequence[str] = BERTH,
    environ: Mapping[str, str] | None = None,
) -> Iterator[Service]:
    """A `berth serve` on a free port, for the duration of the block.

    Args:
        variables: additional environment variables.
        command: another berth than that of the tests.
        environ: the whole environment, instead of an empty one.
    """
    log = home / "serve.log"
    # Services of several tests at once would be bound to the same processor.
    chosen = {"OS_BERTH__PIN_WORKERS": "false", **(variables or {})}
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [*command, "serve", "--bind", "127.0.0.1:0", *arguments],
            env=environ or environment(home, **chosen),
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
    try:
        banner = _read_banner(process, log)
        match = re.search(r"serves (https?://\S+:\d+),", banner)
        assert match, f"no address in what berth said at start:\n{banner}"
        yield Service(process, match[1], banner, home, log)
    finally:
        stop(process)


@contextmanager
def served(home: Path, *arguments: str) -> Iterator[str]:
    """As `serving`, but only the base URL."""
    with serving(home, *arguments) as service:
        yield service.url


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Poll a condition until it is true, or fail with its description."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting: {what}"
        time.sleep(0.01)


def _read_banner(process: subprocess.Popen[bytes], log: Path) -> str:
    """The lines that the service prints once it answers; the last is a request to try."""
    assert process.stdout is not None
    said = b""
    deadline = time.monotonic() + PATIENCE
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not re.search(rb"^  try .*\n", said, re.MULTILINE):
            ready = selector.select(deadline - time.monotonic())
            piece = os.read(process.stdout.fileno(), 65536) if ready else b""
            assert piece, f"berth serve did not start:\n{said.decode()}{log.read_text()}"
            said += piece
    return said.decode()


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the service and every process of its session, first with SIGTERM."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
