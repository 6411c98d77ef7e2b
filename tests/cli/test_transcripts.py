# SPDX-License-Identifier: Apache-2.0
"""What each command prints, and how it fails: `tests/cli/transcripts`.

Each part has a fleet of its own. Against a service it prints what is written; so it does on the
database, without a service.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from berth.cli.main import main
from berth.cli.original_commands import placement_manage, placement_status
from tests.cli.conftest import Fleet
from tests.cli.in_process import InProcess
from tests.cli.transcript import Shell, Step, parts_of

FOLDER: Final = Path(__file__).parent / "transcripts"


#: Transcripts of commands of one machine, which need no fleet.
LOCAL: Final = "local_"


def parts() -> list[object]:
    """Each part both ways: what it prints without a service, `.ci/run` looks at."""
    return [
        pytest.param(
            *(path, [*beginning.steps, *part.steps], way),
            id="-".join([path.stem, *re.findall("[a-z0-9]+", part.title.lower()), way]),
            marks=[pytest.mark.thorough] if way == "database" else [],
        )
        for path in sorted(FOLDER.glob("*.txt"))
        for beginning, *others in [parts_of(path)]
        for part in others
        for way in (("alone",) if path.stem.startswith(LOCAL) else ("service", "database"))
    ]


@pytest.mark.parametrize(("path", "steps", "way"), parts())
def test_a_transcript(
    path: Path,
    steps: list[Step],
    way: str,
    fleet: Fleet,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    pytestconfig: pytest.Config,
) -> None:
    """The commands print what is written, and end with the exit codes that are written."""
    if way == "alone":
        monkeypatch.setattr("berth.edge.auth.htpasswd.COST", 4)
    else:
        fleet.begin(way, is_demo=path.stem.startswith("demo_"))
    mains = {
        "berth": main,
        "placement-manage": placement_manage,
        "placement-status": placement_status,
    }
    programs = {name: InProcess(monkeypatch, capsys, each) for name, each in mains.items()}
    Shell(programs, monkeypatch, fleet.home, pytestconfig.getoption("--write-golden")).run(
        steps, path
    )
