# SPDX-License-Identifier: Apache-2.0
"""Rows that are numbered from 1 to a bound, which is how many of them there can be."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.dml import Insert

from berth.model.errors import LostRace
from berth.model.own_errors import TooMany
from berth.store.engine.transaction import Tx


def insert_numbered(
    tx: Tx,
    noun: str,
    at_most: int,
    ids: Select[tuple[int]],
    insert: Insert,
    row: Mapping[str, object],
) -> int:
    """Insert a row with the smallest free id, and return the id.

    Args:
        noun: what a row is.
        ids: selects those that are taken.

    Raises:
        TooMany: no id is free.
        LostRace: another request has just taken the id, or the name.
    """
    taken = {number for (number,) in tx.rows(ids, {})}
    free = next((number for number in range(1, at_most + 1) if number not in taken), None)
    if free is None:
        raise TooMany(noun, at_most)
    try:
        tx.change(insert, {"id": free, **row})
    except IntegrityError as error:
        # RACE tests/store/test_flavors.py and test_drains.py: since they were read; the next
        # attempt reads which.
        raise LostRace(f"{noun} {row['name']}") from error
    return free
