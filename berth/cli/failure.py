# SPDX-License-Identifier: Apache-2.0
"""How a command says that it failed."""

from collections.abc import Iterator
from contextlib import contextmanager

from berth.cli.exit_codes import ExitCode
from berth.config import Settings
from berth.model.errors import DatabaseUnavailable


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
        hint = (
            "another program holds it; try again"
            if "locked" in cause
            else "it has to be an SQLite file that this user may read and write, in a folder where "
            "this user may make files"
        )
        raise CommandFailed(
            f"cannot use the database {settings.database.masked_url}: {cause}; {hint}",
            ExitCode.DATABASE,
        ) from error
