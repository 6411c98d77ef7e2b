# SPDX-License-Identifier: Apache-2.0
"""Statements that are compiled once and then sent straight to the driver.

Statements are written in SQLAlchemy Core. This module caches the text that it renders for an
engine, with the order and the types of its parameters. Running it then costs a fifth of
`Connection.execute`, which was most of the cost of a claim.

PERF bench, claims: thirteen statements took 330 of the 550 microseconds of a claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, Final, TypeVar

from sqlalchemy import (
    BindParameter,
    ClauseElement,
    Connection,
    Dialect,
    Executable,
    Float,
    Insert,
    SelectBase,
    Table,
    bindparam,
    exc,
    insert,
)
from sqlalchemy.sql.compiler import SQLCompiler

from berth.store.engine.wire import Packed, Statement, Wire, in_batches, is_silent

#: SQLAlchemy's placeholder for a list of unknown length.
_LIST: Final = re.compile(r"__\[POSTCOMPILE_(\w+)\]")

#: In the `info` of a connection: whether its server is one of several that write.
CLUSTERED: Final = "berth_clustered"

#: In the same place: how statements are sent over it.
_WIRE: Final = "berth_wire"

#: MySQL's bit of the server's status, and its error number.
_IN_TRANSACTION: Final = 1
_DEADLOCK: Final = 1213

#: Rows in one INSERT: more would exceed the size of a packet.
_ROWS_MAX: Final = 1000

#: Statements in one packet: results are read only after all have been sent, so they must fit into
#: the buffers between client and server.
_PACKET_MAX: Final = 200

#: Statements that a process may keep; more means that some code builds them per call.
_STATEMENTS_MAX: Final = 500

#: Texts kept for one statement, one for each combination of its lists' lengths.
_TEXTS_MAX: Final = 1000

T = TypeVar("T")

#: What is asked to begin a transaction at once.
_NOTHING: Final = "SELECT 1"

Parameters = Mapping[str, Any]
_Converter = Callable[[Any], Any]


class Prepared:
    """One statement, rendered for one engine."""

    def __init__(
        self, statement: Executable, dialect: Dialect, conversions: dict[str, _Converter]
    ) -> None:
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
            name: bind.effective_value
            for name, bind in compiled.binds.items()
            if name in names and not bind.required
        }
        #: The lists that are constants of the statement.
        self._own_lists: Final = {
            name: constants[name] for name in self._lists if name in constants
        }
        #: The constants of the statement at their positions, and the names at the others.
        self._constants: Final[list[Any]] = [constants.get(name) for name in names]
        self._variables: Final = [
            (place, name) for place, name in enumerate(names) if name not in constants
        ]
        #: All values, of a statement without constants.
        self._pick: Final = itemgetter(*names) if len(self._variables) == len(names) > 1 else None
        #: (position, conversion) of the parameters that the driver does not accept unchanged.
        self._converted: Final = [
            (place, convert)
            for place, name in enumerate(names)
            if (convert := _bind_conversion(compiled.binds[name], dialect, conversions))
        ]
        #: The same for the columns of the result.
        self._results: Final = _result_conversions(statement, dialect)

    def rows(self, run: Runner, parameters: Parameters) -> list[Any]:
        """The rows of a query, as plain tuples."""
        rows = run.fetch(self._text_for(parameters), self._values(parameters))
        if not self._results:
            return rows
        return [_row_converted(row, self._results) for row in rows]

    def insert(self, run: Runner, parameters: Parameters) -> int:
        """Insert one row; the id that the database gave it."""
        return run.insert(self._text_for(parameters), self._values(parameters))

    def packed(self, parameters: Sequence[Parameters]) -> Packed:
        """The statement with each of several sets of parameters, for `Runner.change_all`."""
        assert len(parameters) == 1 or not self._lists, "several statements of one text"
        values = [self._values(each) for each in parameters]
        return Packed(self._text_for(parameters[0]), values)

    def _text_for(self, parameters: Parameters) -> str:
        if not self._lists:
            return self._text
        if self._own_lists:
            parameters = {**self._own_lists, **parameters}
        lengths = tuple([len(parameters[name]) for name in self._lists])
        text = self._texts.get(lengths)
        if text is None:
            if len(self._texts) >= _TEXTS_MAX:
                self._texts.clear()
            # An empty list matches nothing, as NULL does.
            text = self._texts[lengths] = _LIST.sub(
                lambda marker: ", ".join(self._mark for _ in parameters[marker[1]]) or "NULL",
                self._text,
            )
        return text

    def _values(self, parameters: Parameters) -> list[Any]:
        if self._pick is not None:
            values = list(self._pick(parameters))
        else:
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
    """The statements prepared so far, for one engine."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        #: By statement object, which modules build once. The cache ends with the database's object,
        #: and depends on the engine and the tables' definitions, not on rows.
        self._prepared: dict[Executable, Prepared] = {}
        #: By function, table and columns.
        self._insertions: dict[
            tuple[Callable[[Table], Insert], Table, tuple[str, ...]], Insert
        ] = {}
        #: By type.
        self._conversions: dict[str, _Converter] = {}

    def prepared(self, statement: Executable) -> Prepared:
        """The statement, which must be built once and not per call."""
        prepared = self._prepared.get(statement)
        if prepared is None:
            assert len(self._prepared) < _STATEMENTS_MAX, f"built again for each call: {statement}"
            prepared = self._prepared[statement] = self.compiled(statement)
        return prepared

    def insertion(
        self, into: Callable[[Table], Insert], table: Table, columns: tuple[str, ...]
    ) -> Insert:
        """The engine's INSERT `into(table)` of rows with these columns; the same one each time."""
        insertion = self._insertions.get((into, table, columns))
        if insertion is None:
            insertion = into(table).values({name: bindparam(name) for name in columns})
            self._insertions[into, table, columns] = insertion
        return insertion

    def compiled(self, statement: Executable) -> Prepared:
        """A statement that was built for one call: not kept."""
        return Prepared(statement, self._dialect, self._conversions)


class Runner:
    """Sends texts over the driver's connection behind a connection of SQLAlchemy's.

    Its errors and its events (`before_cursor_execute`) are the same as SQLAlchemy's own.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection: Final = connection
        self._driver: Any = connection.connection.dbapi_connection
        #: Whether the server is one of several that write.
        self.is_clustered: Final = bool(connection.info.get(CLUSTERED))
        #: Grows with each row that a statement wrote, or may have written before it failed.
        self.written = 0
        self._wire = _wire_of(connection)
        self._has_begun = False
        self._error: type[Exception] = connection.dialect.loaded_dbapi.Error
        self.refresh_listeners()

    def refresh_listeners(self) -> None:
        """Read the engine's listeners again. PERF bench.fixed_cost: there is nearly never one."""
        listeners = self.connection.engine.dispatch.before_cursor_execute
        self._listeners = tuple(listeners) if listeners else ()

    def fetch(self, text: str, values: Sequence[Any]) -> list[Any]:
        """All rows of a query."""
        return self._sent(self._wire.fetch, text, values)

    def insert(self, text: str, values: Sequence[Any]) -> int:
        """The id of the one row that was inserted."""
        number = self._sent(self._wire.insert, text, values)
        self.written += 1
        return number

    def run(self, text: str) -> None:
        """Run a statement that has no values and writes no rows."""
        self.change_all([Packed(text, ((),))])

    def change_all(self, batch: Sequence[Packed]) -> list[list[int]]:
        """How many rows each of several statements wrote with each of its sets of values, or, for
        an INSERT, with several of them; in one round trip, if the engine can."""
        if self._listeners:
            for text, sets in batch:
                self._announce(text, sets)
        try:
            counts = self._wire.change_all(batch)
        except self._error as error:
            self.written += 1
            raise self._wrapped(error, "; ".join(packed.text for packed in batch), ()) from error
        self.written += sum(map(sum, counts))
        return counts

    def _sent(self, send: Callable[[str, Sequence[Any]], T], text: str, values: Sequence[Any]) -> T:
        if self._listeners:
            self._announce(text, (values,))
        try:
            return send(text, values)
        except self._error as error:
            self.written += 1
            raise self._wrapped(error, text, values) from error

    def ask(self, text: str) -> Any:
        """The one value of a query that is none of a request's; listeners are not called."""
        try:
            ((value,),) = self._wire.fetch(text, ())
        except self._error as error:
            raise self._wrapped(error, text, ()) from error
        return value

    def begin_by_hand(self) -> None:
        """Stop the driver from beginning transactions by itself, if it does that.

        Raises:
            DBAPIError: the database failed.
        """
        try:
            self._driver.autocommit(True)
        except self._error as error:
            raise self._wrapped(error, "SET AUTOCOMMIT = 1", ()) from error

    def begin(self, text: str) -> None:
        """Begin a transaction at the driver, with the engine's statement for it: now, or together
        with the first statement in it."""
        if self._wire.can_wait:
            self._announce(text, ((),))
            self._wire.pending = text
        else:
            self.run(text)
        self._has_begun = True

    def begin_now(self) -> None:
        """Begin the transaction, if that still waits for a statement: others than this runner's
        would run outside it."""
        if self._wire.pending:
            self.ask(_NOTHING)

    def commit(self) -> None:
        """Commit a transaction that was begun at the driver.

        Raises:
            DBAPIError: the database failed; it may have been committed.
        """
        if self.connection.in_transaction():
            self.connection.commit()
        else:
            self._end(self._committed if self._has_begun else self._driver.commit)
        self._has_begun = False

    def rollback(self) -> None:
        """Roll back a transaction that was begun at the driver, if there is one."""
        transaction = self.connection.get_transaction()
        # After an error SQLAlchemy may still have one, but no longer end it at the driver.
        is_ended_by_it = transaction is not None and transaction.is_active
        if transaction is not None:
            transaction.rollback()
        if self._has_begun and not is_ended_by_it:
            self._end(self._driver.rollback)
        self._has_begun = False

    def _committed(self) -> None:
        self._wire.check_transaction()
        self._driver.commit()

    def _end(self, end: Callable[[], None]) -> None:
        if self._wire.pending:
            self._wire.pending = ""
            return
        try:
            end()
        except self._error as error:
            raise self._wrapped(error, end.__name__, ()) from error

    def _announce(self, text: str, sets: Sequence[Sequence[Any]]) -> None:
        many = len(sets) > 1
        for listener in self._listeners:
            listener(self.connection, None, text, sets if many else sets[0], None, many)

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


#: What is read of a cursor.
_FETCHALL: Final = methodcaller("fetchall")
_LASTROWID: Final = attrgetter("lastrowid")


class _Cursors:
    """The usual way: one cursor of the driver's after another, one statement at a time."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self.pending = ""

    @property
    def can_wait(self) -> bool:
        """See `Wire`."""
        return False

    def fetch(self, text: str, values: Sequence[Any]) -> list[Any]:
        """See `Wire`."""
        return list(self._executed(text, values, _FETCHALL))

    def insert(self, text: str, values: Sequence[Any]) -> int:
        """See `Wire`."""
        return int(self._executed(text, values, _LASTROWID))

    def change_all(self, batch: Sequence[Packed]) -> list[list[int]]:
        """See `Wire`."""
        cursor = self._driver.cursor()
        try:
            return [self._counts(cursor, text, sets) for text, sets in batch]
        finally:
            _close(cursor)

    def _counts(self, cursor: Any, text: str, sets: Sequence[Sequence[Any]]) -> list[int]:
        counts = []
        for values in sets:
            cursor.execute(text, values)
            counts.append(int(cursor.rowcount))
        return counts

    def _executed(self, text: str, values: Sequence[Any], read: Callable[[Any], Any]) -> Any:
        # PERF bench.fixed_cost: every read of SQLite comes here, and a context manager of our own
        # would take as long as the statement.
        cursor = self._driver.cursor()
        try:
            cursor.execute(text, values)
            return read(cursor)
        finally:
            _close(cursor)

    def check_transaction(self) -> None:
        """See `Wire`: this does not happen here."""


class _MysqlCursors(_Cursors):
    """The same for MySQL's drivers."""

    def _counts(self, cursor: Any, text: str, sets: Sequence[Sequence[Any]]) -> list[int]:
        if len(sets) == 1 or not text.startswith("INSERT"):
            return super()._counts(cursor, text, sets)
        # The drivers make one statement with several rows.
        cursor.executemany(text, sets)
        return [int(cursor.rowcount)]

    def check_transaction(self) -> None:
        """See `Wire`. PyMySQL keeps the status from the server's last answer."""
        if not getattr(self._driver, "server_status", _IN_TRANSACTION) & _IN_TRANSACTION:
            raise self._driver.OperationalError(_DEADLOCK, "the transaction was taken back")


class _Packets(_MysqlCursors):
    """Several statements in one packet, in order; the drivers would send each by itself and wait
    for its answer.

    RACE bench.databases, Galera, spread: not for a cluster. If another node's commit rolls back the
    transaction in the middle of a packet, the remaining statements run and commit one by one.
    """

    @property
    def can_wait(self) -> bool:
        """See `Wire`. mysqlclient's connection has a `fileno`, PyMySQL's only its socket."""
        return is_silent(getattr(self._driver, "_sock", self._driver))

    def _executed(self, text: str, values: Sequence[Any], read: Callable[[Any], Any]) -> Any:
        begin, self.pending = self.pending, ""
        if not begin:
            return super()._executed(text, values, read)

        def read_second(cursor: Any) -> Any:
            cursor.nextset()
            return read(cursor)

        return super()._executed(f"{begin}; {text}", values, read_second)

    def change_all(self, batch: Sequence[Packed]) -> list[list[int]]:
        """See `Wire`."""
        return in_batches(batch, _ROWS_MAX, _PACKET_MAX, self._sent)

    def _sent(self, statements: Sequence[Statement]) -> list[int]:
        begin, self.pending = self.pending, ""
        if begin:
            statements = [(begin, ()), *statements]
        cursor = self._driver.cursor()
        try:
            cursor.execute("; ".join(cursor.mogrify(text, each) for text, each in statements))
            counts = [int(cursor.rowcount)]
            while cursor.nextset():
                counts.append(int(cursor.rowcount))
            return counts[bool(begin) :]
        finally:
            _close(cursor)


def _close(cursor: Any) -> None:
    """Close a cursor, ignoring errors: closing fails if its connection was closed meanwhile."""
    try:
        cursor.close()
    except Exception:  # noqa: BLE001 - the error that matters was raised before
        return


def _wire_of(connection: Connection) -> Wire:
    """The wire of the driver's connection, with which it ends."""
    wire: Wire | None = connection.info.get(_WIRE)
    if wire is None:
        wire = connection.info[_WIRE] = _new_wire(connection)
    return wire


def _new_wire(connection: Connection) -> Wire:
    driver: Any = connection.connection.dbapi_connection
    match connection.dialect.name:
        case "postgresql":
            # psycopg is sure to be installed only here.
            from berth.store.engine.libpq import Libpq

            return Libpq(driver)
        case "mysql":
            return (_MysqlCursors if connection.info.get(CLUSTERED) else _Packets)(driver)
    return _Cursors(driver)


def insert_of(table: Table, *columns: str) -> Insert:
    """An INSERT of rows with these columns that does not return their ids."""
    return insert(table).values({name: bindparam(name) for name in columns}).inline()


def _compiled(statement: Executable, dialect: Dialect) -> SQLCompiler:
    assert isinstance(statement, ClauseElement)
    compiled = statement.compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)
    return compiled


def _bind_conversion(
    bind: BindParameter[Any], dialect: Dialect, conversions: dict[str, _Converter]
) -> _Converter | None:
    """The conversion of a parameter's type, which statements share: all of a transaction's have the
    same time."""
    kind = repr(bind.type)
    if kind not in conversions:
        convert = bind.type.dialect_impl(dialect).bind_processor(dialect)
        if convert is None:
            return None
        conversions[kind] = lru_cache(maxsize=8)(convert)
    return conversions[kind]


def _result_conversions(statement: Executable, dialect: Dialect) -> list[tuple[int, _Converter]]:
    if not isinstance(statement, SelectBase):
        return []
    columns: Iterable[Any] = statement.selected_columns
    return [
        (place, convert)
        for place, column in enumerate(columns)
        # PostgreSQL's driver returns floats itself; SQLAlchemy would check the server's type.
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
