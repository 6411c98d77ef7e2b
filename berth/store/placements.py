# SPDX-License-Identifier: Apache-2.0
"""Placements: what `POST /berth/v1/place` has written for a consumer.

A placement is written in the commit of its claim, and counts for as long as the consumer holds
exactly what was placed: so a call that is repeated after a lost answer finds its own outcome, and
which provider serves which request group is not forgotten. Source: spec/beyond.md 5.3.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct, field
from sqlalchemy import bindparam, select

from berth.model.consumer import ConsumerWrite
from berth.model.ids import ClassId, ConsumerUUID, Generation, ProviderId, ProviderUUID
from berth.store.engine.database import Database
from berth.store.engine.tables import (
    LEASE_COUNTS,
    allocations,
    berth_leases,
    berth_placements,
    consumers,
    resource_classes,
    resource_providers,
)
from berth.store.engine.transaction import Change, Tx

#: Request group -> the providers that serve it.
Mappings = Mapping[str, Sequence[ProviderUUID]]
#: Provider -> resource class -> amount.
Amounts = Mapping[ProviderUUID, Mapping[str, int]]


class Placement(NamedTuple):
    """Where a consumer was placed.

    Attributes:
        digest: of the body of the call.
        host: the root that anchors the candidate.
        request: what the consumer asked for, as JSON; "" if that is not kept.
    """

    digest: str
    host: ProviderUUID
    mappings: Mappings
    request: str = ""


#: PERF bench, place: `json.dumps` would make an encoder for each text.
_in_order: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

NOT_PLACED: Final[Mapping[ConsumerUUID, Placement]] = MappingProxyType({})


class Standing(Struct):
    """What a consumer holds.

    Attributes:
        generation: None if it does not exist.
        used: the same as `allocations`, by ids.
        placement: where berth placed it, if it still holds exactly what it got then.
        lease_until: when its lease expires, naive UTC; None if it has none.
    """

    generation: Generation | None = None
    allocations: dict[ProviderUUID, dict[str, int]] = field(default_factory=dict)
    used: dict[tuple[ProviderId, ClassId], int] = field(default_factory=dict)
    placement: Placement | None = None
    lease_until: datetime | None = None


_row = berth_placements.c
_PLACEMENTS: Final = select(
    _row.consumer_uuid,
    _row.digest,
    _row.allocations_digest,
    _row.host_uuid,
    _row.mappings,
    _row.request,
).where(_row.consumer_uuid.in_(bindparam("consumers", expanding=True)))

#: A consumer without allocations has one row, with NULL in the last five columns.
_HOLDING: Final = (
    select(
        consumers.c.uuid,
        consumers.c.generation,
        berth_leases.c.expires_at,
        resource_providers.c.id,
        resource_providers.c.uuid,
        resource_classes.c.id,
        resource_classes.c.name,
        allocations.c.used,
    )
    .select_from(consumers)
    .outerjoin(berth_leases, LEASE_COUNTS)
    .outerjoin(allocations, allocations.c.consumer_id == consumers.c.uuid)
    .outerjoin(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
    .outerjoin(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    .where(consumers.c.uuid.in_(bindparam("consumers", expanding=True)))
    .order_by(allocations.c.id)
)


def recorded(
    tx: Tx, writes: Sequence[ConsumerWrite], placed: Mapping[ConsumerUUID, Placement]
) -> list[Change]:
    """The writes that keep where consumers were placed; they replace older placements."""
    return tx.replacements(
        berth_placements,
        [
            {
                "consumer_uuid": write.uuid,
                "digest": placement.digest,
                "allocations_digest": _digest_of(write.allocations),
                "host_uuid": placement.host,
                "mappings": json.dumps(placement.mappings),
                "created_at": tx.now,
                "request": placement.request or None,
            }
            for write in writes
            if (placement := placed.get(write.uuid)) is not None
        ],
    )


def standings(db: Database, uuids: Collection[ConsumerUUID]) -> dict[ConsumerUUID, Standing]:
    """What each of some consumers holds, in one state of the database."""
    standing = {uuid: Standing() for uuid in uuids}
    with db.read() as tx:
        for chunk in tx.chunks(uuids):
            for uuid, generation, lease_until, *allocation in tx.rows(
                _HOLDING, {"consumers": chunk}
            ):
                # A collation may find another uuid.
                if (each := standing.get(uuid)) is not None:
                    each.generation, each.lease_until = generation, lease_until
                    _add(each, *allocation)
            for uuid, digest, of_allocations, host, mappings, request in tx.rows(
                _PLACEMENTS, {"consumers": chunk}
            ):
                each = standing.get(uuid)
                if each and each.allocations and _digest_of(each.allocations) == of_allocations:
                    # One that is no JSON counts as if there were none.
                    with suppress(ValueError):
                        each.placement = Placement(
                            digest, host, json.loads(mappings), request or ""
                        )
    return standing


def _add(
    standing: Standing,
    provider_id: ProviderId | None,
    provider: ProviderUUID,
    class_id: ClassId,
    resource_class: str,
    used: int,
) -> None:
    if provider_id is not None:
        # COMPAT another program may leave an allocation of a class that is gone.
        standing.allocations.setdefault(provider, {})[resource_class or str(class_id)] = used
        standing.used[provider_id, class_id] = used


def _digest_of(amounts: Amounts) -> str:
    """A digest of allocations, whatever their order."""
    return sha256(_in_order(amounts).encode()).hexdigest()
