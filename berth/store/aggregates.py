# SPDX-License-Identifier: Apache-2.0
"""Which aggregates a provider is a member of. An aggregate is a uuid, born when first named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import delete, insert, select

from berth.model.ids import AggregateId, AggregateUUID, Generation, ProviderId, ProviderUUID
from berth.model.sentinels import UNSET, Sentinel
from berth.store.database import Database, Tx
from berth.store.generations import bump_generation, check_seen, pin_provider
from berth.store.lookups import chunks, get_provider_row, missing
from berth.store.tables import placement_aggregates, resource_provider_aggregates

_aggregate = placement_aggregates.c
_member = resource_provider_aggregates.c


@dataclass(frozen=True, slots=True)
class ProviderAggregates:
    """A provider's memberships."""

    generation: Generation
    uuids: list[str]


def get_aggregates(db: Database, uuid: ProviderUUID) -> ProviderAggregates:
    """The aggregates that a provider itself is a member of.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    with db.read() as tx:
        provider = get_provider_row(tx, uuid)
        uuids = tx.connection.scalars(
            select(_aggregate.uuid)
            .join(resource_provider_aggregates, _member.aggregate_id == _aggregate.id)
            .where(_member.resource_provider_id == provider.id)
            .order_by(_aggregate.id)
        )
        return ProviderAggregates(provider.generation, list(uuids))


def replace_aggregates(
    db: Database,
    uuid: ProviderUUID,
    aggregates: Sequence[AggregateUUID],
    seen: Generation | Literal[Sentinel.UNSET],
) -> Generation:
    """Let a provider be a member of exactly these aggregates; its generation afterwards.

    UNSET (below 1.19): the generation is neither checked nor moved. Otherwise it always moves.

    Raises:
        ProviderNotFound: no provider has this uuid.
        ProviderGenerationConflict: it is not at `seen`.
    """

    def unit(tx: Tx) -> Generation:
        provider = get_provider_row(tx, uuid)
        if seen is UNSET:
            pin_provider(tx, provider)
            generation = provider.generation
        else:
            check_seen(provider, seen)
            generation = bump_generation(tx, provider)
        _write_members(tx, provider.id, set(_ensure_aggregates(tx, aggregates).values()))
        return generation

    return db.write(unit)


def _ensure_aggregates(tx: Tx, uuids: Sequence[AggregateUUID]) -> dict[AggregateUUID, AggregateId]:
    known = _aggregate_ids(tx, uuids)
    if new := missing(uuids, known):
        tx.connection.execute(
            tx.dialect.insert_missing(placement_aggregates),
            [{"uuid": uuid, "created_at": tx.now} for uuid in new],
        )
        known = _aggregate_ids(tx, uuids)
    return known


def _aggregate_ids(tx: Tx, uuids: Sequence[AggregateUUID]) -> dict[AggregateUUID, AggregateId]:
    return {
        uuid: number
        for chunk in chunks(uuids)
        for uuid, number in tx.connection.execute(
            select(_aggregate.uuid, _aggregate.id).where(_aggregate.uuid.in_(chunk))
        )
    }


def _write_members(tx: Tx, provider: ProviderId, wanted: set[AggregateId]) -> None:
    of_provider = _member.resource_provider_id == provider
    stored = set(tx.connection.scalars(select(_member.aggregate_id).where(of_provider)))
    for chunk in chunks(sorted(stored - wanted)):
        tx.connection.execute(
            delete(resource_provider_aggregates).where(of_provider, _member.aggregate_id.in_(chunk))
        )
    if added := sorted(wanted - stored):
        tx.connection.execute(
            insert(resource_provider_aggregates),
            [
                {
                    "resource_provider_id": provider,
                    "aggregate_id": number,
                    "created_at": tx.now,
                }
                for number in added
            ],
        )
