# SPDX-License-Identifier: Apache-2.0
"""Detects writes of other programs to berth's database, recounts the usages, and logs an error.

An instance of OpenStack Placement that still runs writes allocations without updating the usages,
and then both services hand out the same capacity. But it increments the generations of the
providers. Whenever berth changes the generation of a provider, it writes the new one into one of
the provider's usages (`berth_usages.generation`) in the same commit. So if the largest of these is
not the provider's generation, another program has changed the provider.

The code that detects this raises `ForeignWrite`. The unit of work is rolled back; a separate commit
recounts the providers and notes them in the journal, so that every index reloads them; then the
unit runs again, on correct usages.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial
from typing import Final, NamedTuple

from sqlalchemy import bindparam, func, or_, select

from berth.model.ids import ProviderId, ProviderUUID
from berth.store.engine.database import CommitFirst, Database
from berth.store.engine.tables import (
    berth_usages,
    inventories,
    resource_classes,
    resource_providers,
)
from berth.store.engine.transaction import Tx
from berth.store.lookups import providers_by_uuid
from berth.store.usage_counts import Stale, lock_providers, recount_providers

LOG = logging.getLogger(__name__)

_rp, _inv, _usage = resource_providers.c, inventories.c, berth_usages.c


#: Skips providers with neither inventories nor usages: nothing can be wrong.
_MOVED: Final = (
    select(_rp.id, _rp.uuid, _rp.name, _rp.generation, func.max(_usage.generation).label("known"))
    .select_from(
        resource_providers.outerjoin(inventories, _inv.resource_provider_id == _rp.id).outerjoin(
            berth_usages, _usage.resource_provider_id == _rp.id
        )
    )
    .where(
        _rp.id.in_(bindparam("providers", expanding=True)),
        or_(_inv.id.is_not(None), _usage.resource_provider_id.is_not(None)),
    )
    .group_by(_rp.id, _rp.uuid, _rp.name, _rp.generation)
    .having(func.coalesce(func.max(_usage.generation), -1) != func.coalesce(_rp.generation, -1))
)
_CLASS_NAMES: Final = select(resource_classes.c.id, resource_classes.c.name)


class ForeignWrite(CommitFirst):
    """Another program has changed some providers: they must be recounted first."""

    def __init__(self, providers: Collection[int]) -> None:
        super().__init__(partial(take_over, providers=providers))
        self.providers = providers


class TakenOver(NamedTuple):
    """A provider that another program wrote, after its usage was recounted.

    Attributes:
        left_at: the generation that berth last wrote; None: none of its usages has one.
        sums: by resource class, the stored and the computed usage; None if there is no such usage.
    """

    uuid: str
    name: str | None
    generation: int
    left_at: int | None
    sums: dict[str, tuple[int | None, int | None]]

    def sentence(self) -> str:
        """A message that says what happened and what to do."""
        counted = "; ".join(
            f"{name} {'-' if before is None else before} -> {'-' if now is None else now}"
            for name, (before, now) in sorted(self.sums.items())
        )
        return (
            f"another program writes to this database: resource provider {self.uuid} "
            f"({self.name}) is at generation {self.generation}, but berth left it at "
            f"{self.left_at}. Its usage has been recounted ({counted or 'no sum was wrong'}). "
            f"Stop every instance of OpenStack Placement that still uses this database"
        )


def take_over(db: Database, providers: Collection[int]) -> set[str]:
    """Recount and log providers that another program has written; skip those that only berth has
    changed.

    Returns:
        the UUIDs of the former.

    Raises:
        DatabaseUnavailable: the database cannot be written.
    """
    taken = db.write(partial(_taken_over, providers=providers))
    for provider in taken:
        LOG.error("%s", provider.sentence())
        db.observer.found_foreign_write()
    return {provider.uuid for provider in taken}


def note_foreign(db: Database, providers: Collection[tuple[ProviderId, ProviderUUID]]) -> None:
    """Note in the journal that another program has created, changed or deleted some providers, so
    that every index loads them again, and every follower of the fleet hears of it; recount their
    usage, and log an error for each.

    Raises:
        DatabaseUnavailable: the database cannot be written.
    """
    recounted = take_over(db, {number for number, _ in providers})
    # These have no usage to recount, or are gone; their id may have been given to another one.
    others = sorted((number, uuid) for number, uuid in providers if uuid not in recounted)
    if not others:
        return

    def unit(tx: Tx) -> None:
        stored = providers_by_uuid(tx, {uuid for _, uuid in others})
        for number, uuid in others:
            tx.touched.add(number)
            row = stored.get(uuid)
            if row is None or row.id != number:
                tx.gone[number] = uuid
            if row is not None:
                tx.touched.add(row.id)

    db.write(unit)
    for _, uuid in others:
        LOG.error(
            "another program writes to this database: it has created, changed or deleted resource "
            "provider %s, which is now loaded again. Stop every instance of OpenStack Placement "
            "that still uses this database",
            uuid,
        )
        db.observer.found_foreign_write()


def written_elsewhere(tx: Tx, providers: Collection[ProviderId]) -> set[ProviderId]:
    """Those of the providers that another program has written."""
    return {
        row[0]
        for some in tx.chunks(sorted(providers))
        for row in tx.rows(_MOVED, {"providers": some})
    }


def _taken_over(tx: Tx, providers: Collection[int]) -> list[TakenOver]:
    lock_providers(tx, providers)
    moved = [
        row for some in tx.chunks(sorted(providers)) for row in tx.rows(_MOVED, {"providers": some})
    ]
    if not moved:
        return []
    stale = recount_providers(tx, [row[0] for row in moved])
    names = dict(tx.rows(_CLASS_NAMES, {}))
    return [
        TakenOver(uuid, name, generation, left_at, _sums_of(number, stale, names))
        for number, uuid, name, generation, left_at in moved
    ]


def _sums_of(
    provider: int, stale: Collection[Stale], names: dict[int, str]
) -> dict[str, tuple[int | None, int | None]]:
    return {
        names.get(usage.class_id, str(usage.class_id)): (usage.remembered, usage.counted)
        for usage in stale
        if usage.provider == provider
    }
