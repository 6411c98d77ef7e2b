# SPDX-License-Identifier: Apache-2.0
"""Joins INSERTs of one row into INSERTs of several, for engines that take these faster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

#: An INSERT up to its row, the row, and what follows it.
_INSERT: Final = re.compile(r"(INSERT .*? VALUES )(\([^()]*\))(.*)", re.DOTALL)


def joined_inserts(
    text: str, values: Sequence[Sequence[Any]], most: int
) -> list[tuple[str, Sequence[Any]]]:
    """One statement for each set of values, but for an INSERT as few as possible, with up to `most`
    rows each."""
    if len(values) < 2 or (parts := _INSERT.fullmatch(text)) is None:
        return [(text, each) for each in values]
    head, row, tail = parts.groups()
    return [
        (head + ", ".join([row] * len(some)) + tail, list(chain.from_iterable(some)))
        for some in (values[begin : begin + most] for begin in range(0, len(values), most))
    ]
