# SPDX-License-Identifier: Apache-2.0
"""What a check finds, and the shape of the rules that find it.

A rule finds row by row what breaks one invariant, says it for people, and either knows how to put
it right, or why nobody but a person can.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import CursorResult, Row, Select

from berth.store.engine.transaction import Tx

#: Rows that a check holds at a time.
_ROWS: Final = 1000

#: The columns that a rule needs to know a fault again.
Key = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that should not be."""

    #: What is wrong.
    sentence: str
    #: What a repair does about it; None: it leaves it alone.
    action: str | None
    #: Where a repair does nothing: why, and what a person may do.
    advice: str
    key: Key


Faults = Generator[Fault, None, None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One invariant.

    Attributes:
        find: the faults, as they are found. No other query may run before the last of them has
            been taken or the generator has been closed: some drivers keep rows at the server.
        mend: puts some of them right, each only if it is still as it was found.
    """

    find: Callable[[Tx], Faults]
    mend: Callable[[Tx, Sequence[Key]], None] | None = None


def mended(
    query: Select[Any],
    sentence: Callable[[Row[Any]], str],
    action: Callable[[Row[Any]], str],
    mend: Callable[[Tx, Sequence[Key]], None],
) -> Rule:
    """A rule that a query breaks row by row, and that can be put right."""

    def find(tx: Tx) -> Faults:
        with _rows(tx, query) as rows:
            for row in rows:
                yield Fault(sentence(row), action(row), "", row._asdict())

    return Rule(find, mend)


def left_alone(query: Select[Any], sentence: Callable[[Row[Any]], str], advice: str) -> Rule:
    """A rule that a query breaks row by row, and that only a person can put right."""

    def find(tx: Tx) -> Faults:
        with _rows(tx, query) as rows:
            for row in rows:
                yield Fault(sentence(row), None, advice, row._asdict())

    return Rule(find)


def _rows(tx: Tx, query: Select[Any]) -> closing[CursorResult[Any]]:
    return closing(tx.connection.execute(query, execution_options={"yield_per": _ROWS}))
