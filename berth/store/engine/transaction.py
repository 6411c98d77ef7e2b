# SPDX-License-Identifier: Apache-2.0
"""A transaction under way: what a unit of work reads and writes with, and what it has touched."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any, Final, TypeVar

from sqlalchemy import Executable, Insert, Table, bindparam

from berth.store.engine.dialect import Dialect
from berth.store.engine.prepared import Parameters, Runner, Statements

T = TypeVar("T")

#: Values in one IN list: engines limit the parameters of a statement.
IN_LIST_MAX: Final = 500


class Tx:
    """A transaction under way, handed to the functions that are a part of it."""

    __slots__ = (
        "_in_list_max",
        "_run",
        "_statements",
        "connection",
        "dialect",
        "names_touched",
        "now",
        "reused",
        "touched",
    )

    def __init__(
        self,
        run: Runner,
        dialect: Dialect,
        statements: Statements,
        *,
        now: datetime,
        in_list_max: int,
    ) -> None:
        self.connection: Final = run.connection
        self.dialect: Final = dialect
        #: The transaction's own time, naive UTC: one for everything that it writes.
        self.now: Final = now
        #: Ids of the providers of which anything changed: they go to the journal with the commit.
        self.touched: Final[set[int]] = set()
        #: Ids of those of which nothing changed but what is used of them; may stand in both.
        self.reused: Final[set[int]] = set()
        #: Whether definitions of traits or resource classes changed.
        self.names_touched = False
        self._in_list_max = in_list_max
        self._statements = statements
        self._run = run

    def chunks(self, values: Iterable[T]) -> Iterator[list[T]]:
        """The values in lists that fit into an IN."""
        pending = iter(values)
        while chunk := list(islice(pending, self._in_list_max)):
            yield chunk

    def rows(self, query: Executable, parameters: Parameters) -> list[Any]:
        """What a query finds, as tuples. For queries that are made once (`prepared`)."""
        return self._statements.prepared(query).rows(self._run, parameters)

    def change(self, statement: Executable, parameters: Parameters | Sequence[Parameters]) -> int:
        """Run a write once, or for each of several sets of parameters; how many rows it wrote."""
        return self._statements.prepared(statement).change(self._run, parameters)

    def change_each(self, statement: Executable, parameters: Sequence[Parameters]) -> list[int]:
        """Run a write for each of several sets of parameters; how many rows each of them wrote."""
        return self._statements.prepared(statement).change_each(self._run, parameters)

    def insert_missing(self, table: Table, rows: Sequence[Parameters]) -> int:
        """Insert the rows whose keys are not there yet, all with the same columns; how many."""
        if not rows:
            return 0
        return self.change(_insert_missing(self.dialect, table, tuple(rows[0])), rows)


@lru_cache(maxsize=64)
def _insert_missing(dialect: Dialect, table: Table, columns: tuple[str, ...]) -> Insert:
    """The statement, kept: it is of an engine and a table's definition, and of no database."""
    return dialect.insert_missing(table).values({name: bindparam(name) for name in columns})
