# SPDX-License-Identifier: Apache-2.0
"""Classifies a driver's errors: berth's mistakes, values that cannot be stored, a lost database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import exc

from berth.model.errors import DatabaseUnavailable, UnstorableValue

#: Errors of the driver that are berth's mistake, not the database's.
_MISTAKES: Final = (exc.IntegrityError, exc.ProgrammingError, exc.NotSupportedError)


@contextmanager
def translated() -> Iterator[None]:
    """Turns the driver's errors about a lost or broken database into berth's own."""
    try:
        yield
    except exc.TimeoutError as error:
        raise _unavailable(error) from error
    except exc.DataError as error:
        raise UnstorableValue(_first_line(error)) from error
    except exc.DBAPIError as error:
        # Using a closed connection is also a ProgrammingError, but not a mistake of berth's.
        if isinstance(error, _MISTAKES) and not error.connection_invalidated:
            raise
        raise _unavailable(error) from error


def _unavailable(error: exc.SQLAlchemyError) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"The database cannot be used at the moment: {_first_line(error)}",
    )


def _first_line(error: exc.SQLAlchemyError) -> str:
    """The engine's message, without the lines that point into a statement."""
    cause = getattr(error, "orig", None) or error
    return str(cause).partition("\n")[0]


def is_lost(error: exc.SQLAlchemyError) -> bool:
    """Whether the connection was lost."""
    return isinstance(error, exc.DBAPIError) and error.connection_invalidated
