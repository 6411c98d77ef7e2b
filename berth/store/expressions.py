# SPDX-License-Identifier: Apache-2.0
"""Expressions that engines spell in ways of their own."""

from typing import Any

from sqlalchemy import DateTime, Float
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class rewritten(FunctionElement[Any]):
    """What `updated_at` is set to by a statement that only holds a row: nothing new, as a rule.

    MySQL does not write a row whose values stay the same, and a Galera cluster compares nothing but
    what was written: there it becomes the time, or a second less if it is that already.
    """

    type = DateTime()
    inherit_cache = True
    name = "rewritten"


class stored_ratio(FunctionElement[float]):
    """An `allocation_ratio`, as exactly as whoever reads it is told.

    MySQL keeps single precision, tells six digits of it, and counts with all: with a ratio of 0.7,
    ten units would be 6.9999999 for the guard of a claim, and 7 for everybody else.
    """

    type = Float()
    inherit_cache = True
    name = "stored_ratio"


@compiles(rewritten)
@compiles(stored_ratio)
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
