# SPDX-License-Identifier: Apache-2.0
"""How a command reports that it failed: a sentence for people, and an exit code for scripts.

Scripts rely on the codes, so a code never changes its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from berth.config import Settings


class ExitCode(IntEnum):
    """How a command ended."""

    #: Success.
    OK = 0
    #: The configuration is missing, unreadable or contradictory; also any failure without a code
    #: of its own.
    CONFIGURATION = 1
    #: The command line is wrong.
    USAGE = 2
    #: The database does not have this release's schema: run `berth db upgrade` first.
    SCHEMA = 3
    #: This release does not support the configured database engine or authentication, or the extra
    #: that it needs is not installed.
    UNSUPPORTED = 4
    #: The address to listen on is in use, or not an address of this machine.
    ADDRESS = 5
    #: Refused because it is unsafe: serving other machines without authentication, or changing a
    #: database that nothing names.
    UNSAFE = 6
    #: The database cannot be opened, read or upgraded.
    DATABASE = 7
    #: `berth db check` or `berth audit` found problems, or left some.
    INCONSISTENT = 8
    #: No worker could start; the log says why.
    WORKERS = 9
    #: Refused because the database, or the state directory of an agent, is in use.
    IN_USE = 10
    #: The service does not answer, or refused the request; or what the command names does not
    #: exist.
    SERVICE = 11
    #: The host's report is invalid, or its provider tree cannot be reshaped; the service keeps the
    #: old tree.
    HOST = 12
    #: A dry run found pending changes; nothing was written.
    PENDING = 13
    #: `berth candidates`, `berth place` or `berth move` found no host that fits.
    NOTHING_FITS = 14
    #: A bug in berth.
    INTERNAL = 70
    #: Interrupted with Ctrl-C, or not confirmed.
    INTERRUPTED = 130
    #: The reader closed the pipe (for example `head`).
    OUTPUT_CLOSED = 141


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

    def __init__(
        self, message: str, code: ExitCode = ExitCode.CONFIGURATION, *, faults: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.sentences: Final = tuple(faults) or (message,)


class Misused(CommandFailed):
    """The command line is wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ExitCode.USAGE)


@contextmanager
def naming_the_database(settings: Settings) -> Iterator[None]:
    """Add the database's URL and the next step to an error about the database.

    Raises:
        CommandFailed: instead of DatabaseUnavailable (DATABASE).
    """
    # Deferred: most commands open no database.
    from berth.model.errors import DatabaseUnavailable

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


#: The exit code of an error class, or of its nearest ancestor in this table. By name, so that no
#: module is imported for it.
EXIT_CODES: Final = {
    "berth.upkeep.schema.StillWritten": ExitCode.IN_USE,
    "berth.hosts.errors.OtherMachine": ExitCode.IN_USE,
    "berth.hosts.errors.StateDirInUse": ExitCode.IN_USE,
    "berth.deploy.NotInThisRelease": ExitCode.UNSUPPORTED,
    "berth.extras.ServiceNotInstalled": ExitCode.UNSUPPORTED,
    "berth.model.errors.UnsupportedDatabase": ExitCode.UNSUPPORTED,
    "berth.model.errors.SchemaError": ExitCode.SCHEMA,
    "berth.config.ConfigurationError": ExitCode.CONFIGURATION,
    "berth.model.errors.BerthError": ExitCode.DATABASE,
    "berth.hosts.errors.BadConfiguration": ExitCode.CONFIGURATION,
    "berth.hosts.errors.BadProviderTree": ExitCode.HOST,
    "berth.hosts.errors.DriverFailed": ExitCode.HOST,
    "berth.hosts.errors.ReshapeFailed": ExitCode.HOST,
    "berth.hosts.errors.ComputeError": ExitCode.SERVICE,
    "berth.client.errors.Incomplete": ExitCode.SERVICE,
    "berth.model.refusals.Refused": ExitCode.SERVICE,
}


def failure_for(error: Exception) -> CommandFailed:
    """The message about an error, and the exit code."""
    if isinstance(error, CommandFailed):
        return error
    for kind in type(error).__mro__:
        if code := EXIT_CODES.get(f"{kind.__module__}.{kind.__qualname__}"):
            # One line for each fault of a configuration or a tree.
            return CommandFailed(str(error), code, faults=getattr(error, "faults", ()))
    return CommandFailed(
        f"a bug in berth: {type(error).__name__}: {error}; please report it with the output of "
        f"`berth --debug`",
        ExitCode.INTERNAL,
    )
