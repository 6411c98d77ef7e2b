# SPDX-License-Identifier: Apache-2.0
"""The distribution is `berthd`; the package and the command are `berth`.

The package index has another `berth`, of 2017, which a reader must not install by mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Final

import berth
from tests.docs.pages import ROOT

#: Everything that somebody reads, copies or runs.
PLACES: Final = (
    *("berth", "bench", "changes", "contrib", "docs", "tests", "tools", ".ci"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "README.md"),
    *("constraints.txt", "pyproject.toml"),
)

#: The forms in which a distribution is named, with the other one's name.
OTHER: Final = re.compile(
    r"""
      \bpip3?\s+install (\s+-\S+ ([ =][\w./]+)?)* \s+ ['"`]* berth (?![\w./-])
    | \bberth \[ (\{ | NAME | [a-z]+ [,\]])
    | \bberth (-\d | [=<>~]= )
    | \b(version|distribution|metadata|files|requires) \( ['"] berth ['"] \)
    | ^name \s* = \s* "berth"$
    """,
    re.VERBOSE | re.MULTILINE,
)


def read_files() -> Iterator[tuple[Path, str]]:
    """Each text file below some directories, with its text."""
    for place in PLACES:
        path = ROOT / place
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            built = {"__pycache__", "_build", "node_modules"} & set(file.parts)
            if file.is_file() and not built and file.suffix not in (".pyc", ".svg", ".png"):
                yield file, file.read_text()


def test_nothing_names_the_other_distribution() -> None:
    """No page, message, file, tool or test installs it or asks for its version."""
    files = list(read_files())
    assert len(files) > 500
    assert [
        f"{file.relative_to(ROOT)}: {found[0]}"
        for file, text in files
        for found in OTHER.finditer(text)
    ] == []


def test_the_package_is_that_of_the_distribution() -> None:
    """`import berth` and `berth --version` are those of `berthd`."""
    assert set(packages_distributions()["berth"]) == {"berthd"}
    assert version("berthd") == berth.__version__
