# SPDX-License-Identifier: Apache-2.0
"""Allocations: who holds how much of what; read by consumer or provider, replaced as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, compress
from typing import Any, Final

from sqlalchemy import bindparam, select

from berth.model.consumer import ConsumerWrite
from berth.model.errors import AllocationsNotFound, ConsumerRace, LostRace
from berth.model.ids import ConsumerUUID, Generation, ProviderUUID
from berth.model.sentinels import UNSET
from berth.store.claims import (
    Claim,
    apply_claim,
    give_back,
    read_classes,
    read_held,
    read_providers,
)
from berth.store.consumers import check_generations, delete_consumers, read_consumers
from berth.store.engine.database import Database
from berth.store.engine.group_commit import Joint
from berth.store.engine.tables import (
    allocations,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    resource_providers,
    users,
)
from berth.store.engine.transaction import Tx
from berth.store.generations import Bump, bump_generations
from berth.store.lookups import get_provider_row

_held = allocations.c
_consumer = consumers.c


@dataclass(frozen=True, slots=True)
class ConsumerAllocations:
    """All that one consumer holds.

    `allocations`: by provider, its generation and the amount by resource class. `consumer_type`:
    None when it has none. `last_modified`: when the newest allocation was made.
    """

    allocations: dict[ProviderUUID, tuple[Generation, dict[str, int]]]
    project_id: str
    user_id: str
    generation: Generation
    consumer_type: str | None
    last_modified: datetime | None


@dataclass(frozen=True, slots=True)
class ProviderAllocations:
    """All that is held of one provider.

    `consumers`: by consumer, its generation and the amount by resource class. `last_modified`:
    when the newest allocation was made; None when there is none.
    """

    generation: Generation
    consumers: dict[ConsumerUUID, tuple[Generation, dict[str, int]]]
    last_modified: datetime | None


_OF_CONSUMER: Final = (
    select(
        resource_providers.c.uuid,
        resource_providers.c.generation,
        resource_classes.c.name,
        _held.used,
        _held.created_at,
        projects.c.external_id,
        users.c.external_id,
        _consumer.generation,
        consumer_types.c.name,
    )
    .select_from(allocations)
    .join(resource_providers, resource_providers.c.id == _held.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == _held.resource_class_id)
    .join(consumers, _consumer.uuid == _held.consumer_id)
    .join(projects, projects.c.id == _consumer.project_id)
    .join(users, users.c.id == _consumer.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == _consumer.consumer_type_id)
    .where(_held.consumer_id == bindparam("consumer"))
    .order_by(_held.id)
)

_OF_PROVIDER: Final = (
    select(
        _consumer.uuid,
        _consumer.generation,
        resource_classes.c.name,
        _held.used,
        _held.created_at,
    )
    .select_from(allocations)
    .join(resource_classes, resource_classes.c.id == _held.resource_class_id)
    .join(consumers, _consumer.uuid == _held.consumer_id)
    .where(_held.resource_provider_id == bindparam("provider"))
    .order_by(_held.id)
)


def consumer_allocations(db: Database, consumer_uuid: ConsumerUUID) -> ConsumerAllocations | None:
    """What a consumer holds; None when that is nothing, or nobody knows the consumer."""
    with db.read() as tx:
        rows = tx.rows(_OF_CONSUMER, {"consumer": consumer_uuid})
    if not rows:
        return None
    amounts: dict[ProviderUUID, tuple[Generation, dict[str, int]]] = {}
    for provider, generation, resource_class, used, *_ in rows:
        amounts.setdefault(provider, (generation, {}))[1][resource_class] = used
    *_, project_id, user_id, generation, consumer_type = rows[0]
    return ConsumerAllocations(
        amounts, project_id, user_id, generation, consumer_type, _newest(rows)
    )


def provider_allocations(db: Database, uuid: ProviderUUID) -> ProviderAllocations:
    """What is held of a provider.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    with db.read() as tx:
        provider = get_provider_row(tx, uuid)
        rows = tx.rows(_OF_PROVIDER, {"provider": provider.id})
    holders: dict[ConsumerUUID, tuple[Generation, dict[str, int]]] = {}
    for consumer, generation, resource_class, used, _ in rows:
        holders.setdefault(consumer, (generation, {}))[1][resource_class] = used
    return ProviderAllocations(provider.generation, holders, _newest(rows))


def replace_allocations(db: Database, writes: Sequence[ConsumerWrite], *, attempts: int) -> None:
    """Let each of some consumers hold exactly what its write says; all of them or none.

    What the consumers held before is given back first, so that they can swap. A claim that takes
    no more than its consumers held before is accepted even where more is used than there is.

    Args:
        writes: each consumer at most once.
        attempts: runs in all when other writers change the same providers; 0 counts as 1.

    Raises:
        ConsumerGenerationConflict, UnknownProviderInAllocation, UnknownClassInAllocation,
        NoInventory, UnitViolation, CapacityExceeded: after these, for the first amount that has
            such a fault.
        ConsumerRace: another request wrote one of the consumers at the same time.
        LostRace: other requests changed the providers each time.
    """

    def unit(tx: Tx) -> None:
        uuids = [write.uuid for write in writes]
        stored = read_consumers(tx, uuids)
        check_generations(writes, stored)
        providers = read_providers(tx, writes)
        classes = read_classes(tx, writes)
        claim = Claim(writes, stored, providers, classes, read_held(tx, uuids))
        bumped = claim.bumped()
        bump_generations(tx, [Bump(provider) for provider in bumped], for_usage=True)
        apply_claim(tx, claim, dict.fromkeys(bumped, 1))

    db.write(unit, attempts=attempts, joint=Joint(_claim_at_once, writes))


def delete_allocations(db: Database, consumer_uuid: ConsumerUUID) -> None:
    """Take everything from a consumer, whatever its generation; no provider's generation moves.

    Raises:
        AllocationsNotFound: it holds nothing.
        LostRace: other requests wrote the consumer each time.
    """

    def unit(tx: Tx) -> None:
        try:
            released = _release(tx, [consumer_uuid])
        except ConsumerRace as error:
            # Who deletes has seen no generation: what was written meanwhile is deleted as well.
            raise LostRace(f"what consumer {consumer_uuid} holds") from error
        if not released:
            raise AllocationsNotFound(consumer_uuid)

    db.write(unit, joint=Joint(_release_at_once, consumer_uuid))


def _claim_at_once(tx: Tx, items: Sequence[Sequence[ConsumerWrite]]) -> list[bool]:
    """Write the claims of several requests with as few statements as those of one; which of them.

    It is done for consumers that are new and hold nothing: then all that happens is added, and
    where all of it fits together each request would have fitted, whoever came first. What moves or
    shrinks is left: two that swap fit together, and neither of them would have fitted alone.
    """
    times = Counter(write.uuid for writes in items for write in writes)
    known = {*read_consumers(tx, times), *(one.consumer for one in read_held(tx, times))}
    is_new = [
        all(
            write.allocations
            and write.generation in (UNSET, None)
            and times[write.uuid] == 1
            and write.uuid not in known
            for write in writes
        )
        for writes in items
    ]
    requests = list(compress(items, is_new))
    writes = list(chain.from_iterable(requests))
    providers = read_providers(tx, writes)
    # Each request counts a provider's generation up once, as it does alone.
    steps = Counter(
        providers[uuid].id
        for request in requests
        for uuid in {uuid for write in request for uuid in write.allocations}
    )
    claim = Claim(writes, {}, providers, read_classes(tx, writes), [])
    bump_generations(
        tx, [Bump(provider, steps=count) for provider, count in steps.items()], for_usage=True
    )
    apply_claim(tx, claim, steps)
    return is_new


def _release_at_once(tx: Tx, items: Sequence[ConsumerUUID]) -> list[bool]:
    """Take everything from several consumers with as few statements as from one; which of them.

    Who is named twice is left: the second finds nothing.
    """
    times = Counter(items)
    released = _release(tx, [uuid for uuid, count in times.items() if count == 1])
    return [uuid in released for uuid in items]


def _release(tx: Tx, uuids: Sequence[ConsumerUUID]) -> set[ConsumerUUID]:
    """Take everything from some consumers; those that held something.

    Raises:
        ConsumerRace: another request wrote one of them at the same time.
    """
    # RACE tests/store/test_claim_races.py: in this order, or the guard of a record that was
    # written in between would let what was held before go.
    stored = read_consumers(tx, uuids)
    held = read_held(tx, uuids)
    give_back(tx, held, stored)
    holders = {one.consumer for one in held}
    delete_consumers(tx, [one for one in stored.values() if one.uuid in holders])
    return holders


def _newest(rows: Sequence[Any]) -> datetime | None:
    """The newest of what stands in the fifth column."""
    return max((row[4] for row in rows if row[4]), default=None)
