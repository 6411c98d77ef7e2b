# SPDX-License-Identifier: Apache-2.0
"""Checks a claim against the inventories of its providers, and reports the first error.

Clients see the order of the checks. Source: spec/rest-api.md 10.6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from berth.model.errors import CapacityExceeded, NoInventory, UnitViolation
from berth.model.ids import ConsumerUUID, ProviderId, ProviderUUID
from berth.store.claim_reads import Room, StoredAllocation
from berth.store.engine.transaction import Tx
from berth.store.foreign_writes import ForeignWrite, written_elsewhere
from berth.store.inventories import Key, class_names


class Wanted(NamedTuple):
    """A new allocation."""

    consumer: ConsumerUUID
    provider: ProviderUUID
    resource_class: str
    key: Key
    amount: int


def sums_of(wanted: Iterable[Wanted]) -> Counter[Key]:
    """The amount requested from each inventory."""
    sums: Counter[Key] = Counter()
    for allocation in wanted:
        sums[allocation.key] += allocation.amount
    return sums


def check_known(tx: Tx, providers: Collection[ProviderId], refusal: NoInventory) -> None:
    """Check that no other program has added inventories to providers that seem to have none.

    Raises:
        ForeignWrite: one has.
    """
    if foreign := written_elsewhere(tx, providers):
        raise ForeignWrite(foreign) from refusal


def check_not_bare(
    tx: Tx,
    wanted: Sequence[Wanted],
    released: Iterable[StoredAllocation],
    rooms: Mapping[Key, Room],
) -> None:
    """Refuse providers that have no inventory of any class in the whole request.

    COMPAT spec/rest-api.md 10.6: this check comes first and reports all such providers at once,
    with the names of all these classes, including those that a consumer releases.

    Raises:
        NoInventory: there are such providers.
    """
    classes = {each.key.resource_class: each.resource_class for each in wanted}
    only_released = {each.key.resource_class for each in released} - classes.keys()
    bare = {each.key.provider: each.provider for each in wanted}
    for key in rooms:
        if key.resource_class in classes or key.resource_class in only_released:
            bare.pop(key.provider, None)
    if bare:
        names = [*classes.values(), *class_names(tx, only_released)]
        raise NoInventory(list(bare.values()), names)


def check_inventories(
    wanted: Sequence[Wanted], rooms: Mapping[Key, Room], change: Mapping[Key, int]
) -> None:
    """Refuse amounts that no free capacity could satisfy.

    Of several errors the first is raised, which may be that an amount exceeds the capacity.

    Raises:
        NoInventory, UnitViolation, CapacityExceeded: for the first amount with such an error.
    """
    for place, allocation in enumerate(wanted):
        fault = _fault_of(allocation, rooms)
        if fault is not None:
            refuse_excess(wanted, rooms, change, only_first=place)
            raise fault


def _fault_of(allocation: Wanted, rooms: Mapping[Key, Room]) -> NoInventory | UnitViolation | None:
    if allocation.key not in rooms:
        return NoInventory([allocation.provider], [allocation.resource_class])
    inventory = rooms[allocation.key].inventory
    if inventory.allows_unit(allocation.amount):
        return None
    return UnitViolation(
        allocation.provider,
        allocation.resource_class,
        asked=allocation.amount,
        min_unit=inventory.min_unit,
        max_unit=inventory.max_unit,
        step_size=inventory.step_size,
    )


def refuse_excess(
    wanted: Sequence[Wanted],
    rooms: Mapping[Key, Room],
    change: Mapping[Key, int],
    *,
    only_first: int,
) -> None:
    """Refuse the first allocation that does not fit, adding them up in the order of the request.

    Args:
        wanted: all allocations of the request.
        rooms: the inventories to check against, not including the request.
        change: the change that the request makes to each usage.
        only_first: how many of the allocations to check.

    Raises:
        CapacityExceeded: for the first one, with the amount requested up to and including it.
    """
    # The amounts that the consumers release, as negative numbers.
    given_back = Counter(change)
    given_back.subtract(sums_of(wanted))
    asked: Counter[Key] = Counter()
    for allocation in wanted[:only_first]:
        key = allocation.key
        asked[key] += allocation.amount
        room, back = rooms.get(key), given_back[key]
        if room is None or asked[key] + back <= 0:
            continue
        if not room.inventory.has_capacity_for(room.used + back + asked[key]):
            raise CapacityExceeded(
                allocation.provider,
                allocation.resource_class,
                asked=asked[key],
                free=max(room.inventory.capacity - room.used - back, 0),
            )
