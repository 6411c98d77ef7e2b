# SPDX-License-Identifier: Apache-2.0
"""PCI functions that guests have, and what their consumers hold of them: pure, no I/O.

A guest has a function whether or not its consumer holds it in the service: it got it before the
function was offered there, or the claim was lost. What is missing is added; nothing moves.
Source: spec/compute-side.md 4.5, and 8, scenario J.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from berth.compute.drivers.hosts.moving import put_in
from berth.compute.drivers.libvirt.xml_documents import Guest
from berth.compute.errors import Truth
from berth.compute.plan import Allocations, amounts_of

#: By consumer, how many functions it has, by the address of their provider and their class.
Assigned = Mapping[str, Counter[tuple[str, str]]]


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


def truth_of(assigned: Assigned) -> Truth:
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
    *,
    own: Collection[str],
) -> bool:
    """Add what consumers have and do not hold; edited in place. Whether something was missing.

    Args:
        uuids: of the providers, by address; one that is not there has gone.
        own: the providers of the tree: what is held of any of them is not missing.
    """
    truth = truth_of(assigned)
    has_healed = False
    for consumer in sorted(assigned.keys() & allocations.keys()):
        held = amounts_of(allocations[consumer])
        missing = Counter(truth[consumer])
        for (provider, resource_class), amount in held.items():
            if provider in own:
                missing[resource_class] -= amount
        for (address, resource_class), count in sorted(assigned[consumer].items()):
            if address not in uuids:
                continue
            lacks = count - held.get((uuids[address], resource_class), 0)
            if (part := min(lacks, missing[resource_class])) > 0:
                missing[resource_class] -= part
                put_in(allocations[consumer], uuids[address], resource_class, part)
                has_healed = True
    return has_healed
