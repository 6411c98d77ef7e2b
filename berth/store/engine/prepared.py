# SPDX-License-Identifier: Apache-2.0
"""Statements that are compiled once and then go straight to the driver.

SQLAlchemy's Core stays the language: what it renders for an engine is kept, with the order and the
types of its parameters. Running it then costs a fifth of what `Connection.execute` takes, which is
most of what a claim costs at all.

PERF bench, claims: thirteen statements took 330 of the 550 microseconds of a claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol

from sqlalchemy import (
    BindParameter,
    ClauseElement,
    Connection,
    Dialect,
    Executable,
    Float,
    Insert,
    Select,
    Table,
    bindparam,
    exc,
    insert,
)
from sqlalchemy.sql.compiler import SQLCompiler

#: What SQLAlchemy writes for a list whose length is not known yet.
_LIST: Final = re.compile(r"__\[POSTCOMPILE_(\w+)\]")

#: In the `info` of a connection: whether its server is one of several that write.
CLUSTERED: Final = "berth_clustered"

#: MySQL's: the bit of a server's status, and the number of an error.
_IN_TRANSACTION: Final = 1
_DEADLOCK: Final = 1213

#: Statements that a process may keep; more means that somebody makes them per call.
_STATEMENTS_MAX: Final = 500

#: Texts of one statement that are kept, for as many combinations of its lists' lengths.
_TEXTS_MAX: Final = 1000

Parameters = Mapping[str, Any]
_Converter = Callable[[Any], Any]


class Wire(Protocol):
    """The way of statements to the server behind one of the driver's connections; what goes wrong
    is raised as the driver's error."""

    def fetch(self, text: str, values: Sequence[Any]) -> list[Any]:
        """All rows of a query, as tuples."""

    def change(self, text: str, values: Sequence[Any]) -> int:
        """How many rows a statement wrote."""

    def change_many(self, text: str, values: Sequence[Sequence[Any]]) -> int:
        """How many rows it wrote with each of several sets of values, by all of them together."""

    def change_each(self, text: str, values: Sequence[Sequence[Any]]) -> list[int]:
        """How many rows it wrote with each of several sets of values."""

    def check_transaction(self) -> None:
        """Raise the driver's error of a deadlock if the server has taken the transaction back
        without a word."""


class Prepared:
    """One statement, rendered for one engine."""

    def __init__(self, statement: Executable, dialect: Dialect) -> None:
        compiled = _compiled(statement, dialect)
        assert compiled.positional, "parameters are handed over in order"
        names = compiled.positiontup or []
        self._text: Final = str(compiled)
        self._mark: Final = compiled.bindtemplate % {"name": ""}
        self._names: Final = names
        self._lists: Final = frozenset(_LIST.findall(self._text))
        #: The text for each combination of the lists' lengths.
        self._texts: Final[dict[tuple[int, ...], str]] = {}
        constants = {
            name: bind.value
            for name, bind in compiled.binds.items()
            if name in names and not bind.required
        }
        #: The constants of the statement at their places, and who stands at the others.
        self._constants: Final[list[Any]] = [constants.get(name) for name in names]
        self._variables: Final = [
            (place, name) for place, name in enumerate(names) if name not in constants
        ]
        #: (place, conversion) of the parameters that the driver does not take as they are.
        self._converted: Final = [
            (place, lru_cache(maxsize=8)(convert))
            for place, name in enumerate(names)
            if (convert := _bind_conversion(compiled.binds[name], dialect))
        ]
        #: The same for the columns of the result.
        self._results: Final = _result_conversions(statement, dialect)

    def rows(self, run: Runner, parameters: Parameters) -> list[Any]:
        """What a query finds, as plain tuples."""
        found = run.fetch(self._text_for(parameters), self._values(parameters))
        if not self._results:
            return found
        return [_row_converted(row, self._results) for row in found]

    def change(self, run: Runner, parameters: Parameters | Sequence[Parameters]) -> int:
        """Write, once or for each of several sets of parameters; the number of rows written."""
        if not isinstance(parameters, Mapping):
            if len(parameters) != 1:
                assert not self._lists, "several statements of one text"
                return run.change_many(self._text, [self._values(each) for each in parameters])
            (parameters,) = parameters
        return run.change(self._text_for(parameters), self._values(parameters))

    def change_each(self, run: Runner, parameters: Sequence[Parameters]) -> list[int]:
        """Write for each of several sets of parameters; the number of rows that each wrote."""
        assert not self._lists, "several statements of one text"
        return run.change_each(self._text, [self._values(each) for each in parameters])

    def _text_for(self, parameters: Parameters) -> str:
        if not self._lists:
            return self._text
        lengths = tuple([len(parameters[name]) for name in self._lists])
        text = self._texts.get(lengths)
        if text is None:
            if len(self._texts) >= _TEXTS_MAX:
                self._texts.clear()
            # An empty list holds nothing; NULL is equal to nothing.
            text = self._texts[lengths] = _LIST.sub(
                lambda found: ", ".join(self._mark for _ in parameters[found[1]]) or "NULL",
                self._text,
            )
        return text

    def _values(self, parameters: Parameters) -> list[Any]:
        values = self._constants.copy()
        for place, name in self._variables:
            values[place] = parameters[name]
        for place, convert in self._converted:
            values[place] = convert(values[place])
        if not self._lists:
            return values
        flat: list[Any] = []
        for name, value in zip(self._names, values, strict=True):
            if name in self._lists:
                flat.extend(value)
            else:
                flat.append(value)
        return flat


class Statements:
    """What has been prepared so far, for one engine."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        #: By the statement as an object, which modules make once; they end with the database's
        #: object, and depend on its engine and the tables' definitions, not on what rows say.
        self._known: dict[Executable, Prepared] = {}

    def prepared(self, statement: Executable) -> Prepared:
        """The statement, which must be made once and not per call."""
        known = self._known.get(statement)
        if known is None:
            assert len(self._known) < _STATEMENTS_MAX, f"made anew for each call: {statement}"
            known = self._known[statement] = Prepared(statement, self._dialect)
        return known


class Runner:
    """Sends texts over the driver's connection behind a connection of SQLAlchemy's.

    Its errors and its events (`before_cursor_execute`) are the same as SQLAlchemy's own.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection: Final = connection
        self._driver: Any = connection.connection.dbapi_connection
        #: Whether the server is one of several that write.
        self.is_clustered: Final = bool(connection.info.get(CLUSTERED))
        #: Grows with each row that a statement has written, or may have before it failed.
        self.written = 0
        self._wire = _wire_of(connection, is_clustered=self.is_clustered)
        self._has_begun = False
        self._error: type[Exception] = connection.dialect.loaded_dbapi.Error
        self._listeners = tuple(connection.dispatch.before_cursor_execute)

    def listen_anew(self) -> None:
        """Take note of who listens by now."""
        self._listeners = tuple(self.connection.dispatch.before_cursor_execute)

    def fetch(self, text: str, values: Sequence[Any]) -> list[Any]:
        """All rows of a query."""
        rows: list[Any] = self._sent(self._wire.fetch, text, values)
        return rows

    def change(self, text: str, values: Sequence[Any]) -> int:
        """The number of rows that were written."""
        count = int(self._sent(self._wire.change, text, values))
        self.written += count
        return count

    def change_many(self, text: str, values: Sequence[Sequence[Any]]) -> int:
        """The number of rows that were written, by all runs together."""
        count = int(self._sent(self._wire.change_many, text, values, many=True))
        self.written += count
        return count

    def change_each(self, text: str, values: Sequence[Sequence[Any]]) -> list[int]:
        """The number of rows that were written by each run."""
        counts: list[int] = self._sent(self._wire.change_each, text, values, many=True)
        self.written += sum(counts)
        return counts

    def _sent(
        self,
        send: Callable[[str, Any], Any],
        text: str,
        values: Sequence[Any],
        *,
        many: bool = False,
    ) -> Any:
        if self._listeners:
            self._announce(text, values, many=many)
        try:
            return send(text, values)
        except self._error as error:
            self.written += 1
            raise self._wrapped(error, text, values) from error

    def ask(self, text: str) -> Any:
        """The one value that the engine says of itself; nobody who listens is told."""
        try:
            ((value,),) = self._wire.fetch(text, ())
        except self._error as error:
            raise self._wrapped(error, text, ()) from error
        return value

    def begin_by_hand(self) -> None:
        """Let the driver begin no transaction by itself, where it has a say in that.

        Raises:
            DBAPIError: the database failed.
        """
        try:
            self._driver.autocommit(True)
        except self._error as error:
            raise self._wrapped(error, "SET AUTOCOMMIT = 1", ()) from error

    def begin(self, text: str) -> None:
        """Begin a transaction at the driver, as a text of the engine's says."""
        self.change(text, ())
        self._has_begun = True

    def commit(self) -> None:
        """End a transaction that was begun at the driver: what it did stays.

        Raises:
            DBAPIError: the database failed; it may have been committed.
        """
        if self.connection.in_transaction():
            self.connection.commit()
        else:
            self._end(self._committed if self._has_begun else self._driver.commit)
        self._has_begun = False

    def rollback(self) -> None:
        """End a transaction that was begun at the driver, if there is one: nothing of it stays."""
        known = self.connection.get_transaction()
        # After an error SQLAlchemy may still know of one, and no longer end it at the driver.
        is_ended_by_it = known is not None and known.is_active
        if known is not None:
            known.rollback()
        if self._has_begun and not is_ended_by_it:
            self._end(self._driver.rollback)
        self._has_begun = False

    def _committed(self) -> None:
        self._wire.check_transaction()
        self._driver.commit()

    def _end(self, end: Callable[[], None]) -> None:
        try:
            end()
        except self._error as error:
            raise self._wrapped(error, end.__name__, ()) from error

    def _announce(self, text: str, values: Any, *, many: bool) -> None:
        for listener in self._listeners:
            listener(self.connection, None, text, values, None, many)

    def _wrapped(self, error: Any, text: str, values: Any) -> BaseException:
        dialect = self.connection.dialect
        is_lost = dialect.is_disconnect(error, self._driver, None)
        if is_lost:
            self.connection.invalidate(error)
        wrapped: BaseException = exc.DBAPIError.instance(
            text,
            values,
            error,
            self._error,
            hide_parameters=True,
            connection_invalidated=is_lost,
            dialect=dialect,
        )
        return wrapped


class _Cursors:
    """The usual way: a cursor of the driver's for each statement."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def fetch(self, text: str, values: Sequence[Any]) -> list[Any]:
        """See `Wire`."""
        with self._cursor() as cursor:
            cursor.execute(text, values)
            return list(cursor.fetchall())

    def change(self, text: str, values: Sequence[Any]) -> int:
        """See `Wire`."""
        with self._cursor() as cursor:
            cursor.execute(text, values)
            return int(cursor.rowcount)

    def change_many(self, text: str, values: Sequence[Sequence[Any]]) -> int:
        """See `Wire`."""
        with self._cursor() as cursor:
            cursor.executemany(text, values)
            return int(cursor.rowcount)

    def change_each(self, text: str, values: Sequence[Sequence[Any]]) -> list[int]:
        """See `Wire`."""
        counts: list[int] = []
        with self._cursor() as cursor:
            for each in values:
                cursor.execute(text, each)
                counts.append(int(cursor.rowcount))
        return counts

    def check_transaction(self) -> None:
        """See `Wire`: that does not happen."""

    def _cursor(self) -> _Closing:
        return _Closing(self._driver.cursor())


class _MysqlCursors(_Cursors):
    """The same for MySQL's drivers."""

    def check_transaction(self) -> None:
        """See `Wire`. PyMySQL knows what the server said with its last answer."""
        if not getattr(self._driver, "server_status", _IN_TRANSACTION) & _IN_TRANSACTION:
            raise self._driver.OperationalError(_DEADLOCK, "the transaction was taken back")


class _Packets(_MysqlCursors):
    """Several statements in one packet, in order, where the drivers would send each by itself and
    wait for its answer.

    RACE bench.databases, Galera, spread: not for a cluster. Where another node takes a transaction
    back in the middle of a packet, what is left of that is run by itself, each statement for good.
    """

    def change_many(self, text: str, values: Sequence[Sequence[Any]]) -> int:
        """See `Wire`. Of an INSERT the drivers make one statement of several rows."""
        if text.startswith("INSERT"):
            return super().change_many(text, values)
        return sum(self.change_each(text, values))

    def change_each(self, text: str, values: Sequence[Sequence[Any]]) -> list[int]:
        """See `Wire`."""
        with self._cursor() as cursor:
            cursor.execute("; ".join(cursor.mogrify(text, each) for each in values))
            counts = [int(cursor.rowcount)]
            while cursor.nextset():
                counts.append(int(cursor.rowcount))
            return counts


class _Closing:
    """A cursor that is let go of at the end of a block; one whose connection has been closed
    meanwhile cannot even be closed."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def __enter__(self) -> Any:
        return self._cursor

    def __exit__(self, *_: object) -> None:
        try:
            self._cursor.close()
        except Exception:  # noqa: BLE001 - what matters of it was raised by what came before
            return


def _wire_of(connection: Connection, *, is_clustered: bool) -> Wire:
    driver: Any = connection.connection.dbapi_connection
    match connection.dialect.name:
        case "postgresql":
            # Only there is psycopg sure to be installed.
            from berth.store.engine.libpq import libpq_of

            return libpq_of(driver)
        case "mysql":
            return (_MysqlCursors if is_clustered else _Packets)(driver)
    return _Cursors(driver)


def insert_of(table: Table, *columns: str) -> Insert:
    """An INSERT of rows with these columns."""
    return insert(table).values({name: bindparam(name) for name in columns})


def _compiled(statement: Executable, dialect: Dialect) -> SQLCompiler:
    assert isinstance(statement, ClauseElement)
    compiled = statement.compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)
    return compiled


def _bind_conversion(bind: BindParameter[Any], dialect: Dialect) -> _Converter | None:
    return bind.type.dialect_impl(dialect).bind_processor(dialect)


def _result_conversions(statement: Executable, dialect: Dialect) -> list[tuple[int, _Converter]]:
    if not isinstance(statement, Select):
        return []
    columns: Iterable[Any] = statement.selected_columns
    return [
        (place, convert)
        for place, column in enumerate(columns)
        # PostgreSQL's driver gives floats by itself, and SQLAlchemy asks for the server's type.
        if not (isinstance(column.type, Float) and dialect.name == "postgresql")
        if (convert := column.type.dialect_impl(dialect).result_processor(dialect, None))
    ]


def _row_converted(
    row: Sequence[Any], conversions: Iterable[tuple[int, _Converter]]
) -> tuple[Any, ...]:
    values = list(row)
    for place, convert in conversions:
        values[place] = convert(values[place])
    return tuple(values)
