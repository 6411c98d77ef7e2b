# SPDX-License-Identifier: Apache-2.0
"""The act of writing allocations, as parts of a transaction: for `allocations` and `reshape`.

The caller reads and checks in the order in which its faults must be reported, bumps the providers,
and then calls `apply_claim`. Locks are taken in one order: providers by id, usages by provider and
class, consumers. Capacity stands in the WHERE of the statement that adds to a usage, so unrelated
claims on one provider never fail because of one another.
Source: spec/rest-api.md 10.6, spec/commit-rules.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import BigInteger, Integer, and_, bindparam, delete, func, or_, select, update

from berth.model.consumer import ConsumerWrite
from berth.model.errors import (
    BerthError,
    CapacityExceeded,
    ConsumerRace,
    LostRace,
    NoInventory,
    UnitViolation,
    UnknownClassInAllocation,
    UnknownProviderInAllocation,
)
from berth.model.ids import ClassId, ConsumerUUID, Generation, ProviderId, ProviderUUID
from berth.model.inventory import Inventory
from berth.store.consumers import StoredConsumer, read_consumers, write_consumers
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import allocations, berth_usages, inventories, resource_providers
from berth.store.engine.transaction import Tx
from berth.store.expressions import stored_ratio
from berth.store.foreign_writes import ForeignWrite, written_elsewhere
from berth.store.inventories import Key, class_names
from berth.store.lookups import ProviderRow, class_ids, missing, providers_by_uuid

_held = allocations.c
_inv = inventories.c
_usage = berth_usages.c
_provider = resource_providers.c


class Held(NamedTuple):
    """A stored allocation."""

    consumer: ConsumerUUID
    key: Key
    used: int


@dataclass(frozen=True, slots=True)
class Claim:
    """What some consumers shall hold from now on, with everything about it that has been read."""

    writes: Sequence[ConsumerWrite]
    consumers: Mapping[ConsumerUUID, StoredConsumer]
    #: Every provider that a new allocation names.
    providers: Mapping[ProviderUUID, ProviderRow]
    #: Every resource class that a new allocation names.
    classes: Mapping[str, ClassId]
    #: What the consumers hold until now.
    held: Sequence[Held]

    def bumped(self) -> set[ProviderId]:
        """The providers whose generation counts up.

        Those that get new allocations, and those that held the old ones of a consumer being
        emptied. COMPAT spec/rest-api.md 1.15: not those that a consumer merely moves away from.
        """
        named = {provider.id for provider in self.providers.values()}
        return named.union(one.key.provider for one in self.let_go())

    def let_go(self) -> list[Held]:
        """What consumers hold that shall hold nothing any more."""
        emptied = {write.uuid for write in self.writes if not write.allocations}
        return [one for one in self.held if one.consumer in emptied]


class _Wanted(NamedTuple):
    """A new allocation."""

    consumer: ConsumerUUID
    provider: ProviderUUID
    resource_class: str
    key: Key
    amount: int


class _Room(NamedTuple):
    """An inventory, what is used of it, its provider's generation, and the one that its sum has."""

    inventory: Inventory
    used: int
    generation: Generation
    known: Generation | None


def read_providers(tx: Tx, writes: Iterable[ConsumerWrite]) -> dict[ProviderUUID, ProviderRow]:
    """The providers that the new allocations name.

    Raises:
        UnknownProviderInAllocation: one does not exist.
    """
    named = list(dict.fromkeys(uuid for write in writes for uuid in write.allocations))
    found = providers_by_uuid(tx, named)
    for uuid in missing(named, found):
        raise UnknownProviderInAllocation(ProviderUUID(uuid))
    return found


def read_classes(tx: Tx, writes: Iterable[ConsumerWrite]) -> dict[str, ClassId]:
    """The resource classes that the new allocations name.

    Raises:
        UnknownClassInAllocation: one does not exist.
    """
    named = {
        name: write.uuid
        for write in writes
        for amounts in write.allocations.values()
        for name in amounts
    }
    found = class_ids(tx, named)
    for name in missing(named, found):
        raise UnknownClassInAllocation(named[name], name)
    return found


_HELD_BY: Final = select(
    _held.consumer_id, _held.resource_provider_id, _held.resource_class_id, _held.used
).where(_held.consumer_id.in_(bindparam("consumers", expanding=True)))


def read_held(tx: Tx, uuids: Collection[ConsumerUUID]) -> list[Held]:
    """What some consumers hold."""
    return [
        Held(consumer, Key(provider, resource_class), used)
        for chunk in tx.chunks(uuids)
        for consumer, provider, resource_class, used in tx.rows(_HELD_BY, {"consumers": chunk})
    ]


def apply_claim(tx: Tx, claim: Claim, steps: Mapping[ProviderId, int]) -> None:
    """Check the claim against the inventories, and write it.

    The providers of `claim.bumped()` must have been bumped in this transaction: from then on their
    inventories stand still.

    Args:
        steps: by how much providers were bumped whose sums have not got the new generation yet.

    Raises:
        ForeignWrite: another program has moved a provider.
        NoInventory, UnitViolation, CapacityExceeded: for the first amount that has such a fault.
        ConsumerRace, LostRace: somebody else was faster.
    """
    try:
        _apply(tx, claim, steps)
    except (NoInventory, UnitViolation, CapacityExceeded) as refusal:
        _check_unmoved(tx, claim, refusal)
        raise


def _apply(tx: Tx, claim: Claim, steps: Mapping[ProviderId, int]) -> None:
    wanted = _wanted(claim)
    places = {one.key.provider for one in wanted}.union(one.key.provider for one in claim.held)
    rooms, generations = _read_true_rooms(tx, places, steps)
    change = _asked(wanted)
    for old in claim.held:
        change[old.key] -= old.used
    try:
        _check_not_bare(tx, wanted, claim.let_go(), rooms)
        _check_inventories(wanted, rooms, change)
    except NoInventory as refusal:
        _check_known(tx, places - generations.keys(), refusal)
        raise
    moved = {provider: generations[provider] for provider in steps if provider in generations}
    _change_usages(tx, change, rooms, wanted, moved)
    _release(tx, claim.held, claim.consumers)
    _insert_allocations(tx, wanted)
    write_consumers(tx, claim.writes, claim.consumers)


def _check_unmoved(tx: Tx, claim: Claim, refusal: BerthError) -> None:
    """See that the consumers are still what they were when it was read what they hold.

    RACE tests/store/test_claim_races.py: a reshape moved what a consumer held while a claim
    for it waited for the provider; of the old consumer and the new room there was too little, and
    at no moment had that been so.

    Raises:
        ConsumerRace: some are not.
    """
    uuids = [write.uuid for write in claim.writes]
    now = read_consumers(tx, uuids)
    moved = [uuid for uuid in uuids if now.get(uuid) != claim.consumers.get(uuid)]
    if moved:
        raise ConsumerRace(moved) from refusal


def give_back(
    tx: Tx, held: Sequence[Held], consumers: Mapping[ConsumerUUID, StoredConsumer]
) -> None:
    """Take allocations away, and what they used.

    Args:
        consumers: the records of those who hold them, read before; they are the caller's business.

    Raises:
        ForeignWrite: another program has moved a provider.
        ConsumerRace, LostRace: somebody else was faster.
    """
    change: Counter[Key] = Counter()
    for old in held:
        change[old.key] -= old.used
    rooms, _ = _read_true_rooms(tx, {old.key.provider for old in held}, {})
    _change_usages(tx, change, rooms, [], {})
    _release(tx, held, consumers)


# --- Inventories and usages ----------------------------------------------------------------------

_ROOMS: Final = (
    select(
        _inv.resource_provider_id,
        _inv.resource_class_id,
        _usage.used,
        _usage.generation,
        _provider.generation,
        _inv.total,
        _inv.reserved,
        _inv.min_unit,
        _inv.max_unit,
        _inv.step_size,
        _inv.allocation_ratio,
    )
    .join(
        berth_usages,
        and_(
            _usage.resource_provider_id == _inv.resource_provider_id,
            _usage.resource_class_id == _inv.resource_class_id,
        ),
    )
    .join(resource_providers, _provider.id == _inv.resource_provider_id)
    .where(_inv.resource_provider_id.in_(bindparam("providers", expanding=True)))
)

_CAPACITY: Final = (
    select((_inv.total - _inv.reserved) * stored_ratio(_inv.allocation_ratio))
    .where(
        _inv.resource_provider_id == _usage.resource_provider_id,
        _inv.resource_class_id == _usage.resource_class_id,
    )
    .correlate(berth_usages)
    .scalar_subquery()
)
_DELTA: Final = bindparam("delta", type_=BigInteger)

#: The guard of every claim. A change that adds nothing passes even where too much is used already.
_CHANGE_USAGE: Final = (
    update(berth_usages)
    .where(
        _usage.resource_provider_id == bindparam("provider"),
        _usage.resource_class_id == bindparam("resource_class"),
        or_(_DELTA <= 0, _usage.used + _DELTA <= _CAPACITY),
    )
    .values(
        used=_usage.used + _DELTA,
        generation=func.coalesce(bindparam("generation", type_=Integer), _usage.generation),
    )
)


def _wanted(claim: Claim) -> list[_Wanted]:
    return [
        _Wanted(
            write.uuid,
            provider,
            name,
            Key(claim.providers[provider].id, claim.classes[name]),
            amount,
        )
        for write in claim.writes
        for provider, amounts in write.allocations.items()
        for name, amount in amounts.items()
    ]


def _read_rooms(tx: Tx, providers: Collection[ProviderId]) -> dict[Key, _Room]:
    return {
        Key(provider, resource_class): _Room(Inventory(*fields), used, generation, known)
        for chunk in tx.chunks(sorted(providers))
        for provider, resource_class, used, known, generation, *fields in tx.rows(
            _ROOMS, {"providers": chunk}
        )
    }


def _read_true_rooms(
    tx: Tx, providers: Collection[ProviderId], steps: Mapping[ProviderId, int]
) -> tuple[dict[Key, _Room], dict[ProviderId, Generation]]:
    """What some providers have and what is used of it, and their generations.

    Raises:
        ForeignWrite: another program has moved one of them, and may have written allocations.
    """
    rooms = _read_rooms(tx, providers)
    known: dict[ProviderId, int] = {}
    generations: dict[ProviderId, Generation] = {}
    for key, room in rooms.items():
        generations[key.provider] = room.generation
        known[key.provider] = max(
            known.get(key.provider, -1), -1 if room.known is None else room.known
        )
    if foreign := [
        provider
        for provider, generation in generations.items()
        if known[provider] + steps.get(provider, 0) != generation
    ]:
        raise ForeignWrite(foreign)
    return rooms, generations


def _check_known(tx: Tx, providers: Collection[ProviderId], refusal: NoInventory) -> None:
    """See that providers of which nothing is known have not got inventories without berth.

    Raises:
        ForeignWrite: one has.
    """
    if foreign := written_elsewhere(tx, providers):
        raise ForeignWrite(foreign) from refusal


def _check_not_bare(
    tx: Tx, wanted: Sequence[_Wanted], let_go: Iterable[Held], rooms: Mapping[Key, _Room]
) -> None:
    """Refuse providers without inventory of any class that the whole request is about.

    COMPAT spec/rest-api.md 10.6: before anything else, all of them at once, and with the names of
    all these classes, those among them that a consumer lets go.

    Raises:
        NoInventory: there are such providers.
    """
    classes = {one.key.resource_class: one.resource_class for one in wanted}
    gone = {one.key.resource_class for one in let_go} - classes.keys()
    bare = {one.key.provider: one.provider for one in wanted}
    for key in rooms:
        if key.resource_class in classes or key.resource_class in gone:
            bare.pop(key.provider, None)
    if bare:
        raise NoInventory(list(bare.values()), [*classes.values(), *class_names(tx, gone)])


def _check_inventories(
    wanted: Sequence[_Wanted], rooms: Mapping[Key, _Room], change: Mapping[Key, int]
) -> None:
    """Refuse what no amount of free room could make right.

    Of several faults the first one is raised, which may be that an amount exceeds the capacity.

    Raises:
        NoInventory, UnitViolation, CapacityExceeded: for the first amount that has such a fault.
    """
    for place, one in enumerate(wanted):
        fault = _fault_of(one, rooms)
        if fault is not None:
            _refuse_excess(wanted, rooms, change, only_first=place)
            raise fault


def _fault_of(one: _Wanted, rooms: Mapping[Key, _Room]) -> NoInventory | UnitViolation | None:
    if one.key not in rooms:
        return NoInventory([one.provider], [one.resource_class])
    inventory = rooms[one.key].inventory
    if inventory.allows_unit(one.amount):
        return None
    return UnitViolation(
        one.provider,
        one.resource_class,
        asked=one.amount,
        min_unit=inventory.min_unit,
        max_unit=inventory.max_unit,
        step_size=inventory.step_size,
    )


def _change_usages(
    tx: Tx,
    change: Mapping[Key, int],
    rooms: Mapping[Key, _Room],
    wanted: Sequence[_Wanted],
    moved: Mapping[ProviderId, Generation],
) -> None:
    """Add to the sums of usage, or refuse as a whole.

    Args:
        moved: providers of which a sum must get the generation, even where none changes.

    RACE tests/store/test_claim_races.py: the row counts decide; what was read before only names
    the rows that exist (old data may hold allocations of no inventory).
    RACE tests/proof/test_workers.py, MariaDB: which sums have been changed cannot be told from what
    they are; others release what they hold without waiting for the provider. So the sums that have
    not been changed are the ones to judge by.

    Raises:
        CapacityExceeded: one of them has not so much free.
        LostRace: an inventory went at the same time.
    """
    tx.reused.update(key.provider for key in change)
    changing = {key for key in change if change[key] != 0 and key in rooms}
    if missed := moved.keys() - {key.provider for key in changing}:
        changing.update({key.provider: key for key in rooms if key.provider in missed}.values())
    if not changing:
        return
    ordered = sorted(changing)
    counts = tx.change_each(
        _CHANGE_USAGE,
        [
            {
                "provider": key.provider,
                "resource_class": key.resource_class,
                "delta": change.get(key, 0),
                "generation": moved.get(key.provider),
            }
            for key in ordered
        ],
    )
    unchanged = {key for key, count in zip(ordered, counts, strict=True) if not count}
    if unchanged:
        now = _read_rooms(tx, {one.key.provider for one in wanted})
        still = {key: room for key, room in now.items() if key in unchanged}
        _refuse_excess(wanted, still, change, only_first=len(wanted))
        raise LostRace("an inventory")


def _refuse_excess(
    wanted: Sequence[_Wanted],
    rooms: Mapping[Key, _Room],
    change: Mapping[Key, int],
    *,
    only_first: int,
) -> None:
    """Say which of the wanted allocations does not fit, adding them up in the order of the request.

    Args:
        wanted: all of the request.
        rooms: the inventories to judge by, without what the request adds.
        change: by how much the request changes what is used of each.
        only_first: so many of the wanted ones are judged.

    Raises:
        CapacityExceeded: for the first one, with what is asked for up to there.
    """
    # What the consumers give back of each, as a negative number.
    given_back = Counter(change)
    given_back.subtract(_asked(wanted))
    asked: Counter[Key] = Counter()
    for one in wanted[:only_first]:
        asked[one.key] += one.amount
        room, back = rooms.get(one.key), given_back[one.key]
        if room is None or asked[one.key] + back <= 0:
            continue
        if not room.inventory.has_capacity_for(room.used + back + asked[one.key]):
            raise CapacityExceeded(
                one.provider,
                one.resource_class,
                asked=asked[one.key],
                free=max(room.inventory.capacity - room.used - back, 0),
            )


def _asked(wanted: Iterable[_Wanted]) -> Counter[Key]:
    """How much of each inventory is asked for."""
    asked: Counter[Key] = Counter()
    for one in wanted:
        asked[one.key] += one.amount
    return asked


# --- Allocations ---------------------------------------------------------------------------------

_INSERT: Final = insert_of(
    allocations,
    "resource_provider_id",
    "resource_class_id",
    "consumer_id",
    "used",
    "created_at",
)
_RELEASE: Final = delete(allocations).where(
    _held.consumer_id.in_(bindparam("consumers", expanding=True))
)


def _release(
    tx: Tx, held: Sequence[Held], consumers: Mapping[ConsumerUUID, StoredConsumer]
) -> None:
    """Delete the rows of all that some consumers hold.

    RACE tests/store/test_claim_races.py: who holds something without a record is of very old data,
    or was made after the records were read; then there is one by now, which nobody would delete.

    Raises:
        ConsumerRace: a consumer has got or lost allocations since they were read, or was made.
    """
    unrecorded = {one.consumer for one in held} - consumers.keys()
    if unrecorded and (made := read_consumers(tx, unrecorded)):
        raise ConsumerRace(list(made))
    holders = list(dict.fromkeys(one.consumer for one in held))
    deleted = sum(tx.change(_RELEASE, {"consumers": chunk}) for chunk in tx.chunks(holders))
    if deleted != len(held):
        raise ConsumerRace(holders)


def _insert_allocations(tx: Tx, wanted: Sequence[_Wanted]) -> None:
    if not wanted:
        return
    tx.change(
        _INSERT,
        [
            {
                "resource_provider_id": one.key.provider,
                "resource_class_id": one.key.resource_class,
                "consumer_id": one.consumer,
                "used": one.amount,
                "created_at": tx.now,
            }
            for one in wanted
        ],
    )
