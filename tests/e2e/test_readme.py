# SPDX-License-Identifier: Apache-2.0
"""The first example of the README works as printed, against a server and without one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.docs.how_to import shows
from tests.docs.pages import ROOT, blocks, section
from tests.e2e.serving import PATIENCE, served
from tests.e2e.warm import warm_commands

#: Printed in front of the output of each block of commands.
MARK = "berth-readme-block"

README = (ROOT / "README.md").read_text()

STEPS = [
    (block.kind, block.text) for block in blocks(section(README, "A first example"), "sh", "text")
]

#: How the page names a database instead of the service.
NAMING, AT_HOME = "OS_PLACEMENT_DATABASE__CONNECTION", ".local/share/berth/berth.db"


def follow(directory: Path, steps: list[tuple[str, str]], **variables: str) -> list[str]:
    """The output of each block of commands, run in one shell."""
    blocks_of_commands = [text for kind, text in steps if kind == "sh"]
    script = "set -eu\n" + "".join(f"echo {MARK}\n{text}" for text in blocks_of_commands)
    with TemporaryDirectory() as folder, warm_commands(Path(folder)) as programs:
        path = f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin"
        ran = subprocess.run(
            ["bash", "-c", script],
            cwd=directory,
            env={"HOME": str(directory), "LANG": "C.UTF-8", "PATH": path, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=2 * PATIENCE,
        )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout.split(f"{MARK}\n")[1:]


@pytest.mark.parametrize(
    "is_served",
    [
        pytest.param(True, id="over HTTP"),
        pytest.param(False, id="on the database", marks=pytest.mark.thorough),
    ],
)
def test_the_example_prints_what_the_page_shows(tmp_path: Path, is_served: bool) -> None:
    """Each block of output follows the commands that print it."""
    if is_served:
        with served(tmp_path) as url:
            outputs = follow(tmp_path, STEPS, BERTH_URL=url)
    else:
        # The first block names the service, and the sentence after it a database.
        assert "BERTH_URL" in STEPS[0][1]
        assert f"`export {NAMING}=sqlite:///$HOME/{AT_HOME}`" in README
        named = {NAMING: f"sqlite:///{tmp_path}/{AT_HOME}"}
        outputs = ["", *follow(tmp_path, STEPS[1:], **named)]
    number = -1
    for kind, text in STEPS:
        if kind == "sh":
            number += 1
        else:
            assert shows(outputs[number], text), outputs[number]
    registered = outputs[-2].splitlines()
    assert registered[-1] == "1 candidate on 1 host; no more fit"
    assert outputs[-1].splitlines()[-1].startswith("removed 681 providers and ")
