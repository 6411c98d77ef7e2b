# SPDX-License-Identifier: Apache-2.0
"""Runs commands in separate processes that need not import berth first.

Each is forked from a process that has imported everything. The import takes a second of CPU time,
most commands a tenth of one. Only the start of Python differs from a shell.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context, set_start_method
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import berth.cli

#: A command: it is given its arguments, and ends with SystemExit.
Main = Callable[[Sequence[str]], object]

_PROCESSES = get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    [
        __name__,
        "berth.direct",
        "berth.edge.server.workers",
        "pymysql",
        "psycopg",
        *(
            f"berth.cli.{path.stem}"
            for path in sorted(Path(berth.cli.__file__).parent.glob("[a-z]*.py"))
        ),
    ]
)

#: Bytes of the longest request of a client.
_LONGEST = 200_000


def run_warm(
    main: Main,
    arguments: Sequence[str],
    *,
    folder: Path,
    variables: Mapping[str, str],
    timeout: float,
    terminal: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as `subprocess.run` does, without stdin.

    Args:
        folder: the working directory.
        variables: its whole environment.
        terminal: where its output goes instead.

    Raises:
        subprocess.TimeoutExpired: it did not end in time, and was killed.
    """
    with TemporaryDirectory() as said:
        out, err = Path(said, "out"), Path(said, "err")
        shown = (terminal or out, terminal or err)
        process = _PROCESSES.Process(
            target=_run, args=(main, list(arguments), folder, dict(variables), *shown)
        )
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(arguments, timeout)
        code = process.exitcode
        process.close()
        texts = () if terminal else (out.read_text(), err.read_text())
        return subprocess.CompletedProcess(arguments, code, *texts)


def _run(
    main: Main,
    arguments: list[str],
    folder: Path,
    variables: dict[str, str],
    out: Path,
    err: Path,
) -> None:
    """In the forked process: set up what `subprocess.run` would have, and run the command."""
    for path, flags, number in (
        (Path(os.devnull), os.O_RDONLY, 0),
        (out, os.O_WRONLY | os.O_CREAT, 1),
        (err, os.O_WRONLY | os.O_CREAT, 2),
    ):
        os.dup2(os.open(path, flags), number)
    _begin(folder, variables)
    main(arguments)


def _begin(folder: Path, variables: Mapping[str, str]) -> None:
    """Take an environment, a directory, and the streams that there are now."""
    # A child of a fork server would start processes by one, too.
    set_start_method(None, force=True)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115


@contextmanager
def warm_commands(folder: Path) -> Iterator[Path]:
    """A directory for the PATH, whose `berth` runs each command but the first warm.

    As from a shell, with its arguments, environment, directory, streams, umask and ignored signals;
    it ends as the command ends, and passes signals on. The first is this environment's own `berth`,
    in a new Python process, so that nothing works only where all is imported.
    """
    programs = folder / "bin"
    programs.mkdir()
    address = folder / "warm"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(address))
        listener.listen(100)
        server = _PROCESSES.Process(target=_serve, args=(listener,))
        server.start()
        cold = Path(sys.executable).with_name("berth")
        asking = Path(__file__).with_name("warm_client.py")
        (programs / "berth").write_text(
            f'#!/bin/sh\nif mkdir {folder}/first 2>/dev/null; then exec {cold} "$@"; fi\n'
            f'exec {sys.executable} -I -S {asking} {address} "$@"\n'
        )
        (programs / "berth").chmod(0o755)
        try:
            yield programs
        finally:
            server.terminate()
            server.join()
            server.close()


def _serve(listener: socket.socket) -> None:
    """Fork a process for each command that is asked for, and one that watches over it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            with connection:
                _watch(connection)
            os._exit(0)
        connection.close()


def _watch(connection: socket.socket) -> None:
    """Start a command; pass it signals; say how it ended. Without its client, it is killed."""
    asked, streams, *_ = socket.recv_fds(connection, _LONGEST, 3)
    command = get_context("fork").Process(
        target=_become, args=(connection, json.loads(asked), streams)
    )
    command.start()
    assert command.pid is not None
    for stream in streams:
        os.close(stream)
    waited = [command.sentinel, connection.fileno()]
    while command.sentinel not in select.select(waited, [], [])[0]:
        number = connection.recv(1)
        os.kill(command.pid, number[0] if number else signal.SIGKILL)
    command.join()
    with suppress(BrokenPipeError):
        connection.sendall(str(command.exitcode).encode())


def _become(connection: socket.socket, asked: dict[str, Any], streams: Sequence[int]) -> None:
    """Run a command as a process that Python has just started would, but for what atexit has."""
    connection.close()
    for number in asked["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    os.umask(asked["umask"])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    _begin(Path(asked["folder"]), asked["variables"])
    sys.argv = ["berth", *asked["arguments"]]
    berth.cli.main()
