# SPDX-License-Identifier: Apache-2.0
"""What another program has written to berth's database: found, counted, and said aloud.

A forgotten member of the original writes allocations of which the sums of usage know nothing, and
then both give out what only one of them has. But it counts the generations of the providers up, and
berth writes each generation that it moves a provider to into one of the provider's sums
(`berth_usages.generation`) in the same commit. So wherever the largest of these is not the
provider's own, somebody else has moved it.

Whoever finds that raises `ForeignWrite`. The unit of work leaves nothing; the providers are
recounted in a commit of its own, which the journal notes, so that every index takes all of it over;
and the unit is run again, on the right sums.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial
from typing import Final, NamedTuple

from sqlalchemy import bindparam, func, or_, select

from berth.model.ids import ProviderId
from berth.store.engine.database import CommitFirst, Database
from berth.store.engine.tables import (
    berth_usages,
    berth_writer,
    inventories,
    resource_classes,
    resource_providers,
)
from berth.store.engine.transaction import Tx
from berth.store.usage_counts import Stale, hold_still, recount_held_still

LOG = logging.getLogger(__name__)

_rp, _inv, _usage, _writer = (
    resource_providers.c,
    inventories.c,
    berth_usages.c,
    berth_writer.c,
)


#: Providers without an inventory and without a sum have nothing to be wrong about.
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
_OLDER_BERTHS: Final = select(func.count()).where(_writer.kept_seq != _writer.seq)
_CLASS_NAMES: Final = select(resource_classes.c.id, resource_classes.c.name)


class ForeignWrite(CommitFirst):
    """Another program has moved some providers: they have to be recounted first."""

    def __init__(self, providers: Collection[int]) -> None:
        super().__init__(partial(take_over, providers=providers))
        self.providers = providers


class TakenOver(NamedTuple):
    """A provider that somebody else has written, recounted.

    Attributes:
        known: the generation that berth last moved it to; None: no sum of it has one.
        sums: by resource class, what was remembered and what its allocations make; None where
            there is no such sum.
        by_older_berth: whether an older release of berth, still at work, may have written it.
    """

    uuid: str
    name: str | None
    generation: int
    known: int | None
    sums: dict[str, tuple[int | None, int | None]]
    by_older_berth: bool

    def sentence(self) -> str:
        """What has happened, and what to do."""
        counted = "; ".join(
            f"{name} {'-' if before is None else before} -> {'-' if now is None else now}"
            for name, (before, now) in sorted(self.sums.items())
        )
        return (
            f"another program writes to berth's database: resource provider {self.uuid} "
            f"({self.name}) is at generation {self.generation}, and berth left it at {self.known}. "
            f"Its usage has been recounted ({counted or 'no sum was wrong'}). Stop every member "
            f"of OpenStack Placement that still uses this database"
        )


def take_over(db: Database, providers: Collection[int]) -> None:
    """Recount providers that somebody else has written, and say so; those that are as berth left
    them are passed over.

    Raises:
        DatabaseUnavailable: the database cannot be written.
    """
    for one in db.write(partial(_taken_over, providers=providers)):
        if one.by_older_berth:
            LOG.info(
                "An older release of berth has written resource provider %s; its usage has been "
                "recounted",
                one.uuid,
            )
        else:
            LOG.error("%s", one.sentence())
            db.observer.found_foreign_write()


def written_elsewhere(tx: Tx, providers: Collection[ProviderId]) -> set[ProviderId]:
    """Those of some providers that are not as berth left them."""
    return {
        row[0]
        for some in tx.chunks(sorted(providers))
        for row in tx.rows(_MOVED, {"providers": some})
    }


def _taken_over(tx: Tx, providers: Collection[int]) -> list[TakenOver]:
    hold_still(tx, providers)
    moved = [
        row for some in tx.chunks(sorted(providers)) for row in tx.rows(_MOVED, {"providers": some})
    ]
    if not moved:
        return []
    stale = recount_held_still(tx, [row[0] for row in moved])
    by_older_berth = tx.rows(_OLDER_BERTHS, {})[0][0] > 0
    names = dict(tx.rows(_CLASS_NAMES, {}))
    return [
        TakenOver(uuid, name, generation, known, _sums_of(number, stale, names), by_older_berth)
        for number, uuid, name, generation, known in moved
    ]


def _sums_of(
    provider: int, stale: Collection[Stale], names: dict[int, str]
) -> dict[str, tuple[int | None, int | None]]:
    return {
        names.get(one.class_id, str(one.class_id)): (one.remembered, one.counted)
        for one in stale
        if one.provider == provider
    }
