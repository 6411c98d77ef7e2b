# SPDX-License-Identifier: Apache-2.0
"""Runs a page of `docs/how-to/`, or the tutorial, as a reader would: in one shell and one empty
directory.

The `sh` blocks run in order, with this release's commands first in the PATH; `berth` runs as
`tests/e2e/warm.py` says, the first of a page in a new Python process. A `text` block after
one is its output: its lines must appear in the output in order; `...` stands for any text. Pages
use the usual port, 8778, which a free one replaces.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.docs.pages import DOCS, blocks
from tests.e2e.serving import PATIENCE
from tests.e2e.warm import warm_commands
from tests.servers.ports import free_port

HOW_TO = [*sorted((DOCS / "how-to").glob("*.md")), DOCS / "tutorial.md"]

#: The page that needs OpenStack Placement; `tests/adoption/` runs it.
OF_THE_ORIGINAL = DOCS / "how-to" / "migrate.md"

PORT = "8778"

_MARK = "berth-how-to-block"


def follow(
    page: Path,
    home: Path,
    variables: Mapping[str, str] | None = None,
    *,
    patience_s: float = 3 * PATIENCE,
) -> None:
    """Run a page's examples, and compare each output with the page.

    Args:
        home: an empty directory, for everything that the page writes.
        variables: the environment variables that the page expects.
        patience_s: how long all of it may take.
    """
    port = str(free_port())
    steps = [
        (block.kind, block.text.replace(PORT, port))
        for block in blocks(page.read_text(), "sh", "text")
    ]
    commands = [text for kind, text in steps if kind == "sh"]
    with TemporaryDirectory() as folder, warm_commands(Path(folder)) as programs:
        ran = _run(commands, home, programs, variables or {}, patience_s)
    outputs = ran.stdout.split(f"{_MARK}\n")[1:]
    assert ran.returncode == 0, f"{page.name}, block {len(outputs)}:\n{ran.stdout}"
    number = 0
    for kind, text in steps:
        if kind == "sh":
            number += 1
        else:
            assert number, f"{page.name} shows output before any command"
            assert shows(outputs[number - 1], text), (
                f"{page.name}, block {number}, should print\n{text}\nand printed\n"
                f"{outputs[number - 1]}"
            )
    own = home / ".local" / "share" / "berth"
    assert not own.exists(), f"{page.name} writes into the database of its reader's own service"


def _run(
    commands: list[str],
    home: Path,
    programs: Path,
    variables: Mapping[str, str],
    patience_s: float,
) -> subprocess.CompletedProcess[str]:
    """Run all commands in one shell, which exits at the first failure; its children end with it."""
    script = "set -euo pipefail\n" + "".join(f"echo {_MARK}\n{text}" for text in commands)
    output = home.with_name(f"{home.name}.output")
    with output.open("w") as written:
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=home,
            env={
                "HOME": str(home),
                "LANG": "C.UTF-8",
                "PATH": f"{programs}:{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
                **variables,
            },
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(patience_s)
        finally:
            _end(process)
    return subprocess.CompletedProcess(process.args, code, output.read_text())


def _end(process: subprocess.Popen[bytes]) -> None:
    """End everything that the shell has started, servers with SIGTERM first."""
    for ending in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, ending)
        except ProcessLookupError:
            return
        if ending is signal.SIGTERM:
            _wait_for_group(process.pid)
    process.wait()


def _wait_for_group(group: int) -> None:
    """Wait until a process group has ended, for 10 seconds at most."""
    subprocess.run(
        ["timeout", "10", "bash", "-c", f"while kill -0 -- -{group} 2>&-; do sleep 0.05; done"],
        check=False,
    )


def shows(output: str, expected: str) -> bool:
    """Return whether the lines of `expected` appear in `output`, in order."""
    lines = [
        ".*".join(re.escape(part) for part in line.strip().split("..."))
        for line in expected.splitlines()
        if line.strip()
    ]
    found = (line.strip() for line in output.splitlines())
    return all(any(re.fullmatch(line, candidate) for candidate in found) for line in lines)
