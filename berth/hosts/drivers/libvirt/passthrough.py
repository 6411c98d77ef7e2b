# SPDX-License-Identifier: Apache-2.0
"""PCI functions that guests have, and what their consumers hold of them: pure, no I/O.

A guest has a function whether or not its consumer holds it in the service: it got it before the
function was offered there, or the claim was lost. What is missing is added where there is room for
it, and told where there is none; nothing moves.
Source: spec/compute-side.md 4.5, and 8, scenario J.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from berth.hosts.drivers.hosts.moving import put_in
from berth.hosts.drivers.libvirt.xml_documents import Guest
from berth.hosts.plan import Allocations, Amounts, amounts_of
from berth.hosts.provider_tree import ProviderData
from berth.model.inventory import Inventory

#: By consumer, how many functions it has, by the address of their provider and their class.
Assigned = Mapping[str, Counter[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Refused:
    """Functions that a guest has, and that its consumer cannot be given."""

    #: The uuid of their provider.
    provider: str
    resource_class: str
    #: How many of them consumers hold, in all.
    held: int
    #: Who has them, why it cannot hold them, and what to do.
    sentence: str


@dataclass(frozen=True, slots=True)
class Healing:
    """What became of what consumers have and did not hold."""

    has_added: bool
    refused: tuple[Refused, ...]


def assigned_to(
    guests: Iterable[Guest],
    given: Mapping[str, tuple[str, str]],
    migrations: Mapping[str, str],
) -> Assigned:
    """Which of the functions that are given out the consumers have.

    A function is one guest's: of a running one, if a stopped one names it too.

    Args:
        given: by address, as `pci.functions_given` tells.
        migrations: by the uuid of a migration, its instance's: it holds what the guest has here.
    """
    holders = {instance: migration for migration, instance in migrations.items()}
    left = dict(given)
    found: dict[str, Counter[tuple[str, str]]] = {}
    for guest in sorted(guests, key=lambda guest: (not guest.is_running, guest.uuid)):
        if has := Counter(left.pop(one) for one in guest.functions if one in left):
            found[holders.get(guest.uuid, guest.uuid)] = has
    return found


def truth_of(assigned: Assigned) -> dict[str, Counter[str]]:
    """What consumers have of each resource class."""
    truth: dict[str, Counter[str]] = {}
    for consumer, has in assigned.items():
        for (_, resource_class), count in has.items():
            truth.setdefault(consumer, Counter())[resource_class] += count
    return truth


def heal(
    allocations: Allocations,
    assigned: Assigned,
    uuids: Mapping[str, str],
    truth: Mapping[str, Counter[str]],
    *,
    own: Mapping[str, ProviderData],
) -> Healing:
    """Add what consumers have and do not hold, as far as there is room; edited in place.

    Args:
        uuids: of the providers, by address; one that is not there has gone.
        truth: what consumers have; what does not fit is taken out, since nobody is to wait for it.
        own: the providers of the tree, by uuid: what is held of any of them is not missing.
    """
    held = {consumer: amounts_of(allocations[consumer]) for consumer in sorted(allocations)}
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
    for consumer in sorted(has.keys() & held.keys()):
        for key, lacks in _lacking(held[consumer], has[consumer], truth[consumer], own):
            provider, resource_class = key
            holders = {one: of_one[key] for one, of_one in held.items() if key in of_one}
            why = _why_stuck(held[consumer], own)
            stock = Inventory(**own[provider].inventory[resource_class])
            part = 0 if why else _fitting(lacks, stock, holders, consumer)
            if part:
                put_in(allocations[consumer], provider, resource_class, part)
                held[consumer] = amounts_of(allocations[consumer])
                has_added = True
            if part < lacks:
                truth[consumer][resource_class] -= lacks - part
                too_many = [one for one in holders if holders[one] > has.get(one, {}).get(key, 0)]
                why = why or _why_no_room(stock, holders, too_many)
                what = f"{lacks - part} more {resource_class} of {own[provider].name}"
                refused.append(
                    Refused(
                        provider,
                        resource_class,
                        sum(holders.values()),
                        f"the guest of consumer {consumer} has {what} than it holds, and {why}",
                    )
                )
    return Healing(has_added, tuple(refused))


def _lacking(
    held: Amounts, has: Amounts, truth: Mapping[str, int], own: Mapping[str, ProviderData]
) -> Iterator[tuple[tuple[str, str], int]]:
    """What a consumer has and does not hold, by provider and resource class."""
    missing = Counter(truth)
    for (provider, resource_class), amount in held.items():
        if provider in own:
            missing[resource_class] -= amount
    for key, count in sorted(has.items()):
        lacks = min(count - held.get(key, 0), missing[key[1]])
        if lacks > 0:
            missing[key[1]] -= lacks
            yield key, lacks


def _fitting(lacks: int, stock: Inventory, holders: Mapping[str, int], consumer: str) -> int:
    """How many of those that it lacks a consumer can hold besides."""
    free = stock.capacity - sum(holders.values())
    holds = holders.get(consumer, 0)
    fitting = (part for part in range(min(lacks, free), 0, -1) if stock.allows_unit(holds + part))
    return next(fitting, 0)


def _why_stuck(held: Amounts, own: Mapping[str, ProviderData]) -> str:
    """That what a consumer holds cannot be written anew, and what to do; or nothing."""
    for (provider, name), amount in held.items():
        record = own[provider].inventory.get(name) if provider in own else None
        if record is not None and not (stock := Inventory(**record)).allows_unit(amount):
            return (
                f"it holds {amount} {name} of {own[provider].name}, where one may hold from "
                f"{stock.min_unit} to {stock.max_unit} in steps of {stock.step_size}: correct that"
            )
    return ""


def _why_no_room(stock: Inventory, holders: Mapping[str, int], too_many: Sequence[str]) -> str:
    """Who holds the places, and what to do."""
    told = ", ".join(f"consumer {one} holds {amount}" for one, amount in holders.items())
    remedies = [f"take from {one} what its guest does not have" for one in too_many]
    if stock.reserved:
        remedies.append(f"reserve less than {stock.reserved} of it")
    return (
        f"no more fit: {stock.capacity} can be held, and {told or 'none are'}; "
        f"{' or '.join(remedies) or 'see how much of it may be held'}"
    )
