# SPDX-License-Identifier: Apache-2.0
"""A real `berth serve`, in a home directory of its own and on a port that was free."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

#: How long a server may take to answer its first request, and to end.
SECONDS_MAX = 20


@contextmanager
def served(home: Path, *, options: Sequence[str] = ()) -> Iterator[str]:
    """Run `berth serve` with nothing configured, and yield its base URL.

    Args:
        home: a directory for everything that it keeps; also where its log goes, `serve.log`.
        options: more options of the command, such as `--workers 2`.
    """
    bind = f"127.0.0.1:{free_port()}"
    log = home / "serve.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "berth.cli", "serve", "--bind", bind, *options],
            env=environment(home),
            cwd=home,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until_it_answers(f"http://{bind}/", process, log)
        yield f"http://{bind}"
    finally:
        process.terminate()
        process.wait(SECONDS_MAX)


def environment(home: Path) -> dict[str, str]:
    """This process's environment, without what would configure a service."""
    unwanted = ("OS_", "XDG_", "BERTH_", "SNAP")
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(unwanted)}
    return inherited | {"HOME": str(home)}


def free_port() -> int:
    """A port of the loopback address that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def wait_until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Ask until there is an answer; fail with the server's own words if it ends or takes too long."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (URLError, OSError):
            time.sleep(0.02)
    raise AssertionError(f"no answer from {url}; it said:\n{log.read_text()}")
