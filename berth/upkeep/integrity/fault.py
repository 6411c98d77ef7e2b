# SPDX-License-Identifier: Apache-2.0
"""The faults that a check finds, and the form of the rules that find them.

A rule finds the rows that violate one invariant, describes each in a sentence, and either can
repair them or says what a person can do.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import CursorResult, Row, Select

from berth.store.engine.transaction import Tx

#: Rows that a check keeps in memory at a time.
_ROWS: Final = 1000

#: The columns by which a rule recognises a fault.
Key = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """A violation of an invariant."""

    #: The fault, in a sentence.
    sentence: str
    #: The action of a repair; None: it leaves the fault alone.
    action: str | None
    #: If a repair does nothing: why, and what a person can do.
    advice: str
    key: Key


Faults = Generator[Fault, None, None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One invariant.

    Attributes:
        find: the faults, as they are found. No other query may run before the last of them has
            been taken or the generator has been closed: some drivers keep rows at the server.
        repair: repairs some of them, each only if it is still as it was found.
    """

    find: Callable[[Tx], Faults]
    repair: Callable[[Tx, Sequence[Key]], None] | None = None


def repairable(
    query: Select[Any],
    sentence: Callable[[Row[Any]], str],
    action: Callable[[Row[Any]], str],
    repair: Callable[[Tx, Sequence[Key]], None],
) -> Rule:
    """A rule whose violations a query returns, and that can be repaired."""

    def find(tx: Tx) -> Faults:
        with _rows(tx, query) as rows:
            for row in rows:
                yield Fault(sentence(row), action(row), "", row._asdict())

    return Rule(find, repair)


def left_alone(query: Select[Any], sentence: Callable[[Row[Any]], str], advice: str) -> Rule:
    """A rule whose violations a query returns, and that only a person can repair."""

    def find(tx: Tx) -> Faults:
        with _rows(tx, query) as rows:
            for row in rows:
                yield Fault(sentence(row), None, advice, row._asdict())

    return Rule(find)


def _rows(tx: Tx, query: Select[Any]) -> closing[CursorResult[Any]]:
    return closing(tx.connection.execute(query, execution_options={"yield_per": _ROWS}))
