# SPDX-License-Identifier: Apache-2.0
"""From what the service has and what a driver wants to the steps between: pure, no I/O.

Only the providers of one tree are compared, and of those only what differs becomes a step: what a
driver leaves as it found it (other agents' children, a sharing provider) is never named.
Source: spec/compute-side.md 2.7 and 9.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from berth.hosts.errors import BadProviderTree, Truth
from berth.hosts.judging import Tree, faults_of_tree, name_of
from berth.hosts.provider_tree import Inventory, ProviderData, ProviderTree
from berth.model import inventory as model
from berth.model import names
from berth.model.inventory import MAX_INT

#: Consumers' uuids, and their allocations as `GET /allocations/{consumer}` shows them.
Allocations = dict[str, dict[str, Any]]

#: What one consumer holds, by provider and resource class.
Amounts = dict[tuple[str, str], int]


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

    def __len__(self) -> int:
        """How many things are sent: 0 where nothing differs."""
        return (
            len(self.created)
            + len(self.renamed)
            + len(self.aggregates)
            + len(self.traits)
            + len(self.inventories)
            + len(self.allocations or ())
            + len(self.deleted)
        )


def make_plan(
    old: ProviderTree,
    new: ProviderTree,
    root: str,
    *,
    held: Allocations | None = None,
    allocations: Allocations | None = None,
    truth: Truth | None = None,
    may_move: bool = True,
    unknown_traits: Set[str] = frozenset(),
    may_shrink: bool = False,
) -> Plan:
    """Compare the tree of a root as it is with how it should be.

    Args:
        old, new: forests that have the root; what does not stand below it is not looked at.
        held: what the consumers of the tree hold now; needed with `allocations`.
        allocations: what they are to hold; None: nothing is moved.
        truth: consumers that are to hold more than they do, and all that they then hold of these
            resource classes in the tree.
        may_move: whether consumers may hold less of a provider than before.
        unknown_traits: those that the service did not know when it was asked; nobody is given
            them, and who has them all the same keeps them.
        may_shrink: whether those in `truth` may hold less than before.

    Raises:
        BadProviderTree: the service would refuse it, or consumers would gain or lose something.
    """
    before = _tree_of(old, root)
    after = {
        uuid: data._replace(traits=data.traits - (unknown_traits - _traits_of(before, uuid)))
        for uuid, data in _tree_of(new, root).items()
    }
    faults = [*faults_of_tree(old, new, root, before, after)]
    moved = None
    if allocations is not None and not (malformed := [*_faults_of_form(allocations, truth or {})]):
        held = held or {}
        wanted = {consumer: _parts_of(body) for consumer, body in allocations.items()}
        # Records that make no sense say nothing of the room.
        moved = _moved(held, wanted)
        room = [] if faults else [*_faults_of_room(before, after, held, wanted, moved)]
        faults += _faults_of_moves(
            {**before, **after},
            held,
            wanted,
            truth or {},
            may_move=may_move,
            may_shrink=may_shrink,
        )
        faults += room
    elif allocations is not None:
        faults += malformed
    if faults:
        raise BadProviderTree(faults)
    # What came after the tree was handed out is not what a driver has removed.
    gone = [
        data for uuid, data in reversed(before.items()) if uuid not in after and new.has_had(uuid)
    ]
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


def _traits_of(tree: Mapping[str, ProviderData], uuid: str) -> Set[str]:
    return tree[uuid].traits if uuid in tree else frozenset()


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


def _moved(held: Allocations, wanted: Allocations) -> Allocations:
    """The consumers whose allocations differ; the rest of their bodies is as it was read."""
    return {
        consumer: {**held[consumer], **body}
        for consumer, body in wanted.items()
        if consumer in held and amounts_of(body) != amounts_of(held[consumer])
    }


def _parts_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of what is held, without empty parts: the service refuses a provider of whom nothing
    is held any more.
    """
    return {
        "allocations": {
            provider: copy.deepcopy(part)
            for provider, part in body["allocations"].items()
            if part["resources"]
        }
    }


def amounts_of(body: Mapping[str, Any]) -> Amounts:
    """What a consumer holds, by provider and resource class."""
    return {
        (provider, resource_class): amount
        for provider, part in body["allocations"].items()
        for resource_class, amount in part.get("resources", {}).items()
    }


# --- What of the allocations cannot be -----------------------------------------------------------


def _faults_of_form(allocations: Allocations, truth: Truth) -> Iterator[str]:
    """Whatever a driver has put there, the rest of this module can read it afterwards."""
    for consumer, body in allocations.items():
        parts = body.get("allocations") if isinstance(body, Mapping) else None
        if not isinstance(parts, Mapping):
            yield f"consumer {consumer} has {body!r}, and must have allocations by provider"
            continue
        for provider, part in parts.items():
            resources = part.get("resources") if isinstance(part, Mapping) else None
            if not isinstance(resources, Mapping):
                yield (
                    f"consumer {consumer} has {part!r} of {provider}, and must have resources by "
                    f"resource class"
                )
                continue
            for resource_class, amount in resources.items():
                if type(amount) is not int or not 1 <= amount <= MAX_INT:
                    yield (
                        f"consumer {consumer} is to hold {amount!r} {resource_class} of "
                        f"{provider}, and amounts are whole numbers from 1 to {MAX_INT}"
                    )
    for consumer, amounts in truth.items():
        for resource_class, amount in amounts.items():
            if type(amount) is not int or not 0 <= amount <= MAX_INT:
                yield (
                    f"consumer {consumer} is said to have {amount!r} {resource_class}, and must "
                    f"have a whole number from 0 to {MAX_INT}"
                )


def _faults_of_moves(
    own: Tree,
    held: Allocations,
    wanted: Allocations,
    truth: Truth,
    *,
    may_move: bool,
    may_shrink: bool,
) -> Iterator[str]:
    """Everybody holds as much of each class as before, or as much as he really has."""
    for consumer in sorted(held.keys() - wanted.keys()):
        yield f"consumer {consumer} is missing in the allocations; they must name everybody"
    for consumer in sorted(wanted.keys() - held.keys()):
        yield f"consumer {consumer} holds nothing of the tree, and cannot be made to"
    for consumer in sorted(held.keys() & wanted.keys()):
        was, becomes = amounts_of(held[consumer]), amounts_of(wanted[consumer])
        faults = [
            *_faults_of_others(was, becomes, own),
            *_faults_of_sums(
                _within(was, own),
                _within(becomes, own),
                truth.get(consumer, {}),
                may_shrink=may_shrink,
            ),
        ]
        if not may_move:
            faults += _faults_of_moving(was, becomes, own)
        yield from (f"consumer {consumer} {fault}" for fault in faults)


def _faults_of_others(was: Amounts, becomes: Amounts, own: Tree) -> Iterator[str]:
    """What is held elsewhere is the business of others."""
    for key in sorted(was.keys() | becomes.keys()):
        provider, resource_class = key
        if provider not in own and was.get(key) != becomes.get(key):
            yield (
                f"holds {was.get(key, 0)} {resource_class} of {provider}, which is not of this "
                f"tree, and would hold {becomes.get(key, 0)}"
            )


def _faults_of_sums(
    was: Amounts, becomes: Amounts, truth: Mapping[str, int], *, may_shrink: bool
) -> Iterator[str]:
    sums, then = _sums(was), _sums(becomes)
    really = {_standard(name): amount for name, amount in truth.items()}
    for resource_class in sorted(sums.keys() | then.keys() | really.keys()):
        right = really.get(resource_class, sums[resource_class])
        if not may_shrink:
            right = max(right, sums[resource_class])
        if then[resource_class] != right:
            has = f", really has {right}" if right != sums[resource_class] else ""
            yield (
                f"holds {sums[resource_class]} {resource_class}{has} and would hold "
                f"{then[resource_class]}"
            )


def _faults_of_moving(was: Amounts, becomes: Amounts, own: Tree) -> Iterator[str]:
    for (provider, resource_class), amount in sorted(_within(was, own).items()):
        if (left := becomes.get((provider, resource_class), 0)) < amount:
            yield (
                f"would hold {left} {resource_class} of {name_of(provider, own)} instead of "
                f"{amount}, and what is held moves at the start only"
            )


def _faults_of_room(
    before: Tree, after: Tree, held: Allocations, wanted: Allocations, moved: Allocations
) -> Iterator[str]:
    """There is inventory of all that is held, and room where it becomes more.

    A provider that was too full before may stay so: nothing is claimed of it.
    """
    took = {key: sum(by.values()) for key, by in _holders(held).items()}
    for key, by in sorted(_holders(wanted).items()):
        provider, resource_class = key
        if provider not in before and provider not in after:
            continue
        amount = sum(by.values())
        told = f"by {', '.join(f'consumer {name} {part}' for name, part in by.items())}"
        if provider not in after:
            yield (
                f"{before[provider].name} is to go, and {amount} {resource_class} of it would be "
                f"held: {told}"
            )
            continue
        data = after[provider]
        record = data.inventory.get(resource_class)
        if record is None:
            yield f"{data.name} has no {resource_class}, and {amount} would be held: {told}"
            continue
        stock = model.Inventory(**record)
        if amount > took.get(key, 0) and not stock.has_capacity_for(amount):
            yield (
                f"{data.name} has {stock.capacity} {resource_class}, and {amount} are needed: "
                f"{told}"
            )
        for consumer in by.keys() & moved.keys():
            if not stock.allows_unit(by[consumer]):
                yield (
                    f"consumer {consumer} would hold {by[consumer]} {resource_class} of "
                    f"{data.name}, where one may hold from {stock.min_unit} to {stock.max_unit} "
                    f"in steps of {stock.step_size}"
                )


def _holders(allocations: Allocations) -> dict[tuple[str, str], dict[str, int]]:
    """By provider and resource class, who holds how much."""
    holders: dict[tuple[str, str], dict[str, int]] = {}
    for consumer, body in sorted(allocations.items()):
        for key, amount in amounts_of(body).items():
            holders.setdefault(key, {})[consumer] = amount
    return holders


def sums_of(body: Mapping[str, Any]) -> Counter[str]:
    """What a consumer holds of each resource class, a custom class under its standard name.

    A class that became standard loses its prefix, and what is held of it counts as the same.
    """
    return _sums(amounts_of(body))


def _sums(amounts: Amounts) -> Counter[str]:
    sums: Counter[str] = Counter()
    for (_, resource_class), amount in amounts.items():
        sums[_standard(resource_class)] += amount
    return sums


def _standard(resource_class: str) -> str:
    return resource_class.removeprefix(names.CUSTOM_PREFIX)


def _within(amounts: Amounts, own: Tree) -> Amounts:
    return {key: amount for key, amount in amounts.items() if key[0] in own}
