# SPDX-License-Identifier: Apache-2.0
"""Expressions that differ between engines."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    DateTime,
    Float,
    String,
    case,
    func,
    literal_column,
    type_coerce,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class rewritten(FunctionElement[Any]):
    """The `updated_at` of a statement that only locks a row: usually the unchanged value.

    MySQL does not write a row whose values stay the same, and a Galera cluster compares only rows
    that were written. So there it is the current time, or a second less if it has that already.
    """

    type = DateTime()
    inherit_cache = True
    name = "rewritten"


class stored_ratio(FunctionElement[float]):
    """An `allocation_ratio`, with the precision with which clients read it.

    MySQL stores single precision, returns six digits, and computes with all of them: with a ratio
    of 0.7, ten units would be 6.9999999 for the guard of a claim, and 7 everywhere else.
    """

    type = Float()
    inherit_cache = True
    name = "stored_ratio"


class time_text(FunctionElement[str]):
    """A stored time as `2026-11-21 18:40:00`, with a fraction of six digits if asked for."""

    type = String()
    inherit_cache = False
    name = "time_text"

    def __init__(self, time: ColumnElement[Any], *, fraction: bool) -> None:
        super().__init__(time)
        self.fraction = fraction


class common_text(FunctionElement[str]):
    """A text in the character set and collation that all texts of a UNION must share.

    MySQL refuses to combine texts of several collations in one column, and the tables of an adopted
    database may have several.
    """

    type = String()
    inherit_cache = True
    name = "common_text"


class epoch_seconds(FunctionElement[int]):
    """A stored time in whole seconds since 1970, rounded down.

    PERF bench, start: the drivers' conversions of times to objects would take a tenth of a load.
    """

    type = BigInteger()
    inherit_cache = True
    name = "epoch_seconds"


class joined(FunctionElement[str]):
    """All numbers of a column, a comma behind each, without those that are NULL. A text that the
    server has cut ends with no comma, or has too few."""

    type = String()
    inherit_cache = True
    name = "joined"


class lines(FunctionElement[str]):
    """The same for the texts of a column, with newlines."""

    type = String()
    inherit_cache = True
    name = "lines"


class server_time(FunctionElement[datetime]):
    """The time of the server's clock with its fraction of a second, naive UTC."""

    type = DateTime()
    inherit_cache = True
    name = "server_time"


@compiles(rewritten)
@compiles(stored_ratio)
@compiles(common_text)
def _as_it_is(element: FunctionElement[Any], compiler: SQLCompiler, **options: Any) -> str:
    (column,) = element.clauses
    return compiler.process(column, **options)


@compiles(rewritten, "mysql")
def _always_another(element: rewritten, compiler: SQLCompiler, **options: Any) -> str:
    now = "utc_timestamp()"
    return f"{now} - INTERVAL ({_as_it_is(element, compiler, **options)} <=> {now}) SECOND"


@compiles(stored_ratio, "mysql")
def _as_told(element: stored_ratio, compiler: SQLCompiler, **options: Any) -> str:
    return f"(concat({_as_it_is(element, compiler, **options)}) + 0e0)"


@compiles(common_text, "mysql")
def _in_utf8(element: common_text, compiler: SQLCompiler, **options: Any) -> str:
    return f"convert({_as_it_is(element, compiler, **options)} using utf8mb4)"


@compiles(epoch_seconds)
def _from_text(element: epoch_seconds, compiler: SQLCompiler, **options: Any) -> str:
    # Without the fraction, which SQLite would round.
    # PERF bench, start: `strftime` gives a text, which takes a fifth longer.
    day = f"julianday(substr({_as_it_is(element, compiler, **options)}, 1, 19))"
    return f"CAST(round(({day} - 2440587.5) * 86400) AS INTEGER)"


@compiles(epoch_seconds, "postgresql")
def _extracted(element: epoch_seconds, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST(floor(EXTRACT(epoch FROM {_as_it_is(element, compiler, **options)})) AS BIGINT)"


@compiles(epoch_seconds, "mysql")
def _since_1970(element: epoch_seconds, compiler: SQLCompiler, **options: Any) -> str:
    return f"timestampdiff(SECOND, '1970-01-01', {_as_it_is(element, compiler, **options)})"


@compiles(joined)
def _group_concat(element: joined, compiler: SQLCompiler, **options: Any) -> str:
    # PERF bench, start: with the separator, SQLite takes a third longer.
    return f"group_concat({_as_it_is(element, compiler, **options)}) || ','"


@compiles(lines)
def _group_lines(element: lines, compiler: SQLCompiler, **options: Any) -> str:
    return f"group_concat({_as_it_is(element, compiler, **options)}, '\n') || '\n'"


@compiles(joined, "postgresql")
@compiles(lines, "postgresql")
def _string_agg(element: joined | lines, compiler: SQLCompiler, **options: Any) -> str:
    mark = "'\n'" if isinstance(element, lines) else "','"
    return f"string_agg(CAST({_as_it_is(element, compiler, **options)} AS TEXT), {mark}) || {mark}"


@compiles(joined, "mysql")
@compiles(lines, "mysql")
def _group_concat_cut(element: joined | lines, compiler: SQLCompiler, **options: Any) -> str:
    # Each value has its mark: this server cuts a text that is longer than a packet.
    mark = "'\n'" if isinstance(element, lines) else "','"
    return f"group_concat({_as_it_is(element, compiler, **options)}, {mark} SEPARATOR '')"


@compiles(time_text)
def _stored_text(element: time_text, compiler: SQLCompiler, **options: Any) -> str:
    (time,) = element.clauses
    stored = type_coerce(time, String)
    seconds = len("2026-11-21 18:40:00")
    if not element.fraction:
        return compiler.process(func.substr(stored, 1, seconds), **options)
    # Other programs may store a time without a fraction.
    text = case((func.length(stored) == seconds, stored + ".000000"), else_=stored)
    return compiler.process(text, **options)


@compiles(time_text, "postgresql")
def _to_char(element: time_text, compiler: SQLCompiler, **options: Any) -> str:
    form: ColumnElement[str] = literal_column(f"'YYYY-MM-DD HH24:MI:SS{'.US' * element.fraction}'")
    return compiler.process(func.to_char(*element.clauses, form), **options)


@compiles(time_text, "mysql")
def _date_format(element: time_text, compiler: SQLCompiler, **options: Any) -> str:
    form: ColumnElement[str] = literal_column(f"'%Y-%m-%d %H:%i:%s{'.%f' * element.fraction}'")
    return compiler.process(func.date_format(*element.clauses, form), **options)


@compiles(server_time)
def _in_milliseconds(element: server_time, compiler: SQLCompiler, **options: Any) -> str:
    return "strftime('%Y-%m-%d %H:%M:%f', 'now')"


@compiles(server_time, "postgresql")
def _clock_time(element: server_time, compiler: SQLCompiler, **options: Any) -> str:
    # Not now(), which is when the transaction began.
    return "timezone('UTC', clock_timestamp())"


@compiles(server_time, "mysql")
def _utc_time(element: server_time, compiler: SQLCompiler, **options: Any) -> str:
    return "utc_timestamp(6)"
