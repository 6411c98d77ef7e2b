# SPDX-License-Identifier: Apache-2.0
"""Runs commands in separate processes that need not import berth first.

Each is forked from a process that has imported everything. The import takes a second of CPU time,
most commands a tenth of one. Only the start of Python differs from a shell.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

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
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    for path, flags, number in (
        (Path(os.devnull), os.O_RDONLY, 0),
        (out, os.O_WRONLY | os.O_CREAT, 1),
        (err, os.O_WRONLY | os.O_CREAT, 2),
    ):
        os.dup2(os.open(path, flags), number)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    main(arguments)
