# SPDX-License-Identifier: Apache-2.0
"""How a command reports that it failed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from berth.cli.exit_codes import ExitCode
from berth.model.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from berth.config import Settings

#: The next step for an engine's error message; the first pattern that matches.
_NEXT_STEPS: Final = (
    ("locked", "another program has locked it; try again"),
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
        "connect to a primary server, with a user that may write",
    ),
    (
        "connect|resolve|reached|timed? ?out|unreachable|gone away",
        "check that the server runs, and the host and port in [placement_database]connection",
    ),
    ("permission denied|denied", "grant this user all privileges on it"),
)
_SQLITE_STEP: Final = (
    "it must be an SQLite file that you can read and write, in a directory where you can create "
    "files"
)
_SERVER_STEP: Final = "see the server's log"

#: How drivers write the operating system's error numbers.
_ERRNO: Final = re.compile(r"\[Errno -?\d+\] ")

#: How MySQL's drivers write an error: a number and a text.
_NUMBERED: Final = re.compile(r"""^\((\d+), (['"])(.*)\2\)$""")


class CommandFailed(Exception):
    """A command failed: one sentence for people, or one for each fault, and an exit code for
    scripts."""

    def __init__(self, message: str, code: ExitCode, *, faults: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.sentences: Final = tuple(faults) or (message,)


@contextmanager
def naming_the_database(settings: Settings) -> Iterator[None]:
    """Add the database's URL and the next step to an error about the database.

    Raises:
        CommandFailed: instead of DatabaseUnavailable (DATABASE).
    """
    try:
        yield
    except DatabaseUnavailable as error:
        cause = str(error).partition(": ")[2] or str(error)
        cause = _ERRNO.sub("", _NUMBERED.sub(r"\3", cause))
        raise CommandFailed(
            f"cannot use the database {settings.database.masked_url}: {cause}; "
            f"{next_step(cause, is_sqlite=settings.database.is_sqlite)}",
            ExitCode.DATABASE,
        ) from error


def next_step(cause: str, *, is_sqlite: bool) -> str:
    """What to do about a database that cannot be used, from the engine's message."""
    if is_sqlite:
        return _NEXT_STEPS[0][1] if "locked" in cause else _SQLITE_STEP
    for words, step in _NEXT_STEPS:
        if re.search(words, cause, re.IGNORECASE):
            return step
    return _SERVER_STEP
