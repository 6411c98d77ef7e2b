# SPDX-License-Identifier: Apache-2.0
"""Moves allocations when inventory moves between providers: pure, no I/O.

A consumer with a known NUMA placement gets its shares there. The others follow, the largest first:
each completely on the first node with room for all that it moves; those for which no node has room
are spread over the remaining capacity. Each consumer's totals always stay the same. Whether
everything fits in the end is not checked here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.hosts.drivers.host_model.options import Placement
from berth.hosts.errors import ReshapeFailed
from berth.hosts.plan import Allocations, amounts_of
from berth.model.inventory import Inventory

#: The NUMA nodes of a consumer; None if unknown.
Placements = Callable[[str], Placement | None]


@dataclass(frozen=True, slots=True)
class Target:
    """A provider that receives inventory of one class."""

    uuid: str
    name: str
    #: Its NUMA node; -1: the whole host.
    node: int
    stock: Inventory


@dataclass(frozen=True, slots=True)
class Move:
    """Inventory of one class that moves from some providers to others."""

    resource_class: str
    #: The UUIDs of the providers that lose it.
    sources: tuple[str, ...]
    #: In ascending order of their NUMA nodes; at least one.
    targets: tuple[Target, ...]


#: The amounts that one consumer moves, by move.
Needs = Mapping[Move, int]


def allocated_on(allocations: Allocations, provider: str, resource_class: str) -> dict[str, int]:
    """The allocations of a provider's class, by consumer UUID, sorted."""
    amounts = {
        consumer: amounts_of(allocations[consumer]).get((provider, resource_class), 0)
        for consumer in sorted(allocations)
    }
    return {consumer: amount for consumer, amount in amounts.items() if amount}


def transfer(
    allocations: Allocations,
    consumer: str,
    resource_class: str,
    *,
    source: str,
    parts: Mapping[str, int],
) -> None:
    """Move a consumer's allocation from one provider to others.

    Args:
        parts: the amount for each provider; their sum is what it had on `source`.
    """
    amount = _take_out(allocations[consumer], source, resource_class)
    assert amount == sum(parts.values()), "a consumer neither gains nor loses"
    for provider, part in parts.items():
        put_in(allocations[consumer], provider, resource_class, part)


def move_allocations(
    allocations: Allocations, moves: Sequence[Move], placements: Placements
) -> None:
    """Move the allocations on the sources to the targets; edits `allocations`.

    Args:
        placements: called only for consumers with more than one possible target.

    Raises:
        ReshapeFailed: consumers are placed on NUMA nodes without a target, or would have more on
            one than it allows for one consumer; all of them are named.
    """
    nodes = {target.node for move in moves for target in move.targets}
    needs = {consumer: _taken_out(body, moves) for consumer, body in allocations.items()}
    placement_of: dict[str, Placement] = {}
    unknown: list[str] = []
    for consumer in sorted(consumer for consumer, of_one in needs.items() if of_one):
        if all(len(move.targets) == 1 for move in needs[consumer]):
            placement_of[consumer] = {}
        elif placement := placements(consumer):
            placement_of[consumer] = placement
        else:
            unknown.append(consumer)
    if faults := [
        f"consumer {consumer} is placed on NUMA node {node}, but the host has "
        f"{', '.join(map(str, sorted(nodes)))}"
        for consumer, placement in placement_of.items()
        for node in sorted(placement.keys() - nodes)
    ]:
        raise ReshapeFailed("; ".join(faults))
    mover = _Mover(allocations)
    for consumer, placement in placement_of.items():
        mover.give_where(consumer, needs[consumer], placement)
    unknown.sort(key=lambda consumer: (-max(needs[consumer].values()), consumer))
    spread = [consumer for consumer in unknown if not mover.give_whole(consumer, needs[consumer])]
    for consumer in spread:
        for move, amount in needs[consumer].items():
            mover.spread(consumer, move, amount)
    if faults := list(mover.faults()):
        raise ReshapeFailed("; ".join(faults))


def _taken_out(body: dict[str, Any], moves: Sequence[Move]) -> Needs:
    """Remove from a consumer what moves, and parts that become empty."""
    needs: dict[Move, int] = {}
    for move in moves:
        for source in move.sources:
            if amount := _take_out(body, source, move.resource_class):
                needs[move] = needs.get(move, 0) + amount
    return needs


def _take_out(body: dict[str, Any], provider: str, resource_class: str) -> int:
    """Remove a consumer's allocation of a provider's class; return the amount."""
    allocations = body["allocations"]
    resources: dict[str, int] = allocations.get(provider, {}).get("resources", {})
    amount = resources.pop(resource_class, 0)
    if amount and not resources:
        del allocations[provider]
    return amount


def put_in(body: dict[str, Any], provider: str, resource_class: str, amount: int) -> None:
    """Increase a consumer's allocation of a provider's class."""
    resources = body["allocations"].setdefault(provider, {}).setdefault("resources", {})
    resources[resource_class] = resources.get(resource_class, 0) + amount


class _Mover:
    """Distributes what was removed, and keeps track of the usage of each target."""

    def __init__(self, allocations: Allocations) -> None:
        self._allocations = allocations
        self._taken: Counter[tuple[str, str]] = Counter()
        for body in allocations.values():
            self._taken.update(amounts_of(body))
        #: The consumers that were given something, by target and class.
        self._given: set[tuple[str, Target, str]] = set()

    def give_where(self, consumer: str, needs: Needs, placement: Placement) -> None:
        """Distribute by a placement, whether there is room or not."""
        for move, amount in needs.items():
            targets = [candidate for candidate in move.targets if candidate.node in placement]
            if len(move.targets) == 1:
                self._give(consumer, move.targets[0], move.resource_class, amount)
            elif not targets:
                self.spread(consumer, move, amount)
            else:
                weights = [placement[candidate.node] for candidate in targets]
                step = max(candidate.stock.step_size for candidate in targets)
                parts = _share_to_first(amount, weights, step=step)
                for target, part in zip(targets, parts, strict=True):
                    self._give(consumer, target, move.resource_class, part)

    def give_whole(self, consumer: str, needs: Needs) -> bool:
        """Put everything on the first node with room for it; return whether there is one."""
        for node in sorted({candidate.node for move in needs for candidate in move.targets}):
            chosen = [
                (target, move.resource_class, amount)
                for move, amount in needs.items()
                for target in move.targets
                if target.node == node and self._fits(target, move.resource_class, amount)
            ]
            if len(chosen) == len(needs):
                for target, resource_class, amount in chosen:
                    self._give(consumer, target, resource_class, amount)
                return True
        return False

    def spread(self, consumer: str, move: Move, amount: int) -> None:
        """Fill the remaining capacity of each target; put the rest on the first."""
        for target in move.targets:
            stock = target.stock
            free = stock.capacity - self._taken[target.uuid, move.resource_class]
            part = min(amount, max(0, free), stock.max_unit) // stock.step_size * stock.step_size
            if part >= stock.min_unit:
                amount -= part
                self._give(consumer, target, move.resource_class, part)
        self._give(consumer, move.targets[0], move.resource_class, amount)

    def faults(self) -> Iterator[str]:
        """Amounts that a target does not allow for one consumer."""
        for consumer, target, resource_class in sorted(self._given, key=_order):
            amounts = self._allocations[consumer]["allocations"][target.uuid]["resources"]
            if not target.stock.allows_unit(amount := amounts[resource_class]):
                yield (
                    f"consumer {consumer} would hold {amount} {resource_class} on "
                    f"{target.name}, which allows {target.stock.min_unit} to "
                    f"{target.stock.max_unit} for one consumer, in steps of "
                    f"{target.stock.step_size}"
                )

    def _fits(self, target: Target, resource_class: str, amount: int) -> bool:
        taken = self._taken[target.uuid, resource_class]
        return target.stock.allows_unit(amount) and target.stock.has_capacity_for(taken + amount)

    def _give(self, consumer: str, target: Target, resource_class: str, amount: int) -> None:
        if amount:
            put_in(self._allocations[consumer], target.uuid, resource_class, amount)
            self._taken[target.uuid, resource_class] += amount
            self._given.add((consumer, target, resource_class))


def _order(given: tuple[str, Target, str]) -> tuple[str, str, int]:
    consumer, target, resource_class = given
    return consumer, resource_class, target.node


def _share_to_first(amount: int, weights: Sequence[int], *, step: int = 1) -> list[int]:
    """Split an amount in proportion to weights, each part a whole number of steps.

    The remainder goes to the first part.
    Source: spec/compute-side.md 8, B.
    """
    whole = sum(weights)
    parts = [amount // step * weight // whole * step for weight in weights]
    parts[0] += amount - sum(parts)
    return parts
