# SPDX-License-Identifier: Apache-2.0
"""What a driver raises, told apart: our mistakes, values that cannot be stored, a lost database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import exc

from berth.model.errors import DatabaseUnavailable, UnstorableValue

#: What the driver raises when it is we who are wrong, not the database.
_MISTAKES: Final = (exc.IntegrityError, exc.ProgrammingError, exc.NotSupportedError)


@contextmanager
def translated() -> Iterator[None]:
    """What the driver says about a lost or broken database, as our own error."""
    try:
        yield
    except exc.TimeoutError as error:
        raise _unavailable(error) from error
    except exc.DataError as error:
        raise UnstorableValue(_first_line(error)) from error
    except exc.DBAPIError as error:
        # A connection that was closed under us is a ProgrammingError too, and no mistake of ours.
        if isinstance(error, _MISTAKES) and not error.connection_invalidated:
            raise
        raise _unavailable(error) from error


def _unavailable(error: exc.SQLAlchemyError) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"The database cannot be used at the moment: {_first_line(error)}",
    )


def _first_line(error: exc.SQLAlchemyError) -> str:
    """What the engine says, without the lines that point into a statement."""
    cause = getattr(error, "orig", None) or error
    return str(cause).partition("\n")[0]


def is_lost(error: exc.SQLAlchemyError) -> bool:
    """Whether it is the connection that failed."""
    return isinstance(error, exc.DBAPIError) and error.connection_invalidated
