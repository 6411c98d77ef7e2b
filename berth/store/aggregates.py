# SPDX-License-Identifier: Apache-2.0
"""Aggregates of providers. An aggregate is a uuid; it is created when a request first names it.

berth shows it in the spelling that created it, and accepts every other spelling of the same uuid:
see `berth.store.aggregate_spellings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from sqlalchemy import bindparam, delete, literal_column, null, select, union_all

from berth.model.errors import ProviderNotFound
from berth.model.ids import AggregateId, AggregateUUID, Generation, ProviderId, ProviderUUID
from berth.model.sentinels import UNSET, Sentinel
from berth.store.aggregate_spellings import (
    canonical,
    ensure_aggregates,
    ids_by_uuid,
    spellings_of,
)
from berth.store.engine.database import Database
from berth.store.engine.expressions import common_text
from berth.store.engine.tables import (
    placement_aggregates,
    resource_provider_aggregates,
    resource_providers,
)
from berth.store.engine.transaction import Change, Tx
from berth.store.generations import Bump, check_seen, moving, pinning
from berth.store.lookups import ProviderRow

_aggregate = placement_aggregates.c
_member = resource_provider_aggregates.c
_provider = resource_providers.c

#: (is provider, uuid, id, generation) of a provider, and of the aggregates with some spellings.
_PROVIDER_AND_AGGREGATES: Final = union_all(
    select(
        literal_column("1"), common_text(_provider.uuid), _provider.id, _provider.generation
    ).where(_provider.uuid == bindparam("uuid")),
    select(literal_column("0"), common_text(_aggregate.uuid), _aggregate.id, null()).where(
        _aggregate.uuid.in_(bindparam("spellings", expanding=True))
    ),
)
_LEAVE: Final = delete(resource_provider_aggregates).where(
    _member.resource_provider_id == bindparam("provider")
)
_LEAVE_OTHERS: Final = _LEAVE.where(
    _member.aggregate_id.not_in(bindparam("aggregates", expanding=True))
)


def replace_aggregates(
    db: Database,
    uuid: ProviderUUID,
    spellings: Iterable[str],
    seen: Generation | Literal[Sentinel.UNSET],
) -> Generation:
    """Replace a provider's aggregates; return its new generation.

    UNSET (below 1.19): the generation is neither checked nor changed. Otherwise it always
    increments.

    Args:
        spellings: the aggregates as the client wrote them. A new aggregate keeps this spelling; if
            the client spells one in two ways, the first counts.

    Raises:
        ProviderNotFound: no provider has this uuid.
        ProviderGenerationConflict: it is not at `seen`.
    """

    wanted = _once_each(spellings)

    def unit(tx: Tx) -> Generation:
        provider, stored = _read(tx, uuid, wanted)
        if seen is not UNSET:
            check_seen(provider, seen)
        ids = sorted(set(ensure_aggregates(tx, wanted, stored).values()))
        bump = Bump(provider.id, provider.generation)
        lock = [pinning(tx, provider)] if seen is UNSET else moving(tx, [bump])
        tx.change_all([*lock, *membership_changes(tx, provider.id, ids)])
        return Generation(provider.generation + (seen is not UNSET))

    return db.write(unit)


def _once_each(spellings: Iterable[str]) -> dict[AggregateUUID, str]:
    """Each aggregate in the first of its spellings."""
    first: dict[AggregateUUID, str] = {}
    for spelling in spellings:
        first.setdefault(canonical(spelling), spelling)
    return first


def _read(
    tx: Tx, uuid: ProviderUUID, wanted: Mapping[AggregateUUID, str]
) -> tuple[ProviderRow, dict[AggregateUUID, list[AggregateId]]]:
    """A provider, and the ids of those of the aggregates that exist.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    spellings = spellings_of(wanted)
    rows = [
        row
        for chunk in list(tx.chunks(spellings)) or [[]]
        for row in tx.rows(_PROVIDER_AND_AGGREGATES, {"uuid": uuid, "spellings": chunk})
    ]
    stored = ids_by_uuid(
        ((text, number) for is_provider, text, number, _ in rows if not is_provider), spellings
    )
    for is_provider, text, number, generation in rows:
        if is_provider and text == uuid:
            return ProviderRow(number, text, generation), stored
    raise ProviderNotFound(uuid)


def membership_changes(tx: Tx, provider: ProviderId, wanted: Sequence[AggregateId]) -> list[Change]:
    """The writes that make a provider a member of exactly these aggregates."""
    leaving: dict[str, Any] = {"provider": provider}
    statement = _LEAVE
    if 0 < len(wanted) <= tx.in_list_max:
        statement, leaving["aggregates"] = _LEAVE_OTHERS, wanted
    joining = [
        {"resource_provider_id": provider, "aggregate_id": number, "created_at": tx.now}
        for number in wanted
    ]
    return [
        Change(statement, [leaving]),
        *tx.insertions_of_missing(resource_provider_aggregates, joining),
    ]
