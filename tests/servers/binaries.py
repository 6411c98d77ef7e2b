# SPDX-License-Identifier: Apache-2.0
"""Finds the programs and libraries of the database servers on this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path

#: Where distributions put what is not meant for everybody's PATH; newest versions first.
_MORE_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/sbin", "/usr/libexec")

_GALERA_PLACES = (
    "/usr/lib/galera",
    "/usr/lib/galera-4",
    "/usr/lib64/galera-4",
    "/usr/lib64/galera",
)

#: What each engine needs: programs, and the module of its driver.
_PROGRAMS = {
    "postgresql": ("initdb", "postgres"),
    "mariadb": ("mariadb-install-db", "mariadbd"),
    "galera": ("mariadb-install-db", "mariadbd", "wsrep_sst_rsync", "rsync"),
}
_DRIVERS = {"postgresql": "psycopg", "mariadb": "pymysql", "galera": "pymysql"}


def why_missing(engine: str) -> str | None:
    """The first reason why the servers of an engine cannot be started here, or None."""
    for name in _PROGRAMS[engine]:
        if find_program(name) is None:
            return f"no `{name}` binary found"
    if engine == "galera" and find_galera() is None:
        return "no `libgalera_smm.so` found"
    if importlib.util.find_spec(_DRIVERS[engine]) is None:
        return f"no module `{_DRIVERS[engine]}` to connect with"
    return None


def program(name: str) -> Path:
    """The path of an installed program."""
    found = find_program(name)
    assert found is not None, f"no `{name}` binary found"
    return found


@cache
def find_program(name: str) -> Path | None:
    """A program in PATH, or in the distributions' directories of servers; the newest version."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, _places())])
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def find_galera() -> Path | None:
    """Galera's library."""
    paths = (Path(place) / "libgalera_smm.so" for place in _GALERA_PLACES)
    return next((path for path in paths if path.exists()), None)


def _places() -> Iterable[Path]:
    for pattern in _MORE_PLACES:
        yield from sorted(Path("/").glob(pattern[1:]), key=_version, reverse=True)


def _version(place: Path) -> int:
    return int("".join(filter(str.isdigit, str(place))) or 0)
