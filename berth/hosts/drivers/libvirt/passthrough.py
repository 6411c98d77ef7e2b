# SPDX-License-Identifier: Apache-2.0
"""PCI functions that guests use, and their consumers' allocations: pure, no I/O.

A guest uses a function whether or not it is allocated to its consumer: the function was assigned
before it was offered in the service, or the claim was lost. What is missing is added if there is
room for it, and reported otherwise; nothing moves.
Source: spec/compute-side.md 4.5, and 8, scenario J.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from berth.hosts.drivers.host_model.moving import put_in
from berth.hosts.drivers.libvirt.xml_documents import Guest
from berth.hosts.plan import Allocations, Amounts, amounts_of
from berth.hosts.provider_tree import ProviderData
from berth.model.inventory import Inventory

#: The number of each consumer's functions, by the address of their provider and their class.
Assigned = Mapping[str, Counter[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Refused:
    """Functions that a guest uses, and that cannot be allocated to its consumer."""

    #: The UUID of their provider.
    provider: str
    resource_class: str
    #: The total that is allocated to consumers.
    allocated: int
    #: Who uses them, why they cannot be allocated, and what to do.
    sentence: str


@dataclass(frozen=True, slots=True)
class Healing:
    """The result of adding what was missing."""

    has_added: bool
    refused: tuple[Refused, ...]


def assigned_to(
    guests: Iterable[Guest],
    given: Mapping[str, tuple[str, str]],
    migrations: Mapping[str, str],
) -> Assigned:
    """The functions on offer that the consumers use.

    A function belongs to one guest: to the running one, if a stopped one names it too.

    Args:
        given: by address, from `pci.functions_given`.
        migrations: the instance of each migration, by UUID: the migration has the allocation here.
    """
    holders = {instance: migration for migration, instance in migrations.items()}
    left = dict(given)
    assigned: dict[str, Counter[tuple[str, str]]] = {}
    for guest in sorted(guests, key=lambda guest: (not guest.is_running, guest.uuid)):
        if has := Counter(left.pop(address) for address in guest.functions if address in left):
            assigned[holders.get(guest.uuid, guest.uuid)] = has
    return assigned


def actual_usage_of(assigned: Assigned) -> dict[str, Counter[str]]:
    """The total of each resource class that consumers use."""
    actual_usage: dict[str, Counter[str]] = {}
    for consumer, has in assigned.items():
        for (_, resource_class), count in has.items():
            actual_usage.setdefault(consumer, Counter())[resource_class] += count
    return actual_usage


def heal(
    allocations: Allocations,
    assigned: Assigned,
    uuids: Mapping[str, str],
    actual_usage: Mapping[str, Counter[str]],
    *,
    own: Mapping[str, ProviderData],
) -> Healing:
    """Add what is missing to the consumers' allocations, as far as there is room; edits them in
    place.

    Args:
        uuids: the UUIDs of the providers, by address; a provider that is gone is missing.
        actual_usage: what consumers use; what does not fit is removed from it.
        own: the providers of the tree, by UUID: allocations on any of them count.
    """
    amounts = {consumer: amounts_of(allocations[consumer]) for consumer in sorted(allocations)}
    has = {
        consumer: {
            (provider, name): count
            for (address, name), count in of_one.items()
            if (provider := uuids.get(address, "")) in own and name in own[provider].inventory
        }
        for consumer, of_one in assigned.items()
    }
    has_added = False
    refused = []
    for consumer in sorted(has.keys() & amounts.keys()):
        for key, lacks in _lacking(amounts[consumer], has[consumer], actual_usage[consumer], own):
            provider, resource_class = key
            holders = {holder: of_one[key] for holder, of_one in amounts.items() if key in of_one}
            why = _why_stuck(amounts[consumer], own)
            stock = Inventory(**own[provider].inventory[resource_class])
            part = 0 if why else _fitting(lacks, stock, holders, consumer)
            if part:
                put_in(allocations[consumer], provider, resource_class, part)
                amounts[consumer] = amounts_of(allocations[consumer])
                has_added = True
            if part < lacks:
                actual_usage[consumer][resource_class] -= lacks - part
                too_many = [
                    holder
                    for holder in holders
                    if holders[holder] > has.get(holder, {}).get(key, 0)
                ]
                why = why or _why_no_room(stock, holders, too_many)
                missing = f"{lacks - part} more {resource_class} of {own[provider].name}"
                refused.append(
                    Refused(
                        provider,
                        resource_class,
                        sum(holders.values()),
                        f"the guest of consumer {consumer} has {missing} than are allocated to "
                        f"it, and {why}",
                    )
                )
    return Healing(has_added, tuple(refused))


def _lacking(
    amounts: Amounts, has: Amounts, actual_usage: Mapping[str, int], own: Mapping[str, ProviderData]
) -> Iterator[tuple[tuple[str, str], int]]:
    """What a consumer uses without an allocation, by provider and resource class."""
    missing = Counter(actual_usage)
    for (provider, resource_class), amount in amounts.items():
        if provider in own:
            missing[resource_class] -= amount
    for key, count in sorted(has.items()):
        lacks = min(count - amounts.get(key, 0), missing[key[1]])
        if lacks > 0:
            missing[key[1]] -= lacks
            yield key, lacks


def _fitting(lacks: int, stock: Inventory, holders: Mapping[str, int], consumer: str) -> int:
    """How many of the missing functions can be allocated to a consumer."""
    free = stock.capacity - sum(holders.values())
    holds = holders.get(consumer, 0)
    fitting = (part for part in range(min(lacks, free), 0, -1) if stock.allows_unit(holds + part))
    return next(fitting, 0)


def _why_stuck(amounts: Amounts, own: Mapping[str, ProviderData]) -> str:
    """Why a consumer's allocations cannot be rewritten, and what to do; empty if they can."""
    for (provider, name), amount in amounts.items():
        record = own[provider].inventory.get(name) if provider in own else None
        if record is not None and not (stock := Inventory(**record)).allows_unit(amount):
            return (
                f"it holds {amount} {name} of {own[provider].name}, where one consumer may have "
                f"{stock.min_unit} to {stock.max_unit} in steps of {stock.step_size}: correct "
                f"its allocation"
            )
    return ""


def _why_no_room(stock: Inventory, holders: Mapping[str, int], too_many: Sequence[str]) -> str:
    """Who has the allocations, and what to do."""
    holdings = ", ".join(
        f"consumer {consumer} holds {amount}" for consumer, amount in holders.items()
    )
    remedies = [f"take from {consumer} what its guest does not use" for consumer in too_many]
    if stock.reserved:
        remedies.append(f"reserve less than {stock.reserved} of it")
    return (
        f"no more fit: {stock.capacity} can be allocated, and {holdings or 'none are allocated'}; "
        f"{' or '.join(remedies) or 'check the inventory'}"
    )
