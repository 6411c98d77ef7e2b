# SPDX-License-Identifier: Apache-2.0
"""From what the service has and what a driver wants to the steps between: pure, no I/O.

Only the providers of one tree are compared, and of those only what differs becomes a step: what a
driver leaves as it found it (other agents' children, a sharing provider) is never named.
Source: spec/compute-side.md 2.7 and 9.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from berth.compute.errors import BadProviderTree
from berth.compute.provider_tree import Inventory, ProviderData, ProviderTree
from berth.model import inventory as model
from berth.model import names
from berth.model.inventory import MAX_INT

#: Consumers' uuids, and their allocations as `GET /allocations/{consumer}` shows them.
Allocations = dict[str, dict[str, Any]]

_FIELDS: Final = frozenset(field.name for field in fields(model.Inventory))


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to be sent, in the order of the fields. Providers are named by their uuids."""

    #: Providers that are new, parents first.
    created: tuple[ProviderData, ...] = ()
    #: Providers with another name or parent.
    renamed: tuple[ProviderData, ...] = ()
    #: New providers get theirs before they offer anything.
    aggregates: tuple[ProviderData, ...] = ()
    traits: tuple[ProviderData, ...] = ()
    #: Providers whose inventory changes, the deleted ones with none.
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    #: Consumers that hold something else than before; None where nothing is to be moved.
    allocations: Allocations | None = None
    #: Providers that go, children first.
    deleted: tuple[ProviderData, ...] = ()

    @property
    def is_reshape(self) -> bool:
        """Whether allocations move."""
        return bool(self.allocations)

    def __bool__(self) -> bool:
        """Whether there is anything to send."""
        return bool(
            self.created
            or self.renamed
            or self.aggregates
            or self.traits
            or self.inventories
            or self.allocations
            or self.deleted
        )


def make_plan(
    old: ProviderTree,
    new: ProviderTree,
    root: str,
    *,
    held: Allocations | None = None,
    allocations: Allocations | None = None,
) -> Plan:
    """Compare the tree of a root as it is with how it should be.

    Args:
        old, new: forests that have the root; what does not stand below it is not looked at.
        held: what the consumers of the tree hold now; needed with `allocations`.
        allocations: what they are to hold; None: nothing is moved.

    Raises:
        BadProviderTree: the service would refuse it, or consumers would gain or lose something.
    """
    before = _tree_of(old, root)
    after = _tree_of(new, root)
    faults = [fault for data in after.values() for fault in _faults_of(data)]
    moved = None if allocations is None else _moved(held or {}, allocations)
    if moved and allocations:
        faults += _faults_of_moves(held or {}, moved)
        faults += _faults_of_room(after, allocations, moved)
    if faults:
        raise BadProviderTree(faults)
    gone = [before[uuid] for uuid in reversed(before) if uuid not in after]
    kept = [data for data in after.values() if data.uuid in before]
    return Plan(
        created=tuple(data for data in after.values() if data.uuid not in before),
        renamed=tuple(data for data in kept if _place(data) != _place(before[data.uuid])),
        aggregates=tuple(_changed(before, after, "aggregates")),
        traits=tuple(_changed(before, after, "traits")),
        inventories={
            **{data.uuid: data.inventory for data in _changed(before, after, "inventory")},
            **{data.uuid: {} for data in gone if data.inventory},
        },
        allocations=moved,
        deleted=tuple(gone),
    )


def _tree_of(forest: ProviderTree, root: str) -> dict[str, ProviderData]:
    """The providers of a tree by uuid, parents first."""
    if not forest.exists(root):
        return {}
    return {uuid: forest.data(uuid) for uuid in forest.get_provider_uuids(root)}


def _place(data: ProviderData) -> tuple[str, str | None]:
    return data.name, data.parent_uuid


def _changed(
    before: Mapping[str, ProviderData], after: Mapping[str, ProviderData], what: str
) -> Iterator[ProviderData]:
    """Providers that differ in a field, children first; new ones where they have any of it."""
    for uuid, data in reversed(list(after.items())):
        was = getattr(before[uuid], what) if uuid in before else type(getattr(data, what))()
        if getattr(data, what) != was:
            yield data


def _moved(held: Allocations, allocations: Allocations) -> Allocations:
    """The consumers whose allocations differ, with the empty parts left out."""
    wanted = {consumer: _without_empty_parts(body) for consumer, body in allocations.items()}
    return {
        consumer: body
        for consumer, body in wanted.items()
        if consumer not in held or amounts_of(body) != amounts_of(held[consumer])
    }


def _without_empty_parts(body: Mapping[str, Any]) -> dict[str, Any]:
    """The service refuses a provider of whom nothing is held any more."""
    made = copy.deepcopy(dict(body))
    made["allocations"] = {
        provider: part for provider, part in made["allocations"].items() if part.get("resources")
    }
    return made


def amounts_of(body: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """What a consumer holds, by provider and resource class."""
    return {
        (provider, resource_class): amount
        for provider, part in body["allocations"].items()
        for resource_class, amount in part.get("resources", {}).items()
    }


# --- What the service would refuse ----------------------------------------------------------------


def _faults_of(data: ProviderData) -> Iterator[str]:
    if not 1 <= len(data.name) <= names.PROVIDER_NAME_LENGTH_MAX:
        yield (
            f"the name of provider {data.uuid} has {len(data.name)} characters; 1 to "
            f"{names.PROVIDER_NAME_LENGTH_MAX} are possible"
        )
    for resource_class, record in data.inventory.items():
        if not names.is_class_name(resource_class):
            yield f"{data.name} has inventory of {resource_class!r}, which is no resource class"
        yield from (
            f"{data.name}, {resource_class}: {fault}" for fault in _faults_of_record(record)
        )
    for trait in sorted(data.traits):
        if not names.is_class_name(trait) or len(trait) > names.NAME_LENGTH_MAX:
            yield f"{data.name} has {trait!r}, which is no trait"


def _faults_of_record(record: Mapping[str, Any]) -> Iterator[str]:
    if unknown := record.keys() - _FIELDS:
        yield f"there is no field {', '.join(sorted(unknown))} in an inventory record"
    if "total" not in record:
        yield "total is missing"
    for name, value in record.items():
        least = 0 if name == "reserved" else 1
        if name == "allocation_ratio":
            if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
                yield f"allocation_ratio is {value!r}, and must be a number above 0"
        elif name in _FIELDS and (type(value) is not int or not least <= value <= MAX_INT):
            yield f"{name} is {value!r}, and must be a whole number from {least} to {MAX_INT}"
    total, reserved = record.get("total"), record.get("reserved", 0)
    if type(total) is int and type(reserved) is int and reserved > total:
        yield f"reserved is {reserved}, more than the total of {total}"


def _faults_of_moves(held: Allocations, moved: Allocations) -> Iterator[str]:
    """Whoever is moved holds as much of each class as before."""
    for consumer, body in moved.items():
        for part, resources in body["allocations"].items():
            for resource_class, amount in resources["resources"].items():
                if type(amount) is not int or amount < 1:
                    yield (
                        f"consumer {consumer} is to hold {amount!r} {resource_class} of {part}, "
                        f"and amounts are whole numbers from 1"
                    )
        if consumer in held:
            was, becomes = sums_of(held[consumer]), sums_of(body)
            for resource_class in sorted(was.keys() | becomes.keys()):
                if was[resource_class] != becomes[resource_class]:
                    yield (
                        f"consumer {consumer} holds {was[resource_class]} {resource_class} and "
                        f"would hold {becomes[resource_class]}"
                    )


def _faults_of_room(
    after: Mapping[str, ProviderData], allocations: Allocations, moved: Allocations
) -> Iterator[str]:
    """Where consumers are moved to there is room for them, and for who was there before."""
    taken: Counter[tuple[str, str]] = Counter()
    for body in allocations.values():
        taken.update(amounts_of(body))
    newly = {key for body in moved.values() for key in amounts_of(body)}
    for provider, resource_class in sorted(key for key in newly if key[0] in after):
        data = after[provider]
        amount = taken[provider, resource_class]
        record = data.inventory.get(resource_class)
        if record is None:
            yield f"{data.name} has no {resource_class}, and consumers would hold {amount} of it"
        elif not (stock := model.Inventory(**record)).has_capacity_for(amount):
            yield f"{data.name} has {stock.capacity} {resource_class}, and {amount} are needed"


def sums_of(body: Mapping[str, Any]) -> Counter[str]:
    """What a consumer holds of each resource class, a custom class under its standard name.

    A class that became standard loses its prefix, and what is held of it counts as the same.
    """
    sums: Counter[str] = Counter()
    for (_, resource_class), amount in amounts_of(body).items():
        sums[resource_class.removeprefix(names.CUSTOM_PREFIX)] += amount
    return sums
