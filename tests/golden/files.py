# SPDX-License-Identifier: Apache-2.0
"""Golden files: what a test made must be what the file says.

`python -m pytest tests/golden --write-golden` writes the files anew. Read the diff before you
commit it: it is what users will see change.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent

_LINES_SHOWN = 60

#: Compares texts by file name with the files of a folder.
Compare = Callable[[Path, Mapping[str, str]], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("berth").addoption(
        "--write-golden", action="store_true", help="write the golden files anew"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Compare:
    """Compares texts with the golden files of a folder, or writes the files."""
    return _write if request.config.getoption("--write-golden") else _compare


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in set(_names(folder)) - set(texts):
        (folder / old).unlink()
    for name, text in texts.items():
        (folder / name).write_text(text)


def _compare(folder: Path, texts: Mapping[str, str]) -> None:
    assert sorted(texts) == _names(folder), f"the files of {folder}"
    for name, text in texts.items():
        there = (folder / name).read_text()
        if text != there:
            changes = difflib.unified_diff(
                there.splitlines(), text.splitlines(), "golden", "now", n=1, lineterm=""
            )
            shown = "\n".join(list(changes)[:_LINES_SHOWN])
            pytest.fail(
                f"{folder.name}/{name} has changed. If that is meant, run the test again with "
                f"--write-golden.\n{shown}",
                pytrace=False,
            )


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
