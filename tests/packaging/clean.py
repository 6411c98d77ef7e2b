# SPDX-License-Identifier: Apache-2.0
"""A clean virtual environment with only berth's wheel and its dependencies.

The dependencies are linked from the tests' environment, which takes a second instead of half a
minute.
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
    """A virtual environment with the wheel and some of its extras."""

    def __init__(self, folder: Path, wheel: Path, *extras: str) -> None:
        self.folder = folder
        python = folder / "bin" / "python"
        _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
        self.libraries = next(folder.glob("lib/python*/site-packages"))
        pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
        _run(*pip, "--python", str(python), "install", "--no-deps", "--no-compile", str(wheel))
        (metadata,) = self.libraries.glob("berthd-*.dist-info")
        for needed in _closure(Distribution.at(metadata), frozenset(extras)):
            self._link(needed)

    def run(
        self, home: Path, program: str, *arguments: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run one of its programs, from a directory that is not the source tree."""
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
        """Environment variables that do not lead to the source tree."""
        told = environment(home, **variables)
        del told["PYTHONPATH"]
        return told

    def size(self) -> int:
        """The size in bytes, without Python, pip and setuptools."""
        return sum(
            file.stat().st_size
            for top in self.libraries.iterdir()
            if not top.name.startswith(("pip", "setuptools", "_distutils_hack", "distutils-"))
            for file in ([top] if top.is_file() else top.rglob("*"))
            if file.is_file()
        )

    def _link(self, needed: Distribution) -> None:
        for file in needed.files or ():
            top = file.parts[0]
            there = self.libraries / top
            if top not in ("..", "__pycache__") and not there.exists():
                there.symlink_to(Path(str(needed.locate_file(top))))


def _closure(root: Distribution, extras: frozenset[str]) -> Iterator[Distribution]:
    """All dependencies of a distribution with these extras."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(root, extras)]
    while waiting:
        needing, wanted = waiting.pop()
        for requirement in map(Requirement, needing.requires or ()):
            key = canonicalize_name(requirement.name), frozenset(requirement.extras)
            applies = requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in wanted or {""}
            )
            if applies and key not in seen:
                seen.add(key)
                found = distribution(requirement.name)
                yield found
                waiting.append((found, frozenset(requirement.extras)))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
