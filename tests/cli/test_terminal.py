# SPDX-License-Identifier: Apache-2.0
"""Output uses the terminal's width and colours, unless NO_COLOR is set; pipes get plain text."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from berth.cli.main import main
from tests.cli.conftest import Fleet
from tests.cli.in_process import InProcess
from tests.e2e.serving import PATIENCE, environment
from tests.e2e.warm import run_warm

WIDTH = 60

#: What makes a terminal show a colour, or other than plain letters.
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")

LONG = "a-provider-with-a-name-as-long-as-it-takes-to-be-cut"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The agent's configuration of a host with many traits and a GPU."""
    traits = [f"CUSTOM_TRAIT_NUMBER_{number}" for number in range(40)]
    (tmp_path / "providers.yaml").write_text(
        "inventories:\n  VCPU: {total: 16, allocation_ratio: 4.0, reserved: 2}\n"
        f"  MEMORY_MB: {{total: 65536}}\ntraits: [{', '.join(traits)}]\n"
        "children:\n  - name: $NODE_gpu0\n    inventories: {PGPU: {total: 1}}\n"
        "  - name: $NODE_gpu1\n    inventories: {PGPU: {total: 1}}\n"
    )
    path = tmp_path / "agent.yaml"
    path.write_text(
        "service: {url: 'http://127.0.0.1:1', token_file: token}\ndriver: static\n"
        f"options: {{file: {tmp_path}/providers.yaml}}\n"
        "node: {name: host-1, uuid: 6f1c2d5e-3a41-4f58-9a3c-0d6f0e9b7a10}\n"
    )
    return path


def on_a_terminal(home: Path, *arguments: str, **variables: str) -> str:
    """The output of a command on a terminal of `WIDTH` columns."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    told = environment(home, TERM="xterm-256color", LANG="C.UTF-8", **variables)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        if name not in variables:
            told.pop(name, None)
    printed = bytearray()

    def read() -> None:
        with suppress(OSError):  # what Linux says at the end
            while piece := os.read(ours, 65536):
                printed.extend(piece)

    reader = threading.Thread(target=read)
    reader.start()
    terminal = Path(os.ttyname(its))
    done = run_warm(
        main, arguments, folder=home, variables=told, timeout=PATIENCE, terminal=terminal
    )
    os.close(its)
    reader.join()
    os.close(ours)
    assert done.returncode == 0, printed
    return printed.decode().replace("\r\n", "\n")


def test_a_tree_is_as_wide_as_the_terminal(tmp_path: Path, config: Path) -> None:
    """With branches, one line per inventory, and every trait in full."""
    shown = on_a_terminal(tmp_path, "agent", "show", "--config", str(config))
    assert ESCAPE.search(shown)
    lines = [line.rstrip() for line in ESCAPE.sub("", shown).splitlines()]
    assert max(map(len, lines)) <= WIDTH
    assert lines[:3] == [
        "host-1",
        "  MEMORY_MB  65536",
        "  VCPU          16  reserved 2, ratio 4.0",
    ]
    assert "├── host-1_gpu0" in lines and "└── host-1_gpu1" in lines
    words = " ".join(lines).split()
    assert [word for word in words if word.startswith("+CUSTOM_TRAIT")] == sorted(
        f"+CUSTOM_TRAIT_NUMBER_{number}" for number in range(40)
    )
    plain = on_a_terminal(tmp_path, "agent", "show", "--config", str(config), NO_COLOR="1")
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) <= WIDTH


def test_a_table_is_cut_to_the_terminal(
    fleet: Fleet, in_process: InProcess, tmp_path: Path
) -> None:
    """With an ellipsis; the headings are bold, unless colours are not wanted."""
    fleet.begin()
    assert in_process("provider", "create", LONG).returncode == 0
    command = ("provider", "list", "--config-file", str(fleet.configuration))
    shown = on_a_terminal(tmp_path, *command)
    assert ESCAPE.search(shown)
    named, *lines = ESCAPE.sub("", shown).splitlines()
    assert named.startswith("Database: ")
    assert max(map(len, lines)) == WIDTH
    assert lines[1].startswith(LONG) and lines[1].endswith("…")
    plain = on_a_terminal(tmp_path, *command, NO_COLOR="1")
    assert not ESCAPE.search(plain)
    assert max(map(len, plain.splitlines()[1:])) == WIDTH
    piped = in_process("provider", "list").stdout
    assert not ESCAPE.search(piped) and "…" not in piped


def test_a_pipe_gets_a_line_for_each_provider(config: Path, in_process: InProcess) -> None:
    """For grep and awk: no escapes, no branches, no wrapping."""
    shown = in_process("agent", "show", "--config", str(config)).stdout
    assert "\x1b" not in shown
    first, *others = shown.splitlines()
    assert first.startswith("host-1  MEMORY_MB=65536  VCPU=16(reserved:2,ratio:4.0)  +CUSTOM_")
    assert len(first) > 10 * WIDTH
    assert [line.split()[0] for line in others] == ["host-1_gpu0", "host-1_gpu1"]
