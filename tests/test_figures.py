# SPDX-License-Identifier: Apache-2.0
"""What `make figures` counts, on packages small enough to count by hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.figures import circles, code_lines, function_lengths, raising, read_package

MODULE = '''\
"""What it is for.

More."""

import os  # a comment behind code


class Thing:
    """A thing."""

    #: An attribute.
    name = """two
lines"""

    def rename(
        self,
        name: str,
    ) -> None:
        """Rename it."""
        # Why.
        self.name = name
'''


def write(folder: Path, **modules: str) -> Path:
    """A package of these modules."""
    package = folder / "package"
    package.mkdir()
    for name, text in modules.items():
        (package / f"{name}.py").write_text(text)
    return package


def test_docstrings_comments_and_blank_lines_are_no_code(tmp_path: Path) -> None:
    """A text of two lines that is a value is two lines of code."""
    (module,) = read_package(write(tmp_path, module=MODULE))
    assert code_lines(module) == 1 + 1 + 2 + 4 + 1
    assert list(function_lengths(module)) == [5]


@pytest.mark.parametrize(
    ("middle", "at_once", "at_all"),
    [
        ("from package import first", 1, 1),
        ("import package.first", 1, 1),
        ("try:\n    from .first import name\nfinally:\n    pass", 1, 1),
        ("class Inner:\n    from package.first import name", 1, 1),
        ("def late():\n    from package import first", 0, 1),
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from package import first",
            0,
            1,
        ),
        ("import os", 0, 0),
    ],
)
def test_circles_are_counted_by_when_they_are_imported(
    tmp_path: Path, middle: str, at_once: int, at_all: int
) -> None:
    """Three modules in a row, of which the middle one leads back, or does not."""
    package = write(
        tmp_path,
        first="from package.second import name",
        second="import package.third",
        third=middle,
    )
    sources = read_package(package)
    assert len(circles(sources)) == at_once
    assert len(circles(sources, deferred=True)) == at_all


@pytest.mark.parametrize(
    ("limit", "other", "is_refused"),
    [("7", "", False), ("5", "x", False), ("4", "x", False), ("7", "x", True)],
    ids=["raised alone", "as before", "lowered", "raised with something else"],
)
def test_a_limit_is_raised_in_a_commit_of_its_own(
    tmp_path: Path, limit: str, other: str, is_refused: bool
) -> None:
    """Everybody can see then that a promise was changed, and why."""

    def commit(limit: str, other: str) -> None:
        text = f"def raising(): ...\nLIMITS: dict = {{LINES: {limit}}}\n# {limit} {other}\n"
        (tmp_path / "figures.py").write_text(text)
        (tmp_path / "other").write_text(other)
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
        subprocess.run(["git", *who, "commit", "-qm", "x"], cwd=tmp_path, check=True)

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit("5", "")
    commit(limit, other)
    commit("3", "the end")
    assert len([*raising(tmp_path, "figures.py")]) == is_refused
