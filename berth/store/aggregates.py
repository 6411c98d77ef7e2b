# SPDX-License-Identifier: Apache-2.0
"""Which aggregates a provider is a member of. An aggregate is a uuid, born when first named.

It is shown in the spelling with which it was made, and is the same aggregate in every other:
`berth.store.aggregate_spellings` says how it is found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import bindparam, delete, select

from berth.model.ids import AggregateId, AggregateUUID, Generation, ProviderId, ProviderUUID
from berth.model.sentinels import UNSET, Sentinel
from berth.store.aggregate_spellings import canonical, ensure_aggregates
from berth.store.engine.database import Database
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import placement_aggregates, resource_provider_aggregates
from berth.store.engine.transaction import Tx
from berth.store.generations import bump_generation, check_seen, pin_provider
from berth.store.lookups import get_provider_row

_aggregate = placement_aggregates.c
_member = resource_provider_aggregates.c

_SPELLINGS_OF_PROVIDER: Final = (
    select(_aggregate.uuid)
    .join(resource_provider_aggregates, _member.aggregate_id == _aggregate.id)
    .where(_member.resource_provider_id == bindparam("provider"))
    .order_by(_aggregate.id)
)
_OF_PROVIDER: Final = select(_member.aggregate_id).where(
    _member.resource_provider_id == bindparam("provider")
)
_JOIN: Final = insert_of(
    resource_provider_aggregates, "resource_provider_id", "aggregate_id", "created_at"
)
_LEAVE: Final = delete(resource_provider_aggregates).where(
    _member.resource_provider_id == bindparam("provider"),
    _member.aggregate_id.in_(bindparam("aggregates", expanding=True)),
)


@dataclass(frozen=True, slots=True)
class ProviderAggregates:
    """A provider's memberships: each aggregate once, in the spelling with which it was made."""

    generation: Generation
    spellings: list[str]


def get_aggregates(db: Database, uuid: ProviderUUID) -> ProviderAggregates:
    """The aggregates that a provider itself is a member of.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    with db.read() as tx:
        provider = get_provider_row(tx, uuid)
        rows = tx.rows(_SPELLINGS_OF_PROVIDER, {"provider": provider.id})
        spelled = _once_each(spelling for (spelling,) in rows if spelling is not None)
        return ProviderAggregates(provider.generation, list(spelled.values()))


def replace_aggregates(
    db: Database,
    uuid: ProviderUUID,
    spellings: Iterable[str],
    seen: Generation | Literal[Sentinel.UNSET],
) -> Generation:
    """Let a provider be a member of exactly these aggregates; its generation afterwards.

    UNSET (below 1.19): the generation is neither checked nor moved. Otherwise it always moves.

    Args:
        spellings: the aggregates as the client wrote them. One that is new is shown like that from
            then on; of one that is written in two ways, the first counts.

    Raises:
        ProviderNotFound: no provider has this uuid.
        ProviderGenerationConflict: it is not at `seen`.
    """

    wanted = _once_each(spellings)

    def unit(tx: Tx) -> Generation:
        provider = get_provider_row(tx, uuid)
        if seen is UNSET:
            pin_provider(tx, provider)
            generation = provider.generation
        else:
            check_seen(provider, seen)
            generation = bump_generation(tx, provider)
        _write_members(tx, provider.id, set(ensure_aggregates(tx, wanted).values()))
        return generation

    return db.write(unit)


def _once_each(spellings: Iterable[str]) -> dict[AggregateUUID, str]:
    """Each aggregate in the first of its spellings."""
    first: dict[AggregateUUID, str] = {}
    for spelling in spellings:
        first.setdefault(canonical(spelling), spelling)
    return first


def _write_members(tx: Tx, provider: ProviderId, wanted: set[AggregateId]) -> None:
    stored = {number for (number,) in tx.rows(_OF_PROVIDER, {"provider": provider})}
    for chunk in tx.chunks(sorted(stored - wanted)):
        tx.change(_LEAVE, {"provider": provider, "aggregates": chunk})
    if added := sorted(wanted - stored):
        tx.change(
            _JOIN,
            [
                {
                    "resource_provider_id": provider,
                    "aggregate_id": number,
                    "created_at": tx.now,
                }
                for number in added
            ],
        )
