# SPDX-License-Identifier: Apache-2.0
"""What sends a statement in the driver's form, and how several INSERTs become one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol

#: An INSERT up to its row, the row, and what follows it.
_INSERT: Final = re.compile(r"(INSERT .*? VALUES )(\([^()]*\))(.*)", re.DOTALL)


class Packed(NamedTuple):
    """A statement in the driver's form, to be run once with each of several sets of values."""

    text: str
    values: Sequence[Sequence[Any]]


class Wire(Protocol):
    """Sends statements over one of the driver's connections; raises the driver's errors."""

    def fetch(self, text: str, values: Sequence[Any]) -> list[Any]:
        """All rows of a query, as tuples."""

    def insert(self, text: str, values: Sequence[Any]) -> int:
        """The id that a statement gave to the one row that it inserted."""

    def change(self, text: str, sets: Sequence[Sequence[Any]]) -> int:
        """How many rows a statement wrote with one or several sets of values, in total."""

    def change_each(self, text: str, sets: Sequence[Sequence[Any]]) -> list[int]:
        """How many rows a statement wrote with each of several sets of values."""

    @property
    def sends_batches(self) -> bool:
        """Whether `change_all` costs one round trip, however many statements it sends."""

    def change_all(self, batch: Sequence[Packed]) -> list[list[int]]:
        """Run several statements in order, and stop at the first that fails; how many rows each
        wrote with each of its sets of values, or, for an INSERT, with all of them."""

    def check_transaction(self) -> None:
        """Raise the driver's deadlock error if the server has silently rolled back the
        transaction."""


def joined_inserts(
    text: str, values: Sequence[Sequence[Any]], most: int
) -> list[tuple[str, Sequence[Any]]]:
    """One statement for each set of values, but for an INSERT, of which servers take several rows
    faster, as few as possible with up to `most` rows each."""
    if len(values) < 2 or (parts := _INSERT.fullmatch(text)) is None:
        return [(text, each) for each in values]
    head, row, tail = parts.groups()
    return [
        (head + ", ".join([row] * len(some)) + tail, list(chain.from_iterable(some)))
        for some in (values[begin : begin + most] for begin in range(0, len(values), most))
    ]
