# SPDX-License-Identifier: Apache-2.0
"""The allocations of many providers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from sqlalchemy import bindparam, select

from berth.model.ids import ClassId, ConsumerUUID, ProviderId
from berth.store.engine.tables import allocations
from berth.store.engine.transaction import Tx

_allocation = allocations.c
_OF_PROVIDERS: Final = select(
    _allocation.resource_provider_id,
    _allocation.consumer_id,
    _allocation.resource_class_id,
    _allocation.used,
).where(_allocation.resource_provider_id.in_(bindparam("providers", expanding=True)))


def allocations_of(
    tx: Tx, providers: Iterable[ProviderId]
) -> Iterator[tuple[ProviderId, ConsumerUUID, ClassId, int]]:
    """Provider, consumer, class and amount of every allocation of some providers."""
    for chunk in tx.chunks(providers):
        yield from tx.rows(_OF_PROVIDERS, {"providers": chunk})
