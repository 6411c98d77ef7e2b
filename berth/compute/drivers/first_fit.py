# SPDX-License-Identifier: Apache-2.0
"""Allocations that move from one provider to others, edited in place; sums stay exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from berth.compute.errors import ReshapeFailed
from berth.compute.plan import Allocations
from berth.compute.provider_tree import Record
from berth.model.inventory import Inventory


@dataclass(frozen=True, slots=True)
class Target:
    """A provider that takes over allocations, and what it has of the resource class."""

    uuid: str
    name: str
    record: Record


def held_of(allocations: Allocations, provider: str, resource_class: str) -> dict[str, int]:
    """What consumers hold of a provider's class, those that hold some, by their uuids, sorted."""
    amounts = {
        consumer: allocations[consumer]["allocations"]
        .get(provider, {})
        .get("resources", {})
        .get(resource_class, 0)
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
    held = allocations[consumer]["allocations"]
    amount = held[source]["resources"].pop(resource_class)
    assert amount == sum(parts.values()), "a consumer neither gains nor loses"
    if not held[source]["resources"]:
        del held[source]
    for provider, part in parts.items():
        resources = held.setdefault(provider, {"resources": {}})["resources"]
        resources[resource_class] = resources.get(resource_class, 0) + part


def move_by_first_fit(
    allocations: Allocations, resource_class: str, *, source: str, targets: Sequence[Target]
) -> None:
    """Move a class from one provider to others: consumers by uuid, each to the first that has room.

    A consumer that fits nowhere as a whole is spread over the targets, in their order.

    Raises:
        ReshapeFailed: for some there is no room; nothing is edited then. All of them are told.
    """
    used = {target.uuid: held_of(allocations, target.uuid, resource_class) for target in targets}
    moves: dict[str, dict[str, int]] = {}
    homeless = []
    for consumer, amount in held_of(allocations, source, resource_class).items():
        rooms = {
            target.uuid: _Room(target.record, used[target.uuid], consumer) for target in targets
        }
        parts = _whole(rooms, amount) or _spread(rooms, amount)
        if parts is None:
            homeless.append(f"{consumer} ({amount})")
        else:
            moves[consumer] = parts
            for uuid, part in parts.items():
                used[uuid][consumer] = used[uuid].get(consumer, 0) + part
    if homeless:
        free = ", ".join(
            f"{target.name} {Inventory(**target.record).capacity - sum(used[target.uuid].values())}"
            for target in targets
        )
        raise ReshapeFailed(
            f"{resource_class} has no room for the consumers {', '.join(homeless)}; left when all "
            f"others have moved: {free}"
        )
    for consumer, parts in moves.items():
        transfer(allocations, consumer, resource_class, source=source, parts=parts)


class _Room:
    """What one consumer could take of one provider."""

    def __init__(self, record: Record, used: Mapping[str, int], consumer: str) -> None:
        self._stock = Inventory(**record)
        self._free = self._stock.capacity - sum(used.values())
        self._has = used.get(consumer, 0)

    def takes(self, amount: int) -> bool:
        """Whether it may take so much more."""
        return amount <= self._free and self._stock.allows_unit(self._has + amount)

    def most(self, amount: int) -> int:
        """The most that it may take, up to an amount; 0: nothing."""
        ceiling = min(amount, self._free, self._stock.max_unit - self._has)
        fitting = ceiling - (self._has + ceiling) % self._stock.step_size
        return fitting if fitting > 0 and self.takes(fitting) else 0


def _whole(rooms: Mapping[str, _Room], amount: int) -> dict[str, int] | None:
    return next(({uuid: amount} for uuid, room in rooms.items() if room.takes(amount)), None)


def _spread(rooms: Mapping[str, _Room], amount: int) -> dict[str, int] | None:
    parts: dict[str, int] = {}
    left = amount
    for uuid, room in rooms.items():
        if part := room.most(left):
            parts[uuid] = part
            left -= part
    return parts if left == 0 else None
