# SPDX-License-Identifier: Apache-2.0
"""How a command says that it failed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from berth.cli.exit_codes import ExitCode
from berth.model.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from berth.config import Settings

#: What to do about what engines say, the first that fits. All of them word the same few things.
_NEXT_STEPS: Final = (
    ("locked", "another program holds it; try again"),
    (
        "password|access denied|authentication|role .* does not exist",
        "correct the user and the password in [placement_database]connection",
    ),
    (
        "database .* does not exist|unknown database",
        "create it on the server, or correct its name in [placement_database]connection",
    ),
    (
        "read.?only",
        "this user must be able to write to it, and a replica will not do",
    ),
    (
        "connect|resolve|reached|timed? ?out|unreachable|gone away",
        "see whether the server runs, and whether [placement_database]connection has its right "
        "host and port",
    ),
    ("permission denied|denied", "grant this user all rights on it"),
)
_SQLITE_STEP: Final = (
    "it has to be an SQLite file that this user may read and write, in a folder where this user "
    "may make files"
)
_SERVER_STEP: Final = "the server's log may say more"

#: How MySQL's drivers word an error: a number and a text.
_NUMBERED: Final = re.compile(r"""^\((\d+), (['"])(.*)\2\)$""")


class CommandFailed(Exception):
    """A command cannot do what it was asked to: one sentence for people, one code for scripts."""

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def naming_the_database(settings: Settings) -> Iterator[None]:
    """Say of a database that cannot be used which it is, and what to look at.

    Raises:
        CommandFailed: in place of DatabaseUnavailable (DATABASE).
    """
    try:
        yield
    except DatabaseUnavailable as error:
        cause = str(error).partition(": ")[2] or str(error)
        cause = _NUMBERED.sub(r"\3 (\1)", cause)
        raise CommandFailed(
            f"cannot use the database {settings.database.masked_url}: {cause}; "
            f"{next_step(cause, settings.database.engine)}",
            ExitCode.DATABASE,
        ) from error


def next_step(cause: str, engine: str) -> str:
    """What to do about a database that cannot be used, by what the engine said of it."""
    if engine == "sqlite":
        return _NEXT_STEPS[0][1] if "locked" in cause else _SQLITE_STEP
    for words, step in _NEXT_STEPS:
        if re.search(words, cause, re.IGNORECASE):
            return step
    return _SERVER_STEP
