# SPDX-License-Identifier: Apache-2.0
"""Allocations: the amounts of resources that a consumer uses. Reads them by consumer or provider,
and replaces all of a consumer's at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, compress
from typing import Final, NamedTuple

from msgspec import Struct
from sqlalchemy import bindparam, func, select

from berth.model.consumer import ConsumerWrite
from berth.model.errors import (
    AllocationsNotFound,
    ConsumerGenerationConflict,
    ConsumerRace,
    LostRace,
    ProviderNotFound,
)
from berth.model.ids import ClassId, ConsumerUUID, Generation, ProviderId, ProviderUUID
from berth.model.shown import UNSET
from berth.store.claim_reads import (
    check_class_names,
    check_provider_names,
    holdings,
    read_claim_facts,
    read_release_facts,
)
from berth.store.claims import Claim, release, write_claim
from berth.store.consumers import check_generations
from berth.store.engine.database import Database
from berth.store.engine.group_commit import Batchable, Committing
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
from berth.store.engine.write_record import Holdings, WriteRecord
from berth.store.lookups import newest
from berth.store.placements import NOT_PLACED, Placement, recorded

_allocation = allocations.c
_consumer = consumers.c
_PROVIDER_GENERATION: Final = func.coalesce(resource_providers.c.generation, 0)


class ConsumerAllocations(Struct, frozen=True):
    """All allocations of one consumer.

    `allocations`: by provider, its generation and the amount by resource class. `consumer_type`:
    None if it has none. `last_modified`: when the newest allocation was created.
    """

    allocations: dict[ProviderUUID, tuple[Generation, dict[str, int]]]
    project_id: str
    user_id: str
    generation: Generation
    consumer_type: str | None
    last_modified: datetime | None


class ProviderAllocations(Struct, frozen=True):
    """All allocations on one provider.

    `consumers`: by consumer, its generation and the amount by resource class. `last_modified`:
    when the newest allocation was created; None if there is none.
    """

    generation: Generation
    consumers: dict[ConsumerUUID, tuple[Generation, dict[str, int]]]
    last_modified: datetime | None


_OF_CONSUMER: Final = (
    select(
        resource_providers.c.uuid,
        _PROVIDER_GENERATION,
        resource_classes.c.name,
        _allocation.used,
        _allocation.created_at,
        projects.c.external_id,
        users.c.external_id,
        _consumer.generation,
        consumer_types.c.name,
    )
    .select_from(allocations)
    .join(resource_providers, resource_providers.c.id == _allocation.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == _allocation.resource_class_id)
    .join(consumers, _consumer.uuid == _allocation.consumer_id)
    .join(projects, projects.c.id == _consumer.project_id)
    .join(users, users.c.id == _consumer.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == _consumer.consumer_type_id)
    .where(_allocation.consumer_id == bindparam("consumer"))
    .order_by(_allocation.id)
)

#: At least one row if the provider exists.
_OF_PROVIDER: Final = (
    select(
        _consumer.uuid,
        _consumer.generation,
        resource_classes.c.name,
        _allocation.used,
        _allocation.created_at,
        resource_providers.c.uuid,
        _PROVIDER_GENERATION,
    )
    .select_from(resource_providers)
    .outerjoin(allocations, _allocation.resource_provider_id == resource_providers.c.id)
    .outerjoin(resource_classes, resource_classes.c.id == _allocation.resource_class_id)
    .outerjoin(consumers, _consumer.uuid == _allocation.consumer_id)
    .where(resource_providers.c.uuid == bindparam("provider"))
    .order_by(_allocation.id)
)


_OF_CONSUMERS: Final = (
    select(_allocation.resource_provider_id, _allocation.resource_class_id, _allocation.used)
    .select_from(allocations)
    .where(_allocation.consumer_id.in_(bindparam("consumers", expanding=True)))
)


def held_by(
    db: Database, consumers: Collection[ConsumerUUID]
) -> dict[tuple[ProviderId, ClassId], int]:
    """What some consumers use together, by provider and resource class."""
    amounts: Counter[tuple[ProviderId, ClassId]] = Counter()
    with db.read() as tx:
        for chunk in tx.chunks(consumers):
            for provider, class_id, used in tx.rows(_OF_CONSUMERS, {"consumers": chunk}):
                amounts[provider, class_id] += used
    return amounts


def consumer_allocations(db: Database, consumer_uuid: ConsumerUUID) -> ConsumerAllocations | None:
    """The allocations of a consumer; None if it has none or does not exist."""
    rows = db.rows(_OF_CONSUMER, {"consumer": consumer_uuid})
    if not rows:
        return None
    amounts: dict[ProviderUUID, tuple[Generation, dict[str, int]]] = {}
    for provider, generation, resource_class, used, *_ in rows:
        amounts.setdefault(provider, (generation, {}))[1][resource_class] = used
    *_, project_id, user_id, generation, consumer_type = rows[0]
    return ConsumerAllocations(
        amounts, project_id, user_id, generation, consumer_type, newest(row[4] for row in rows)
    )


def provider_allocations(db: Database, uuid: ProviderUUID) -> ProviderAllocations:
    """All allocations on a provider.

    Raises:
        ProviderNotFound: no provider has this uuid.
    """
    # A collation may find another uuid.
    rows = [row for row in db.rows(_OF_PROVIDER, {"provider": uuid}) if row[5] == uuid]
    if not rows:
        raise ProviderNotFound(uuid)
    allocated = [row for row in rows if row[0] is not None and row[2] is not None]
    holders: dict[ConsumerUUID, tuple[Generation, dict[str, int]]] = {}
    for consumer, generation, resource_class, used, *_ in allocated:
        holders.setdefault(consumer, (generation, {}))[1][resource_class] = used
    return ProviderAllocations(rows[0][6], holders, newest(row[4] for row in allocated))


class ClaimRequest(NamedTuple):
    """The writes of one request.

    Attributes:
        placed: of those consumers that berth has placed, what to keep.
        record: gets what the consumers had; None if nobody asks.
    """

    writes: Sequence[ConsumerWrite]
    placed: Mapping[ConsumerUUID, Placement]
    record: WriteRecord | None


class ReleaseRequest(NamedTuple):
    """The release of one request; `record` as in `ClaimRequest`."""

    consumer: ConsumerUUID
    record: WriteRecord | None


def replace_allocations(
    db: Database,
    writes: Sequence[ConsumerWrite],
    *,
    attempts: int,
    placed: Mapping[ConsumerUUID, Placement] = NOT_PLACED,
    committing: Committing | None = None,
) -> None:
    """Replace the allocations of each of some consumers; all of them or none.

    The previous allocations of the consumers are released first, so that consumers can swap. A
    claim for no more than its consumers had before succeeds even on an overcommitted provider.

    Args:
        writes: each consumer at most once.
        attempts: the most runs if other writers change the same providers; 0 counts as 1.
        placed: what to keep of those consumers that berth has placed, written in the same commit.
        committing: see `Database.write`.

    Raises:
        ConsumerGenerationConflict, UnknownProviderInAllocation, UnknownClassInAllocation,
        NoInventory, UnitViolation, CapacityExceeded: after these, for the first amount with such
            an error.
        ConsumerRace: another request wrote one of the consumers at the same time.
        LostRace: other requests changed the providers each time.
    """
    record = db.record
    if record is not None:
        record.claims = writes

    def unit(tx: Tx) -> None:
        facts = read_claim_facts(tx, writes, record)
        check_generations(writes, facts.consumers)
        check_provider_names(facts, writes)
        check_class_names(facts, writes)
        claim = Claim(writes, facts, recorded(tx, writes, placed), is_last=True)
        write_claim(tx, claim, dict.fromkeys(claim.bumped(), 1))

    request = ClaimRequest(writes, placed, record)
    batch = Batchable(_claim_at_once, request)
    db.write(unit, attempts=attempts, batch=batch, committing=committing)


def delete_allocations(db: Database, consumer_uuid: ConsumerUUID) -> None:
    """Delete all allocations of a consumer, at any generation; providers keep their generations.

    Raises:
        AllocationsNotFound: it has none.
        LostRace: other requests wrote the consumer each time.
    """

    request = ReleaseRequest(consumer_uuid, db.record)

    def unit(tx: Tx) -> None:
        try:
            released = _release(tx, [request], of=1)
        except ConsumerRace as error:
            # A DELETE has no generation: it also deletes allocations written in the meantime.
            raise LostRace(f"the set of allocations of consumer {consumer_uuid}") from error
        if not released:
            raise AllocationsNotFound(consumer_uuid)

    db.write(unit, batch=Batchable(_release_at_once, request))


def release_consumer(db: Database, uuid: ConsumerUUID, seen: Generation) -> None:
    """Delete all allocations of a consumer, if it is at the generation that the caller has seen.

    Raises:
        AllocationsNotFound: it has none.
        ConsumerGenerationConflict: it is at another generation.
        ConsumerRace: another request wrote it at the same time.
    """

    def unit(tx: Tx) -> None:
        facts = read_release_facts(tx, [uuid], with_holders=db.record is not None)
        if db.record is not None:
            db.record.former = holdings(facts, {uuid})
        consumer = facts.consumers.get(uuid)
        if consumer is None:
            raise AllocationsNotFound(uuid)
        if consumer.generation != seen:
            raise ConsumerGenerationConflict(uuid, seen=seen, actual=consumer.generation)
        if not release(tx, facts, is_last=True):
            raise AllocationsNotFound(uuid)

    db.write(unit)


def _claim_at_once(tx: Tx, items: Sequence[ClaimRequest]) -> list[bool]:
    """Write the claims of several requests in as few statements as one; return which were written.

    Only requests whose consumers are new and have no allocations are written. They only add, so if
    all fit together, each would have fitted alone, in any order. Requests that move or shrink
    allocations are left out: two that swap fit together, though neither would have fitted alone.
    """
    every_write = list(chain.from_iterable(item.writes for item in items))
    times = Counter(write.uuid for write in every_write)
    facts = read_claim_facts(tx, every_write)
    existing = {*facts.consumers, *(allocation.consumer for allocation in facts.allocations)}
    is_new = [
        all(
            write.allocations
            and write.generation in (UNSET, None)
            and times[write.uuid] == 1
            and write.uuid not in existing
            for write in item.writes
        )
        for item in items
    ]
    requests = list(compress(items, is_new))
    writes = list(chain.from_iterable(request.writes for request in requests))
    for request in requests:
        if request.record is not None:
            request.record.former = Holdings()
    if not writes:
        return is_new
    check_provider_names(facts, writes)
    check_class_names(facts, writes)
    # Each request increments a provider's generation once, as it does alone.
    steps = Counter(
        facts.providers[uuid].id
        for request in requests
        for uuid in {uuid for write in request.writes for uuid in write.allocations}
    )
    placed = {uuid: each for request in requests for uuid, each in request.placed.items()}
    beside = recorded(tx, writes, placed)
    facts = facts.of_new_consumers(steps)
    write_claim(tx, Claim(writes, facts, beside, is_last=all(is_new)), steps)
    return is_new


def _release_at_once(tx: Tx, items: Sequence[ReleaseRequest]) -> list[bool]:
    """Delete the allocations of several consumers in as few statements as of one; return which.

    A consumer that is named twice is left out: the second request must find nothing.
    """
    times = Counter(item.consumer for item in items)
    released = _release(tx, [item for item in items if times[item.consumer] == 1], of=len(items))
    return [item.consumer in released for item in items]


def _release(tx: Tx, requests: Sequence[ReleaseRequest], *, of: int) -> set[ConsumerUUID]:
    """Delete all allocations of some consumers; return those that had any.

    Args:
        of: requests of the transaction; those that find nothing here run again by themselves.

    Raises:
        ConsumerRace: another request wrote one of them at the same time.
    """
    is_asked = any(request.record is not None for request in requests)
    facts = read_release_facts(
        tx, [request.consumer for request in requests], with_holders=is_asked
    )
    for request in requests:
        if request.record is not None:
            request.record.former = holdings(facts, {request.consumer})
    holders = {allocation.consumer for allocation in facts.allocations}
    return release(tx, facts, is_last=len(holders) == of)


# --- Of many providers ---------------------------------------------------------------------------


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
