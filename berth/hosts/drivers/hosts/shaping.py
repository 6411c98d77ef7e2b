# SPDX-License-Identifier: Apache-2.0
"""Makes a tree what a host is to have, and touches nothing in it that is not the driver's.

The driver's own are the root's classes and traits that `wanted.py` names, and the providers below
it that bear CUSTOM_OWNER_BERTH and a name as the driver gives them; of those that stand for a part
of the host, the CPUs and the memory, and of a device everything. Whatever is the driver's is in one
of these states, which each pass finds out anew from the tree alone:

- it is wanted where it is: its record is brought up to date;
- it is wanted elsewhere, since the host is modelled otherwise than before: it moves, and what
  consumers hold moves along (`moving.py`);
- it is not wanted any more, and free: it goes;
- it is not wanted any more, and in use: it stays until it is free, with no room for more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final
from uuid import UUID, uuid5

from berth.hosts.drivers import Used
from berth.hosts.drivers.hosts.facts import Facts
from berth.hosts.drivers.hosts.moving import Move, Placements, Target, move_allocations
from berth.hosts.drivers.hosts.options import HostOptions, HugePages, Model
from berth.hosts.drivers.hosts.shares import share_out
from berth.hosts.drivers.hosts.wanted import (
    MOVING,
    ROOT_CLASSES,
    Place,
    Records,
    Wanted,
    is_device,
    local_name,
    place_of,
    wanted_providers,
)
from berth.hosts.drivers.owned import OWNER_TRAIT
from berth.hosts.errors import BadProviderTree, ReshapeNeeded
from berth.hosts.plan import Allocations, amounts_of
from berth.hosts.provider_tree import ProviderData, ProviderTree
from berth.model.inventory import Inventory

#: The record of what a provider does not have.
_EMPTY: Final[Mapping[str, int]] = {"total": 0, "max_unit": 0}

_NOTHING: Final[Mapping[str, Mapping[str, float]]] = {}

#: Traits of devices that are the driver's, whoever gave them: another card may be plugged in.
_OF_DEVICES: Final = re.compile(
    r"CUSTOM_PHYSNET_.+|(CUSTOM_)?HW_GPU_CUDA_COMPUTE_CAPABILITY_.+"
    r"|CUSTOM_GPU_(NVIDIA|TESLA|QUADRO|GEFORCE|GRID|TITAN)_.+"
)


@dataclass(frozen=True, slots=True)
class _PlannedMove:
    """Inventory of a class that moves, before the providers that take it over are made."""

    resource_class: str
    sources: tuple[ProviderData, ...]
    targets: tuple[Wanted, ...]

    def __str__(self) -> str:
        givers, takers = (
            ", ".join(one.name for one in some) for some in (self.sources, self.targets)
        )
        return f"{self.resource_class} from {givers} to {takers}"


def counts_disk(tree: ProviderTree, root: ProviderData) -> bool:
    """Whether a host's disk is its own; else whoever shares one with the host counts it.

    One that the service has of the host stays: somebody may hold of it.
    """
    return "DISK_GB" in root.inventory or not tree.has_sharing_provider("DISK_GB")


class Shaper:
    """Shapes the tree of one host, once.

    Args:
        facts: what the host has.
        used: asked only about what is not wanted any more; None: nobody knows.
        firsts: by class, what a record of the whole host begins with where nothing is configured.
        movable: classes of devices of which the driver can tell which device the root's holders
            use, so that the devices are reported while the root still has some.
    """

    def __init__(
        self,
        tree: ProviderTree,
        root: ProviderData,
        facts: Facts,
        options: HostOptions,
        *,
        placements: Placements,
        used: Used | None,
        firsts: Mapping[str, Mapping[str, float]] = _NOTHING,
        movable: Collection[str] = (),
    ) -> None:
        self._tree = tree
        self._root = root
        self._options = options
        self._placements = placements
        self._used = used
        self._firsts = firsts
        self._movable = frozenset(movable)
        self._told = facts.told
        #: What an operator should know, a sentence each.
        self.notices: list[str] = []
        self._follow_root()
        #: By name, the root and the driver's providers below it, parents first.
        self._own = {
            data.name: data
            for data in map(tree.data, tree.get_provider_uuids(root.uuid))
            if data.uuid == root.uuid or self._is_own(data)
        }
        self._wanted = dict(self._possible(wanted_providers(facts, options, root.name)))
        self._records: dict[str, Records] = {
            name: {resource_class: dict(record) for resource_class, record in one.records.items()}
            for name, one in self._wanted.items()
        }

    def reports(self, name: str) -> bool:
        """Whether a provider of this name is the driver's, and wanted."""
        return name in self._wanted

    def why_moving(self) -> str:
        """What has to move, as a sentence; empty where nothing has to."""
        planned = "; ".join(map(str, self._planned_moves()))
        return f"To be moved: {planned}" if planned else ""

    def shape(self, allocations: Allocations | None) -> None:
        """Edit the tree, and the allocations where they are given.

        Raises:
            ReshapeNeeded: inventory has to move, and no allocations are given.
            ReshapeFailed, BadProviderTree: it cannot be done.
        """
        planned = list(self._planned_moves())
        if planned and allocations is None:
            raise ReshapeNeeded(self.why_moving())
        for move in planned:
            self._carry_over(move)
        self._begin()
        used = self._used if allocations is None else _used_in(allocations)
        self._hold_up_devices(used)
        self._hold_up_reserves()
        self._tell_of_new_pages(used)
        kept = self._kept(planned, used)
        self._place_providers()
        for name in {**self._own, **self._wanted}:
            self._tree.update_inventory(name, self._records.get(name, {}) | kept.get(name, {}))
        if allocations is not None:
            moves = [self._move(move) for move in planned]
            move_allocations(allocations, moves, self._placements)
        self._remove_providers(kept)
        for one in self._wanted.values():
            self._write_traits(one)

    # --- What there is, and what can be -----------------------------------------------------------

    def _follow_root(self) -> None:
        """Name the driver's providers after the root, where that has another name than before."""
        for data in map(self._tree.data, self._tree.get_provider_uuids(self._root.uuid)):
            if OWNER_TRAIT in data.traits and not self._is_named_here(data.name):
                name = f"{self._root.name}_{local_name(data.name)}"
                if local_name(data.name) and not self._tree.exists(name):
                    self._tree.rename(data.uuid, name)

    def _is_own(self, data: ProviderData) -> bool:
        """A provider that was made in a pass that fell has no trait yet, but its uuid tells."""
        made_here = data.uuid == str(uuid5(UUID(self._root.uuid), data.name))
        return self._is_named_here(data.name) and (OWNER_TRAIT in data.traits or made_here)

    def _is_named_here(self, name: str) -> bool:
        """Whether a provider is called as the driver calls a part of the host, or a device of it.

        More than that it begins like the root, as it may do where the root was called otherwise.
        """
        return place_of(name, self._root.name) is not None or is_device(name, self._root.name)

    def _possible(self, wanted: Mapping[str, Wanted]) -> Iterator[tuple[str, Wanted]]:
        """What is wanted, without the devices that somebody else reports already.

        Raises:
            BadProviderTree: a part of the host has the name of somebody else's provider.
        """
        for name, one in wanted.items():
            if name in self._own:
                yield name, one
            elif self._tree.exists(name):
                theirs = f"{name} is a provider that berth did not make"
                if one.place:
                    raise BadProviderTree([f"{theirs}; rename or remove it"])
                self.notices.append(f"{theirs}; the device is left to whoever did")
            elif not one.place and (
                on_root := (one.records.keys() - self._movable) & self._root.inventory.keys()
            ):
                self.notices.append(
                    f"{name} is not reported, since {', '.join(sorted(on_root))} stands on "
                    f"{self._root.name} itself, and nobody can tell which device its holders use"
                )
            else:
                yield name, one

    # --- What moves -------------------------------------------------------------------------------

    def _planned_moves(self) -> Iterator[_PlannedMove]:
        sources: dict[tuple[str, tuple[str, ...]], list[ProviderData]] = {}
        for data in self._own.values():
            place = place_of(data.name, self._root.name)
            for resource_class in data.inventory:
                if place and resource_class in MOVING and not self._wants(data, resource_class):
                    homes = tuple(self._homes(place, resource_class))
                    sources.setdefault((resource_class, homes), []).append(data)
        for (resource_class, homes), some in sources.items():
            if homes:
                targets = tuple(self._wanted[name] for name in homes)
                yield _PlannedMove(resource_class, tuple(some), targets)

    def _is_own_class(self, data: ProviderData, resource_class: str) -> bool:
        """Whether inventory is the driver's, and not somebody's who has added it."""
        if data.uuid == self._root.uuid:
            return resource_class in ROOT_CLASSES
        return resource_class in MOVING or is_device(data.name, self._root.name)

    def _wants(self, data: ProviderData, resource_class: str) -> bool:
        return resource_class in self._records.get(data.name, {})

    def _homes(self, place: Place, resource_class: str) -> Iterator[str]:
        """Where what stands at a place of the other model belongs in this one."""
        by_node = self._options.model is Model.NUMA
        apart = self._options.huge_pages is HugePages.PROVIDERS
        if (place.node is not None) == by_node and (place.pages is None or apart):
            return
        for one in self._wanted.values():
            if (
                one.place
                and resource_class in one.records
                and one.place.pages == (place.pages if apart else None)
                and (not by_node or place.node in (None, one.place.node))
            ):
                yield one.name

    def _carry_over(self, move: _PlannedMove) -> None:
        """Give the new records what an operator has set in the old ones: shares of what is
        reserved, and the other fields, where the old ones differ the least. Those of pages of
        another size follow from the size, and stay behind.
        """
        there = [
            record
            for one in move.targets
            if one.name in self._own
            and (record := self._own[one.name].inventory.get(move.resource_class))
        ]
        old = {data.name: data.inventory[move.resource_class] for data in move.sources}
        records = [self._records[one.name][move.resource_class] for one in move.targets]
        every = [*there, *old.values()]
        if any("reserved" in record for record in every):
            reserved = sum(record.get("reserved", 0) for record in every)
            shares = share_out(reserved, [record["total"] for record in records])
            for record, share in zip(records, shares, strict=True):
                record.setdefault("reserved", share)
        pages = {one.place.pages for one in move.targets if one.place}
        alike = there or [
            record
            for name, record in old.items()
            if (place := place_of(name, self._root.name)) and place.pages in pages
        ]
        for field in ("allocation_ratio", "min_unit", "step_size"):
            if values := {record[field] for record in alike if field in record}:
                for record in records:
                    record.setdefault(field, min(values))

    def _begin(self) -> None:
        """Give the host's first records of a class what such a record begins with."""
        for resource_class, fields in self._firsts.items():
            new = [
                self._records[name][resource_class]
                for name, one in self._wanted.items()
                if one.place and one.place.pages is None and resource_class in self._records[name]
            ]
            if not new or any(resource_class in data.inventory for data in self._own.values()):
                continue
            for field, value in fields.items():
                values = [value] * len(new)
                if field == "reserved":
                    values = [*share_out(int(value), [record["total"] for record in new])]
                for record, first in zip(new, values, strict=True):
                    record.setdefault(field, first)

    def _hold_up_devices(self, used: Used | None) -> None:
        """See that a device that has fewer of a class than before still has those that are held,
        and those that are kept back.

        What is counted again when a boot script has run must not be over-full until then, and what
        one consumer holds of it must stay what may be held.
        """
        for name, one in self._wanted.items():
            if one.place is not None or name not in self._own:
                continue
            there = self._own[name]
            for resource_class, record in self._records[name].items():
                before = there.inventory.get(resource_class, _EMPTY)
                if record["total"] < before["total"]:
                    held = used(there.uuid).get(resource_class, 0) if used else before["total"]
                    record["max_unit"] = max(record["max_unit"], min(held, before["max_unit"]))
                    reserved = before.get("reserved", 0)
                    if (needed := min(held + reserved, before["total"])) > record["total"]:
                        self.notices.append(
                            f"{name} has {record['total']} {resource_class}, and {held} are in use"
                            + (f", {reserved} kept back" if reserved else "")
                        )
                        record["total"] = needed

    def _hold_up_reserves(self) -> None:
        """See that nothing keeps back more than there is: a host that has shrunk offers nothing.

        What an operator has set in the service stays as it is, and the total is held up to it: it
        would not come back with what the host has lost.
        """
        for name, records in self._records.items():
            there = self._own[name].inventory if name in self._own else {}
            for resource_class, record in records.items():
                reserved = {**there.get(resource_class, {}), **record}.get("reserved", 0)
                if reserved > record["total"]:
                    self.notices.append(
                        f"{name} keeps back {reserved} {resource_class}, and has {record['total']}"
                    )
                    if "reserved" in record:
                        record["reserved"] = record["total"]
                    else:
                        record["total"] = reserved

    def _tell_of_new_pages(self, used: Used | None) -> None:
        """Say that pages which are counted apart from now on may be in use already.

        Whoever uses them holds memory of the host, and nobody can tell how much of it.
        """
        for one in self._wanted.values():
            if one.place and one.place.pages and one.name not in self._own:
                holding = self._own.get(one.parent or "", self._root)
                if held := used(holding.uuid).get("MEMORY_MB", 0) if used else 0:
                    self.notices.append(
                        f"{one.name} offers huge pages apart from now on, while {held} MEMORY_MB "
                        f"are held of {holding.name}: those of them that are in huge pages are "
                        f"offered once more until their guests are gone"
                    )

    def _move(self, planned: _PlannedMove) -> Move:
        resource_class = planned.resource_class
        targets = []
        for one in planned.targets:
            data = self._tree.data(one.name)
            assert one.place is not None, "devices do not take part in moves"
            node = -1 if one.place.node is None else one.place.node
            stock = Inventory(**data.inventory[resource_class])
            targets.append(Target(data.uuid, data.name, node, stock))
        return Move(resource_class, tuple(data.uuid for data in planned.sources), tuple(targets))

    # --- What is not wanted any more --------------------------------------------------------------

    def _kept(self, planned: Sequence[_PlannedMove], used: Used | None) -> dict[str, Records]:
        """By provider, the inventory that stays although the host does not have it."""
        moved = {(data.uuid, move.resource_class) for move in planned for data in move.sources}
        kept: dict[str, Records] = {}
        for data in self._own.values():
            for resource_class, record in data.inventory.items():
                if self._wants(data, resource_class) or (data.uuid, resource_class) in moved:
                    continue
                if not self._is_own_class(data, resource_class):
                    kept.setdefault(data.name, {})[resource_class] = record
                    continue
                amount = used(data.uuid).get(resource_class, 0) if used else record["total"]
                if amount:
                    # Just what is held, and what an operator keeps back: more would be given out,
                    # less could not be written anew with the rest of what a consumer holds.
                    total = ceil(amount / record.get("allocation_ratio", 1.0))
                    full = (
                        {**record, "total": total + record.get("reserved", 0)} if used else record
                    )
                    kept.setdefault(data.name, {})[resource_class] = full
                    self.notices.append(
                        f"The host has no {resource_class} for {data.name} any more; it is kept "
                        f"{f'while {amount} are in use' if used else 'in case it is in use'}"
                    )
        return kept

    # --- Editing the tree -------------------------------------------------------------------------

    def _place_providers(self) -> None:
        """Make what is not there, and put everything where it belongs."""
        for one in self._wanted.values():
            if one.parent is None:
                continue
            if not self._tree.exists(one.name):
                self._tree.new_child(one.name, one.parent)
            elif self._tree.data(one.name).parent_uuid != self._tree.data(one.parent).uuid:
                self._tree.move(one.name, one.parent)

    def _remove_providers(self, kept: Mapping[str, Records]) -> None:
        """Remove what has no inventory any more; what is still needed below it moves up."""
        for name in reversed(self._own):
            if name in self._wanted or name in kept or name == self._root.name:
                continue
            data = self._tree.data(name)
            below = [
                child
                for child in map(self._tree.data, self._tree.get_provider_uuids(name))
                if child.parent_uuid == data.uuid
            ]
            if foreign := [child.name for child in below if child.name not in self._own]:
                self.notices.append(
                    f"{name} is empty, and stays since {', '.join(foreign)} stands below it"
                )
                continue
            for child in below:
                self._tree.move(child.uuid, data.parent_uuid)
            self._tree.remove(data.uuid)

    def _write_traits(self, one: Wanted) -> None:
        """Traits that the driver does not give stay: they are the operator's, or others'."""
        there = self._tree.data(one.name).traits
        mine = frozenset(self._told if one.parent is None else ())
        if one.place is None:
            mine = frozenset(filter(_OF_DEVICES.fullmatch, there))
        self._tree.update_traits(one.name, (there - mine) | one.traits)


def _used_in(allocations: Allocations) -> Used:
    """What consumers hold, in all."""
    sums: dict[str, Counter[str]] = {}
    for body in allocations.values():
        for (provider, resource_class), amount in amounts_of(body).items():
            sums.setdefault(provider, Counter())[resource_class] += amount
    return lambda uuid: sums.get(uuid, Counter())
