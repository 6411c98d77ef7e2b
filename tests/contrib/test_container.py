# SPDX-License-Identifier: Apache-2.0
"""The Containerfile: a linter has no complaints, and the files that it copies exist.

CONTRIBUTING.md says how to build an image, which needs a container engine.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from berth.cli.main import cli
from tests.docs.pages import ROOT

FILE = ROOT / "contrib" / "container" / "Containerfile"

#: Its instructions, continued lines joined, in their order.
INSTRUCTIONS = [
    shlex.split(line, comments=True)
    for line in re.sub(r"\\\n", "", FILE.read_text()).splitlines()
    if line and not line.startswith("#")
]


def last(name: str) -> list[str]:
    """The arguments of the last instruction of a name, which is the one that counts."""
    return [words[1:] for words in INSTRUCTIONS if words[0] == name][-1]


def test_hadolint_finds_nothing() -> None:
    """Of any severity."""
    hadolint = Path(sys.executable).with_name("hadolint")
    linted = subprocess.run([hadolint, FILE], capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout) == (0, "")


def test_what_is_copied_is_there() -> None:
    """From the top of the source tree."""
    for words in INSTRUCTIONS:
        if words[0] == "COPY" and not words[1].startswith("--from"):
            assert [name for name in words[1:-1] if not (ROOT / name).exists()] == []


def test_it_runs_as_nobody_else_and_keeps_its_state_in_a_volume() -> None:
    """A numeric user, so that an orchestrator can verify that it is not root."""
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", last("USER")[0])
    assert last("VOLUME") == last("WORKDIR") == ["/var/lib/placement"]
    assert last("STOPSIGNAL") == ["SIGTERM"]


@pytest.mark.parametrize("name", ["ENTRYPOINT", "CMD"])
def test_the_process_is_berth_itself(name: str) -> None:
    """Without a shell, which would receive the signal to stop."""
    assert last(name)[0].startswith("[")


def test_what_it_starts_is_understood() -> None:
    """The command and its options exist in this release."""
    command = " ".join(last("CMD")).strip("[]").replace(",", "").split()
    shown = CliRunner().invoke(cli, [*command, "--help"])
    assert shown.exit_code == 0
    assert shown.output.startswith("Usage: ")
