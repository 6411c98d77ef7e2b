# SPDX-License-Identifier: Apache-2.0
"""The output of `tools/install.sh`, which `make serve` runs, with a simulated pip."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from tests.docs.pages import ROOT

#: Plays `python -m pip`: finds 40 packages, one of them large, and installs them.
PIP: Final = """#!/bin/sh
case "$*" in
*"pip show"*) exit 1 ;;
esac
for number in $(seq 40); do
  echo "Collecting package-$number>=1.0"
  echo "  Downloading package_$number-1.0-py3-none-any.whl (12.3 MB)"
done
echo "Installing collected packages: a, b, c"
echo "Successfully installed a-1.0 b-1.0 c-1.0"
"""


def install(folder: Path, pip: str) -> subprocess.CompletedProcess[str]:
    """Run the script with a Python whose pip is simulated."""
    python = folder / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(pip)
    python.chmod(0o755)
    return subprocess.run(
        ["bash", str(ROOT / "tools" / "install.sh"), str(python), "-e", "."],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_log_shows_how_far_it_is_in_a_few_lines(tmp_path: Path) -> None:
    """Without a terminal, no line is overwritten."""
    done = install(tmp_path, PIP)
    assert (done.returncode, done.stderr) == (0, "")
    first, *between, last = done.stdout.splitlines()
    assert first == f"Installing berth into {tmp_path}/venv; the first time takes a minute or two"
    assert between == [
        "  15 packages found, the last is package-15>=1.0",
        "  30 packages found, the last is package-30>=1.0",
        "  installing 3 packages",
    ]
    assert last.startswith("Installed in ")


def test_an_installation_that_fails_says_why(tmp_path: Path) -> None:
    """With pip's message, and make fails."""
    done = install(tmp_path, '#!/bin/sh\necho "Collecting a"\necho "ERROR: no space" >&2\nexit 2\n')
    assert done.returncode != 0
    assert done.stderr == "ERROR: no space\n"
    assert "Installed" not in done.stdout
