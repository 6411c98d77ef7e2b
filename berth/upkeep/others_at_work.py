# SPDX-License-Identifier: Apache-2.0
"""Detects whether another program has recently written to a database: an operator must stop it
first.

OpenStack Placement dates the rows that it creates and changes, and keeps no list of its instances.
berth dates the same rows, but its journal names the providers that it has changed, its usages have
their generations, and it leaves no consumer without allocations.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, exists, func, inspect, select, true

from berth.store.engine.database import Database
from berth.store.engine.tables import (
    allocations,
    berth_journal,
    berth_usages,
    consumers,
    resource_providers,
)
from berth.store.usage_counts import providers_moved

#: A program that has written within this time counts as running.
AT_WORK: Final = timedelta(minutes=1)

_rp, _allocation, _consumer, _note = (
    resource_providers.c,
    allocations.c,
    consumers.c,
    berth_journal.c,
)


def seconds_since_foreign_write(db: Database) -> int | None:
    """How long ago a program other than berth wrote to the database; None if none did within the
    last minute.

    Deletions are not detected. Cost: reads the providers, consumers and allocations once.
    """
    with db.read() as tx:
        names = inspect(tx.connection)
        if not names.has_table(resource_providers.name):
            return None
        keeps = names.has_table(berth_usages.name) and any(
            column["name"] == berth_usages.c.generation.name
            for column in names.get_columns(berth_usages.name)
        )
        since = tx.now - AT_WORK
        newest = [
            tx.connection.scalar(query)
            for query in _newest(since, is_noted=names.has_table(berth_journal.name), keeps=keeps)
        ]
    times = [time for time in newest if time is not None]
    return max(int((tx.now - max(times)).total_seconds()), 0) if times else None


def _newest(since: datetime, *, is_noted: bool, keeps: bool) -> Iterator[Select[Any]]:
    """Queries for the newest time of each kind of row that berth has not written.

    Args:
        is_noted: whether there is a journal.
        keeps: whether berth keeps the generations of providers.
    """
    # A commit dates its rows before its journal entry, and may have waited in between.
    by_berth = select(_note.provider_id).where(_note.created_at >= since - AT_WORK)

    def unnoted(provider: ColumnElement[int]) -> ColumnElement[bool]:
        return provider.not_in(by_berth) if is_noted else true()

    yield select(func.max(_allocation.created_at)).where(
        _allocation.created_at >= since, unnoted(_allocation.resource_provider_id)
    )
    yield select(func.max(_rp.created_at)).where(_rp.created_at >= since, unnoted(_rp.id))
    changed = select(func.max(_rp.updated_at)).where(_rp.updated_at >= since)
    if keeps:
        changed = changed.where(_rp.id.in_(select(providers_moved().subquery().c.id)))
    yield changed.where(unnoted(_rp.id)) if is_noted and not keeps else changed
    idle = ~exists().where(_allocation.consumer_id == _consumer.uuid)
    written = func.coalesce(_consumer.updated_at, _consumer.created_at)
    yield select(func.max(written)).where(written >= since, idle)
