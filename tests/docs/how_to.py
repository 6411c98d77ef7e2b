# SPDX-License-Identifier: Apache-2.0
"""Runs a page of `docs/how-to/` as its reader would: one shell, one empty directory.

The `sh` blocks run in order, with this release's commands first in the PATH. A `text` block that
follows one is what it prints: its lines stand in the output in their order, `...` for any text.
Pages write the customary port, 8778; another one, which is free, is put in its place.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.docs.pages import DOCS, blocks
from tests.e2e.serving import PATIENCE
from tests.servers.ports import free_port

HOW_TO = sorted((DOCS / "how-to").glob("*.md"))

#: The page that needs the original; `tests/adoption/` follows it.
OF_THE_ORIGINAL = DOCS / "how-to" / "migrate.md"

PORT = "8778"

_MARK = "berth-how-to-block"


def follow(page: Path, home: Path, variables: Mapping[str, str] | None = None) -> None:
    """Run a page's examples, and hold each against what the page says it prints.

    Args:
        home: an empty directory, for all that the page writes.
        variables: what the page takes for granted in the environment.
    """
    port = str(free_port())
    steps = [
        (block.kind, block.text.replace(PORT, port))
        for block in blocks(page.read_text(), "sh", "text")
    ]
    commands = [text for kind, text in steps if kind == "sh"]
    ran = _run(commands, home, variables or {})
    outputs = ran.stdout.split(f"{_MARK}\n")[1:]
    assert ran.returncode == 0, f"{page.name}, block {len(outputs)}:\n{ran.stdout}"
    number = 0
    for kind, text in steps:
        if kind == "sh":
            number += 1
        else:
            assert number, f"{page.name} shows output before any command"
            assert _shows(outputs[number - 1], text), (
                f"{page.name}, block {number}, should print\n{text}\nand printed\n"
                f"{outputs[number - 1]}"
            )
    own = home / ".local" / "share" / "berth"
    assert not own.exists(), f"{page.name} writes into the database of its reader's own service"


def _run(
    commands: list[str], home: Path, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """One shell for all commands, which ends at the first that fails; its children end with it."""
    script = "set -euo pipefail\n" + "".join(f"echo {_MARK}\n{text}" for text in commands)
    output = home.with_name(f"{home.name}.output")
    with output.open("w") as written:
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=home,
            env={
                "HOME": str(home),
                "LANG": "C.UTF-8",
                "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
                **variables,
            },
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(3 * PATIENCE)
        finally:
            _end(process)
    return subprocess.CompletedProcess(process.args, code, output.read_text())


def _end(process: subprocess.Popen[bytes]) -> None:
    """End all that the shell has started, servers politely."""
    for ending in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, ending)
        except ProcessLookupError:
            return
        if ending is signal.SIGTERM:
            _wait_for_group(process.pid)
    process.wait()


def _wait_for_group(group: int) -> None:
    """Wait until a process group is gone, at most a few seconds."""
    subprocess.run(
        ["timeout", "10", "bash", "-c", f"while kill -0 -- -{group} 2>&-; do sleep 0.05; done"],
        check=False,
    )


def _shows(output: str, expected: str) -> bool:
    """Whether the lines of `expected` stand in `output`, one after another."""
    lines = [
        ".*".join(re.escape(part) for part in line.strip().split("..."))
        for line in expected.splitlines()
        if line.strip()
    ]
    found = (line.strip() for line in output.splitlines())
    return all(any(re.fullmatch(line, candidate) for candidate in found) for line in lines)
