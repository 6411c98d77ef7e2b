# SPDX-License-Identifier: Apache-2.0
"""Deletes placements whose consumers hold nothing any more.

No release looks for a placement, so that it costs the same with and without any. Instead, each
process now and then looks through a part of the table, twice as many rows as were written
meanwhile: so rows of consumers that are gone never outnumber the others for long.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, delete, exists, func, select

from berth.store.engine.tables import allocations, berth_placements
from berth.store.engine.transaction import Tx

#: Rows of one sweep, at least and at most: a row takes microseconds, in the time of a write.
_LEAST: Final = 1000
_MOST: Final = 50_000

_row = berth_placements.c
_NEWEST: Final = select(func.coalesce(func.max(_row.id), 0))
_part = (
    select(_row.id)
    .where(_row.id > bindparam("after"))
    .order_by(_row.id)
    .limit(bindparam("count"))
    .subquery()
)
_LAST_OF_PART: Final = select(func.max(_part.c.id))
_DELETE: Final = delete(berth_placements).where(
    _row.id > bindparam("after"),
    _row.id <= bindparam("last"),
    _row.created_at < bindparam("older_than"),
    ~exists(
        select(allocations.c.id)
        .where(allocations.c.consumer_id == _row.consumer_uuid)
        .correlate(berth_placements)
    ),
)


class PlacementSweep:
    """The sweeps of one process, each of which begins where the one before ended."""

    def __init__(self) -> None:
        self._after = 0
        self._newest: int | None = None

    def run(self, tx: Tx, older_than: datetime) -> int:
        """Delete what is older than a time and counts no more, in the next part of the table;
        return how many rows."""
        ((newest,),) = tx.rows(_NEWEST, {})
        written = 0 if self._newest is None else max(newest - self._newest, 0)
        self._newest = newest
        count = min(_LEAST + 2 * written, _MOST)
        after = self._after
        ((last,),) = tx.rows(_LAST_OF_PART, {"after": after, "count": count})
        self._after = 0 if last is None else last
        if last is None:
            return 0
        return tx.change(_DELETE, {"after": after, "last": last, "older_than": older_than})
