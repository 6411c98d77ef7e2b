# SPDX-License-Identifier: Apache-2.0
"""A clean virtual environment: berth's wheel, and what its metadata asks for, and nothing else.

What it asks for is linked from the environment of the tests, distribution by distribution, which
takes a second where an installation takes half a minute.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.e2e.serving import environment


class CleanEnvironment:
    """A virtual environment in which a wheel is installed."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        python = folder / "bin" / "python"
        _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
        self.libraries = next(folder.glob("lib/python*/site-packages"))
        pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
        _run(*pip, "--python", str(python), "install", "--no-deps", "--no-compile", str(wheel))
        (metadata,) = self.libraries.glob("berthd-*.dist-info")
        for needed in _closure(Distribution.at(metadata)):
            self._link(needed)

    def run(
        self, home: Path, program: str, *arguments: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run one of its programs to the end, from a folder that is not the source tree."""
        return subprocess.run(
            self.command(program, *arguments),
            env=self.variables(home, **variables),
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )

    def command(self, program: str, *arguments: str) -> list[str]:
        """One of its programs, by its path."""
        return [str(self.folder / "bin" / program), *arguments]

    def variables(self, home: Path, **variables: str) -> dict[str, str]:
        """An environment in which nothing leads to the source tree."""
        told = environment(home, **variables)
        del told["PYTHONPATH"]
        return told

    def _link(self, needed: Distribution) -> None:
        for file in needed.files or ():
            top = file.parts[0]
            there = self.libraries / top
            if top not in ("..", "__pycache__") and not there.exists():
                there.symlink_to(Path(str(needed.locate_file(top))))


def _closure(root: Distribution) -> Iterator[Distribution]:
    """Every distribution that one needs, without its extras."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting: list[tuple[Distribution, frozenset[str]]] = [(root, frozenset())]
    while waiting:
        needing, extras = waiting.pop()
        for requirement in map(Requirement, needing.requires or ()):
            key = canonicalize_name(requirement.name), frozenset(requirement.extras)
            applies = requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in extras or {""}
            )
            if applies and key not in seen:
                seen.add(key)
                found = distribution(requirement.name)
                yield found
                waiting.append((found, frozenset(requirement.extras)))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
