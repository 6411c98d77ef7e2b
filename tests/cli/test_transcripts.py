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

from tests.cli.conftest import Fleet
from tests.cli.in_process import InProcess
from tests.cli.transcript import Shell, Step, parts_of

FOLDER: Final = Path(__file__).parent / "transcripts"


def parts() -> list[object]:
    """Each part both ways: what it prints without a service, `.ci/run` looks at."""
    return [
        pytest.param(
            *(path, [*beginning.steps, *part.steps], way),
            id=f"{path.stem}-{re.sub(r'[^a-z0-9]+', '-', part.title.lower())}-{way}",
            marks=[pytest.mark.thorough] if way == "database" else [],
        )
        for path in sorted(FOLDER.glob("*.txt"))
        for beginning, *others in [parts_of(path)]
        for part in others
        for way in ("service", "database")
    ]


@pytest.mark.parametrize(("path", "steps", "way"), parts())
def test_a_transcript(
    path: Path,
    steps: list[Step],
    way: str,
    fleet: Fleet,
    in_process: InProcess,
    pytestconfig: pytest.Config,
) -> None:
    """The commands print what is written, and end with the exit codes that are written."""
    fleet.begin(way, is_demo=path.stem.startswith("demo_"))
    Shell(in_process, fleet.home, pytestconfig.getoption("--write-golden")).run(steps, path)
