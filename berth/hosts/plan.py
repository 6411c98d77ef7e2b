# SPDX-License-Identifier: Apache-2.0
"""Plans the steps from the service's tree to the tree that a driver wants: pure, no I/O.

Only the providers of one tree are compared, and only differences become steps. Anything that a
driver leaves as it was (other agents' children, a sharing provider) is not in the plan.
Source: spec/compute-side.md 2.7 and 9.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from berth.hosts.errors import ActualUsage, BadProviderTree
from berth.hosts.provider_tree import Inventory, ProviderData, ProviderTree
from berth.hosts.tree_faults import Tree, faults_of_tree, name_of
from berth.model import inventory as model
from berth.model import names
from berth.model.inventory import MAX_INT

#: The allocations of consumers by UUID, as `GET /allocations/{consumer}` shows them.
Allocations = dict[str, dict[str, Any]]

#: The allocations of one consumer, by provider and resource class.
Amounts = dict[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to send, in the order of the fields. Providers are identified by UUID."""

    #: New providers, parents first.
    created: tuple[ProviderData, ...] = ()
    #: Providers with a new name or parent.
    renamed: tuple[ProviderData, ...] = ()
    #: New providers get these before they offer anything.
    aggregates: tuple[ProviderData, ...] = ()
    traits: tuple[ProviderData, ...] = ()
    #: Providers whose inventory changes; deleted ones get an empty inventory.
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    #: Consumers whose allocations change; None if nothing moves.
    allocations: Allocations | None = None
    #: Providers to delete, children first.
    deleted: tuple[ProviderData, ...] = ()

    @property
    def is_reshape(self) -> bool:
        """Whether allocations move."""
        return bool(self.allocations)

    def __len__(self) -> int:
        """The number of changes; 0 if nothing differs."""
        of_providers = (self.created, self.renamed, self.aggregates, self.traits, self.deleted)
        return sum(map(len, of_providers)) + len(self.inventories) + len(self.allocations or ())


@dataclass(frozen=True, slots=True)
class Moves:
    """What is to become of the allocations of a tree's consumers.

    Attributes:
        allocations: the wanted ones; None: nothing moves.
        actual_usage: consumers whose allocations are to grow, with their complete usage of those
            resource classes in the tree.
        may_move: whether consumers may have less on a provider than before.
        may_shrink: whether the consumers in `actual_usage` may have less than before.
    """

    allocations: Allocations | None = None
    actual_usage: ActualUsage = field(default_factory=dict)
    may_move: bool = True
    may_shrink: bool = False


def make_plan(
    old: ProviderTree,
    new: ProviderTree,
    root: str,
    *,
    current: Allocations | None = None,
    moves: Moves = Moves(),
    unknown_traits: Set[str] = frozenset(),
) -> Plan:
    """Compare the current tree of a root with the wanted one.

    Args:
        old, new: forests that contain the root; providers outside of its tree are ignored.
        current: the current allocations of the tree's consumers; required if some are wanted.
        unknown_traits: traits that the service did not know when they were looked up; they are not
            added, but providers that already have the trait keep it.

    Raises:
        BadProviderTree: the service would refuse the tree, or a consumer would gain or lose
            something.
    """
    before = _tree_of(old, root)
    after = {
        uuid: data._replace(traits=data.traits - (unknown_traits - _traits_of(before, uuid)))
        for uuid, data in _tree_of(new, root).items()
    }
    faults = [*faults_of_tree(old, new, root, before, after)]
    moved = None
    if moves.allocations is not None:
        malformed = [*_faults_of_form(moves.allocations, moves.actual_usage)]
        if not malformed:
            current = current or {}
            wanted = {consumer: _parts_of(body) for consumer, body in moves.allocations.items()}
            moved = _moved(current, wanted)
            # Invalid records say nothing about the capacity.
            room = [] if faults else [*_faults_of_room(before, after, current, wanted, moved)]
            faults += [*_faults_of_moves({**before, **after}, current, wanted, moves), *room]
        faults += malformed
    if faults:
        raise BadProviderTree(faults)
    # A provider that was created after the tree was read is not one that the driver removed.
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
    """The providers of a tree by UUID, parents first."""
    if not forest.exists(root):
        return {}
    return {uuid: forest.data(uuid) for uuid in forest.get_provider_uuids(root)}


def _traits_of(tree: Mapping[str, ProviderData], uuid: str) -> Set[str]:
    return tree[uuid].traits if uuid in tree else frozenset()


def _place(data: ProviderData) -> tuple[str, str | None]:
    return data.name, data.parent_uuid


def _changed(
    before: Mapping[str, ProviderData], after: Mapping[str, ProviderData], part: str
) -> Iterator[ProviderData]:
    """Providers whose field differs, children first; new providers if the field is not empty."""
    for uuid, data in reversed(list(after.items())):
        was = getattr(before[uuid], part) if uuid in before else type(getattr(data, part))()
        if getattr(data, part) != was:
            yield data


def _moved(current: Allocations, wanted: Allocations) -> Allocations:
    """The consumers whose allocations differ; the other fields of their bodies are as they were
    read.
    """
    return {
        consumer: {**current[consumer], **body}
        for consumer, body in wanted.items()
        if consumer in current and amounts_of(body) != amounts_of(current[consumer])
    }


def _parts_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the allocations without empty parts: the service refuses those."""
    return {
        "allocations": {
            provider: copy.deepcopy(part)
            for provider, part in body["allocations"].items()
            if part["resources"]
        }
    }


def amounts_of(body: Mapping[str, Any]) -> Amounts:
    """A consumer's allocations, by provider and resource class."""
    return {
        (provider, resource_class): amount
        for provider, part in body["allocations"].items()
        for resource_class, amount in part.get("resources", {}).items()
    }


# --- What of the allocations cannot be -----------------------------------------------------------


def _faults_of_form(allocations: Allocations, actual_usage: ActualUsage) -> Iterator[str]:
    """Check the form of a driver's allocations, so that the rest of this module can rely on it."""
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
                        f"consumer {consumer} is to have {amount!r} {resource_class} of "
                        f"{provider}, but amounts are whole numbers from 1 to {MAX_INT}"
                    )
    for consumer, amounts in actual_usage.items():
        for resource_class, amount in amounts.items():
            if type(amount) is not int or not 0 <= amount <= MAX_INT:
                yield (
                    f"consumer {consumer} is said to use {amount!r} {resource_class}, which must "
                    f"be a whole number from 0 to {MAX_INT}"
                )


def _faults_of_moves(
    own: Tree, current: Allocations, wanted: Allocations, moves: Moves
) -> Iterator[str]:
    """Check that each consumer's total per class stays as it was, or becomes the actual usage."""
    for consumer in sorted(current.keys() - wanted.keys()):
        yield (
            f"consumer {consumer} is missing from the allocations, which must contain every "
            f"consumer"
        )
    for consumer in sorted(wanted.keys() - current.keys()):
        yield f"consumer {consumer} has no allocations in the tree, and cannot get any"
    for consumer in sorted(current.keys() & wanted.keys()):
        was, becomes = amounts_of(current[consumer]), amounts_of(wanted[consumer])
        faults = [
            *_faults_of_others(was, becomes, own),
            *_faults_of_sums(
                _within(was, own),
                _within(becomes, own),
                moves.actual_usage.get(consumer, {}),
                may_shrink=moves.may_shrink,
            ),
        ]
        if not moves.may_move:
            faults += _faults_of_moving(was, becomes, own)
        yield from (f"consumer {consumer} {fault}" for fault in faults)


def _faults_of_others(was: Amounts, becomes: Amounts, own: Tree) -> Iterator[str]:
    """Check that allocations outside of the tree stay as they are."""
    for key in sorted(was.keys() | becomes.keys()):
        provider, resource_class = key
        if provider not in own and was.get(key) != becomes.get(key):
            yield (
                f"holds {was.get(key, 0)} {resource_class} of {provider}, which is not in this "
                f"tree, and would have {becomes.get(key, 0)}"
            )


def _faults_of_sums(
    was: Amounts, becomes: Amounts, actual_usage: Mapping[str, int], *, may_shrink: bool
) -> Iterator[str]:
    sums, then = sums_of(was), sums_of(becomes)
    really = {_standard(name): amount for name, amount in actual_usage.items()}
    for resource_class in sorted(sums.keys() | then.keys() | really.keys()):
        right = really.get(resource_class, sums[resource_class])
        if not may_shrink:
            right = max(right, sums[resource_class])
        if then[resource_class] != right:
            has = f", actually uses {right}" if right != sums[resource_class] else ""
            yield (
                f"holds {sums[resource_class]} {resource_class}{has} and would have "
                f"{then[resource_class]}"
            )


def _faults_of_moving(was: Amounts, becomes: Amounts, own: Tree) -> Iterator[str]:
    for (provider, resource_class), amount in sorted(_within(was, own).items()):
        if (left := becomes.get((provider, resource_class), 0)) < amount:
            yield (
                f"would hold {left} {resource_class} of {name_of(provider, own)} instead of "
                f"{amount}, but allocations move only at the start of the agent"
            )


def _faults_of_room(
    before: Tree, after: Tree, current: Allocations, wanted: Allocations, moved: Allocations
) -> Iterator[str]:
    """Check that there is inventory for all allocations, and capacity for those that grow.

    A provider that was over capacity before may stay so, since nothing is claimed on it.
    """
    took = {key: sum(by.values()) for key, by in _holders(current).items()}
    for key, by in sorted(_holders(wanted).items()):
        provider, resource_class = key
        if provider not in before and provider not in after:
            continue
        amount = sum(by.values())
        holders = f"by {', '.join(f'consumer {name} {part}' for name, part in by.items())}"
        if provider not in after:
            yield (
                f"{before[provider].name} would be deleted with {amount} {resource_class} "
                f"allocated on it: {holders}"
            )
            continue
        data = after[provider]
        record = data.inventory.get(resource_class)
        if record is None:
            yield f"{data.name} has no {resource_class}, but {amount} would be allocated: {holders}"
            continue
        stock = model.Inventory(**record)
        if amount > took.get(key, 0) and not stock.has_capacity_for(amount):
            yield (
                f"{data.name} has {stock.capacity} {resource_class}, but {amount} are needed: "
                f"{holders}"
            )
        for consumer in by.keys() & moved.keys():
            if not stock.allows_unit(by[consumer]):
                yield (
                    f"consumer {consumer} would have {by[consumer]} {resource_class} of "
                    f"{data.name}, where one consumer may have {stock.min_unit} to "
                    f"{stock.max_unit} "
                    f"in steps of {stock.step_size}"
                )


def _holders(allocations: Allocations) -> dict[tuple[str, str], dict[str, int]]:
    """The amount of each consumer, by provider and resource class."""
    holders: dict[tuple[str, str], dict[str, int]] = {}
    for consumer, body in sorted(allocations.items()):
        for key, amount in amounts_of(body).items():
            holders.setdefault(key, {})[consumer] = amount
    return holders


def sums_of(amounts: Amounts) -> Counter[str]:
    """A consumer's total of each resource class, a custom class under its standard name.

    A class that became standard loses its prefix, and its allocations count as the same class.
    """
    sums: Counter[str] = Counter()
    for (_, resource_class), amount in amounts.items():
        sums[_standard(resource_class)] += amount
    return sums


def _standard(resource_class: str) -> str:
    return resource_class.removeprefix(names.CUSTOM_PREFIX)


def _within(amounts: Amounts, own: Tree) -> Amounts:
    return {key: amount for key, amount in amounts.items() if key[0] in own}
