# SPDX-License-Identifier: Apache-2.0
"""Moves what consumers hold when inventory moves between providers: pure, no I/O.

A consumer that is known to be on some NUMA nodes gets its shares there. The others come after them,
the largest first: each wholly to the first node that has room for all that it moves, and those for
which no node has, spread over what is left. Every consumer's amounts add up to what they were,
always; whether there is room in the end for all of them is not judged here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.hosts.drivers.hosts.options import Placement
from berth.hosts.drivers.hosts.shares import share_to_first
from berth.hosts.errors import ReshapeFailed
from berth.hosts.plan import Allocations, amounts_of
from berth.model.inventory import Inventory

#: Tells on which NUMA nodes a consumer is; None where nobody knows.
Placements = Callable[[str], Placement | None]


@dataclass(frozen=True, slots=True)
class Target:
    """A provider that takes over inventory of one class."""

    uuid: str
    name: str
    #: The NUMA node that it is, or is a part of; -1: the whole host.
    node: int
    stock: Inventory


@dataclass(frozen=True, slots=True)
class Move:
    """Inventory of one class that some providers give up, and others take over."""

    resource_class: str
    #: The uuids of those who give it up.
    sources: tuple[str, ...]
    #: In ascending order of their NUMA nodes; at least one.
    targets: tuple[Target, ...]


#: What one consumer moves: the amount of each move that concerns it.
Needs = Mapping[Move, int]


def held_of(allocations: Allocations, provider: str, resource_class: str) -> dict[str, int]:
    """What consumers hold of a provider's class, those that hold some, by their uuids, sorted."""
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
    """Let a consumer hold of other providers what it held of one.

    Args:
        parts: how much it takes from which provider; together what it held of `source`.
    """
    amount = _take_out(allocations[consumer], source, resource_class)
    assert amount == sum(parts.values()), "a consumer neither gains nor loses"
    for provider, part in parts.items():
        put_in(allocations[consumer], provider, resource_class, part)


def move_allocations(
    allocations: Allocations, moves: Sequence[Move], placements: Placements
) -> None:
    """Move what consumers hold of the sources to the targets; `allocations` is changed.

    Args:
        placements: is asked only about consumers for which there is a choice.

    Raises:
        ReshapeFailed: consumers are said to be on NUMA nodes that nothing moves to, or would hold
            more of one than it gives to one consumer; all of them are told.
    """
    nodes = {target.node for move in moves for target in move.targets}
    needs = {consumer: _taken_out(body, moves) for consumer, body in allocations.items()}
    known: dict[str, Placement] = {}
    unknown: list[str] = []
    for consumer in sorted(consumer for consumer, of_one in needs.items() if of_one):
        if all(len(move.targets) == 1 for move in needs[consumer]):
            known[consumer] = {}
        elif placement := placements(consumer):
            known[consumer] = placement
        else:
            unknown.append(consumer)
    if faults := [
        f"consumer {consumer} is said to be on NUMA node {node}, and the host's nodes are "
        f"{', '.join(map(str, sorted(nodes)))}"
        for consumer, placement in known.items()
        for node in sorted(placement.keys() - nodes)
    ]:
        raise ReshapeFailed("; ".join(faults))
    mover = _Mover(allocations)
    for consumer, placement in known.items():
        mover.give_where(consumer, needs[consumer], placement)
    unknown.sort(key=lambda consumer: (-max(needs[consumer].values()), consumer))
    spread = [consumer for consumer in unknown if not mover.give_whole(consumer, needs[consumer])]
    for consumer in spread:
        for move, amount in needs[consumer].items():
            mover.spread(consumer, move, amount)
    if faults := list(mover.faults()):
        raise ReshapeFailed("; ".join(faults))


def _taken_out(body: dict[str, Any], moves: Sequence[Move]) -> Needs:
    """Take from a consumer what moves, and with it the parts that are empty then."""
    needs: dict[Move, int] = {}
    for move in moves:
        for source in move.sources:
            if amount := _take_out(body, source, move.resource_class):
                needs[move] = needs.get(move, 0) + amount
    return needs


def _take_out(body: dict[str, Any], provider: str, resource_class: str) -> int:
    """Take from a consumer what it holds of a provider's class; how much that was."""
    held = body["allocations"]
    resources: dict[str, int] = held.get(provider, {}).get("resources", {})
    amount = resources.pop(resource_class, 0)
    if amount and not resources:
        del held[provider]
    return amount


def put_in(body: dict[str, Any], provider: str, resource_class: str, amount: int) -> None:
    """Let a consumer hold so much more of a provider's class."""
    resources = body["allocations"].setdefault(provider, {}).setdefault("resources", {})
    resources[resource_class] = resources.get(resource_class, 0) + amount


class _Mover:
    """Gives consumers what was taken out, and keeps account of what is taken where."""

    def __init__(self, allocations: Allocations) -> None:
        self._allocations = allocations
        self._taken: Counter[tuple[str, str]] = Counter()
        for body in allocations.values():
            self._taken.update(amounts_of(body))
        #: Who was given something, of which target and class.
        self._given: set[tuple[str, Target, str]] = set()

    def give_where(self, consumer: str, needs: Needs, placement: Placement) -> None:
        """Give by a placement, whether there is room or not."""
        for move, amount in needs.items():
            targets = [one for one in move.targets if one.node in placement]
            if len(move.targets) == 1:
                self._give(consumer, move.targets[0], move.resource_class, amount)
            elif not targets:
                self.spread(consumer, move, amount)
            else:
                weights = [placement[one.node] for one in targets]
                step = max(one.stock.step_size for one in targets)
                parts = share_to_first(amount, weights, step=step)
                for target, part in zip(targets, parts, strict=True):
                    self._give(consumer, target, move.resource_class, part)

    def give_whole(self, consumer: str, needs: Needs) -> bool:
        """Give all on the first node that has room for it; whether there is one."""
        for node in sorted({one.node for move in needs for one in move.targets}):
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
        """Give to each target what it has left; what none of them has, to the first."""
        for target in move.targets:
            stock = target.stock
            free = stock.capacity - self._taken[target.uuid, move.resource_class]
            part = min(amount, max(0, free), stock.max_unit) // stock.step_size * stock.step_size
            if part >= stock.min_unit:
                amount -= part
                self._give(consumer, target, move.resource_class, part)
        self._give(consumer, move.targets[0], move.resource_class, amount)

    def faults(self) -> Iterator[str]:
        """What is an amount that a target does not give to one consumer."""
        for consumer, target, resource_class in sorted(self._given, key=_order):
            held = self._allocations[consumer]["allocations"][target.uuid]["resources"]
            if not target.stock.allows_unit(amount := held[resource_class]):
                yield (
                    f"consumer {consumer} would hold {amount} {resource_class} on "
                    f"{target.name}, which gives {target.stock.min_unit} to "
                    f"{target.stock.max_unit} to one, in steps of {target.stock.step_size}"
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
