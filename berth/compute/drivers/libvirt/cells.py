# SPDX-License-Identifier: Apache-2.0
"""Consumers of a host's CPUs and memory, moved to the NUMA nodes that their guests are on, or back.

A guest whose CPUs are pinned, or whose memory is bound, goes where it is; any other one floats, and
is counted on the first node that has room for the whole of it. Sums stay exact: what cannot be
divided evenly is on the first node.
Source: spec/compute-side.md 8, scenario B.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from berth.compute.drivers.first_fit import held_of, transfer
from berth.compute.drivers.libvirt.inventories import OF_CELLS
from berth.compute.drivers.libvirt.xml_documents import Cell, Guest
from berth.compute.errors import ReshapeFailed
from berth.compute.plan import Allocations
from berth.compute.provider_tree import Inventory
from berth.model import inventory as model

#: By the id of a NUMA node, how large a consumer's part on it is.
Shares = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Target:
    """The provider of a NUMA node."""

    cell: int
    uuid: str
    inventory: Inventory

    def has_room(self, needs: Mapping[str, int], used: Mapping[tuple[str, str], int]) -> bool:
        """Whether a consumer's needs fit beside what is used."""
        return all(
            name in self.inventory
            and model.Inventory(**self.inventory[name]).has_capacity_for(
                used.get((self.uuid, name), 0) + amount
            )
            for name, amount in needs.items()
        )


def shares_of(guest: Guest, cells: Sequence[Cell]) -> Shares:
    """On which NUMA nodes a guest is, by its pinned vCPUs or its bound memory; none: it floats."""
    pinned: Counter[int] = Counter()
    for pin in guest.pins:
        pinned.update(cell.id for cell in cells if pin and pin <= cell.cpus)
    if pinned.total() == len(guest.pins) and pinned:
        return pinned
    return dict.fromkeys(sorted(guest.memory_cells), 1)


def move_to_cells(
    allocations: Allocations,
    root: str,
    targets: Sequence[Target],
    shares: Mapping[str, Shares],
) -> None:
    """Move what consumers hold of the root's CPUs and memory to NUMA nodes; edited in place.

    Args:
        shares: by consumer; those that are not there float.

    Raises:
        ReshapeFailed: guests are on a node that has no provider, or no node has room for one that
            floats; all of them are told.
    """
    by_cell = {target.cell: target for target in targets}
    needs = _needs(allocations, root)
    used: Counter[tuple[str, str]] = Counter()
    parts: dict[str, dict[str, dict[str, int]]] = {}
    faults = []
    for consumer in sorted(needs, key=lambda consumer: (not shares.get(consumer), consumer)):
        share = shares.get(consumer, {})
        if not share:
            fitting = (one.cell for one in targets if one.has_room(needs[consumer], used))
            share = dict.fromkeys(list(fitting)[:1], 1)
        if not share or share.keys() - by_cell.keys():
            faults.append(_fault(consumer, needs[consumer], sorted(share.keys() - by_cell.keys())))
            continue
        parts[consumer] = {
            name: {by_cell[cell].uuid: part for cell, part in _divide(amount, share).items()}
            for name, amount in needs[consumer].items()
        }
        for name, of_class in parts[consumer].items():
            used.update({(uuid, name): part for uuid, part in of_class.items()})
    if faults:
        raise ReshapeFailed("; ".join(faults))
    for consumer, of_consumer in parts.items():
        for name, of_class in of_consumer.items():
            transfer(allocations, consumer, name, source=root, parts=of_class)


def move_to_root(allocations: Allocations, cell: str, root: str) -> None:
    """Move what consumers hold of a NUMA node's CPUs and memory to the root; edited in place."""
    for name in OF_CELLS:
        for consumer, amount in held_of(allocations, cell, name).items():
            transfer(allocations, consumer, name, source=cell, parts={root: amount})


def _needs(allocations: Allocations, root: str) -> dict[str, dict[str, int]]:
    needs: dict[str, dict[str, int]] = {}
    for name in OF_CELLS:
        for consumer, amount in held_of(allocations, root, name).items():
            needs.setdefault(consumer, {})[name] = amount
    return needs


def _divide(amount: int, shares: Shares) -> dict[int, int]:
    """An amount by shares, what is left over to the first; parts of nothing are left out."""
    whole = sum(shares.values())
    parts = {cell: amount * share // whole for cell, share in shares.items()}
    first = next(iter(parts))
    parts[first] += amount - sum(parts.values())
    return {cell: part for cell, part in parts.items() if part}


def _fault(consumer: str, needs: Mapping[str, int], unknown: Sequence[int]) -> str:
    if unknown:
        return f"consumer {consumer} is on NUMA node {unknown[0]}, which has no provider here"
    wanted = ", ".join(f"{amount} {name}" for name, amount in needs.items())
    return f"consumer {consumer} floats, and no NUMA node has room for its {wanted}"
