# SPDX-License-Identifier: Apache-2.0
"""What sends statements in the driver's form, and how several INSERTs become one."""

from __future__ import annotations

import re
import select
from collections.abc import Callable, Sequence
from itertools import chain, islice
from typing import Any, Final, NamedTuple, Protocol

#: An INSERT up to its row, the row, and what follows it.
_INSERT: Final = re.compile(r"(INSERT .*? VALUES )(\([^()]*\))(.*)", re.DOTALL)


#: A text, and its values.
Statement = tuple[str, Sequence[Any]]


class Packed(NamedTuple):
    """A statement in the driver's form, to be run once with each of several sets of values."""

    text: str
    values: Sequence[Sequence[Any]]


class Wire(Protocol):
    """Sends statements over one of the driver's connections; raises the driver's errors."""

    #: The statement that begins a transaction, to be sent with the next one in a round trip; empty
    #: if there is none.
    pending: str

    @property
    def can_wait(self) -> bool:
        """Whether a statement may wait for the next one: not on a connection that the server has
        closed, because only a transaction that has not begun is begun again on another one."""

    def fetch(self, text: str, values: Sequence[Any]) -> list[Any]:
        """All rows of a query, as tuples."""

    def insert(self, text: str, values: Sequence[Any]) -> int:
        """The id that a statement gave to the one row that it inserted."""

    def change_all(self, batch: Sequence[Packed]) -> list[list[int]]:
        """Run several statements in order, and stop at the first that fails; how many rows each
        wrote with each of its sets of values, or, for an INSERT, with several of them."""

    def check_transaction(self) -> None:
        """Raise the driver's deadlock error if the server has silently rolled back the
        transaction."""


def is_silent(socket: Any) -> bool:
    """Whether a server has sent nothing that nobody asked for, such as the end of a connection.

    Args:
        socket: anything that `select` takes.
    """
    try:
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        return not poll.poll(0)
    except (TypeError, ValueError):  # closed meanwhile
        return False


def in_batches(
    batch: Sequence[Packed],
    rows_max: int,
    statements_max: int,
    run: Callable[[Sequence[Statement]], Sequence[int]],
) -> list[list[int]]:
    """How many rows each statement wrote: see `Wire.change_all`.

    Args:
        rows_max: the most rows in one INSERT.
        run: runs up to `statements_max` statements, and returns how many rows each wrote.
    """
    parts = [joined_inserts(text, values, rows_max) for text, values in batch]
    statements = list(chain.from_iterable(parts))
    counts: list[int] = []
    for begin in range(0, len(statements), statements_max):
        counts += run(statements[begin : begin + statements_max])
    each = iter(counts)
    return [list(islice(each, len(part))) for part in parts]


def joined_inserts(text: str, values: Sequence[Sequence[Any]], most: int) -> list[Statement]:
    """One statement for each set of values, but for an INSERT, of which engines take several rows
    faster, as few as possible with up to `most` rows each."""
    if len(values) < 2 or (parts := _INSERT.fullmatch(text)) is None:
        return [(text, each) for each in values]
    head, row, tail = parts.groups()
    return [
        (head + ", ".join([row] * len(some)) + tail, list(chain.from_iterable(some)))
        for some in (values[begin : begin + most] for begin in range(0, len(values), most))
    ]
