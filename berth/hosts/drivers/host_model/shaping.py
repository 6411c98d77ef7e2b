# SPDX-License-Identifier: Apache-2.0
"""Edits a tree to show what a host has, and leaves alone whatever is not the driver's.

The driver owns the root's classes and traits that `layout.py` names, and the providers below it
that have the trait CUSTOM_OWNER_BERTH and one of the driver's names: of a part of the host, the
CPUs and the memory; of a device, everything. Each pass finds out from the tree alone in which of
these states it is:

- wanted in its place: its record is updated;
- wanted elsewhere, because the model changed: it moves, with its allocations (`moving.py`);
- no longer wanted, and free: it is removed;
- no longer wanted, and in use: it stays until it is free, and offers nothing more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID, uuid5

from msgspec.structs import replace

from berth.hosts.drivers import Used
from berth.hosts.drivers.host_model.budget import Budget, total_in_use
from berth.hosts.drivers.host_model.devices import FORM_TRAIT
from berth.hosts.drivers.host_model.facts import Facts, share_out
from berth.hosts.drivers.host_model.layout import (
    MOVING,
    NUMA_TRAIT,
    PAGE_SIZE_TRAIT,
    ROOT_CLASSES,
    HostProvider,
    Place,
    Records,
    is_device,
    layout_of,
    local_name,
    place_of,
)
from berth.hosts.drivers.host_model.moving import Move, Placements, Target, move_allocations
from berth.hosts.drivers.host_model.options import HostOptions, HugePages, Model
from berth.hosts.drivers.kept_settings import Keeping, end_traits, unlock
from berth.hosts.drivers.ownership import OWNER_TRAIT
from berth.hosts.errors import BadProviderTree, ReshapeNeeded
from berth.hosts.plan import Allocations, amounts_of
from berth.hosts.provider_tree import ProviderData, ProviderTree
from berth.model.inventory import Inventory

#: Stands for a missing record.
_EMPTY: Final[Mapping[str, int]] = {"total": 0, "max_unit": 0}

_NOTHING: Final[Mapping[str, Mapping[str, float]]] = {}

#: Device traits that the driver owns, whoever added them: another card may be plugged in.
_OF_DEVICES: Final = re.compile(
    r"CUSTOM_PHYSNET_.+|(CUSTOM_)?HW_GPU_CUDA_COMPUTE_CAPABILITY_.+"
    rf"|{FORM_TRAIT}.+|CUSTOM_GPU_(NVIDIA|TESLA|QUADRO|GEFORCE|GRID|TITAN)_.+"
)

#: Further traits that the driver gives to parts of a host and to devices.
_REPORTED: Final = re.compile(
    rf"{OWNER_TRAIT}|{NUMA_TRAIT}|{PAGE_SIZE_TRAIT}.+|HW_NIC_SRIOV"
    r"|HW_CPU_X86_(AMD_SEV|AMD_SEV_ES|INTEL_TDX)"
)


@dataclass(frozen=True, slots=True)
class _PlannedMove:
    """Inventory of a class that moves, before its targets exist."""

    resource_class: str
    sources: tuple[ProviderData, ...]
    targets: tuple[HostProvider, ...]

    def __str__(self) -> str:
        givers, takers = (
            ", ".join(provider.name for provider in providers)
            for providers in (self.sources, self.targets)
        )
        return f"{self.resource_class} from {givers} to {takers}"


def counts_disk(tree: ProviderTree, root: ProviderData) -> bool:
    """Whether the disk is the host's own; otherwise the provider that shares it counts it.

    A disk that the service already has on the host stays, since it may have allocations.
    """
    return "DISK_GB" in root.inventory or not tree.has_sharing_provider("DISK_GB")


class Shaper:
    """Edits the tree of one host, once.

    Args:
        facts: what the host has.
        used: called only for what is no longer wanted, or in another form; None: the usage is
            unknown.
        keeping: how long what was set on providers is kept while they are away.
        allocations: of the tree's consumers, which are edited; None: nothing may move.
        firsts: by class, the initial record of the whole host if nothing is configured.
        movable: classes of devices of which the driver knows which device each consumer on the root
            uses, so that the devices are reported while the root still has some.
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
        keeping: Keeping,
        allocations: Allocations | None,
        firsts: Mapping[str, Mapping[str, float]] = _NOTHING,
        movable: Collection[str] = (),
    ) -> None:
        self._tree = tree
        self._root = root
        self._placements = placements
        self._allocations = allocations
        self._used = used if allocations is None else _used_in(allocations)
        self._firsts = firsts
        self._movable = frozenset(movable)
        self._detectable = facts.detectable
        self._keeping = keeping
        #: Notices for the operator, a sentence each.
        self.notices = [*facts.notices]
        self._follow_root()
        #: The root and the driver's providers below it, by name, parents first.
        self._own = {
            data.name: data
            for data in map(tree.data, tree.get_provider_uuids(root.uuid))
            if data.uuid == root.uuid or self._is_own(data)
        }
        self._options = self._with_pages(facts, options)
        self._has_pages_apart = self._options.huge_pages is HugePages.PROVIDERS
        self._wanted = dict(self._possible(layout_of(facts, self._options, root.name)))
        budget = Budget(
            self._wanted,
            self._own,
            root=root.name,
            are_pages_apart=self._has_pages_apart,
            cards=facts.cards,
            used=self._used,
        )
        self.notices += budget.settle()
        #: Devices of another form than before, which is in use.
        self._unchanged = budget.unchanged
        #: A request for them finds nothing, and is not refused as unknown.
        self._expected = budget.withheld

    def reports(self, name: str) -> bool:
        """Whether a provider of this name is wanted, and the driver's."""
        return name in self._wanted

    def offers(self, name: str, resource_class: str) -> int:
        """The total of a class that a provider is to offer."""
        total: int = self._records_of(name).get(resource_class, _EMPTY)["total"]
        return total

    def why_moving(self) -> str:
        """A sentence that says what has to move; empty if nothing has to."""
        planned = "; ".join(map(str, self._planned_moves()))
        return f"To move: {planned}" if planned else ""

    def shape(self) -> None:
        """Edit the tree, and the allocations if they were given.

        Raises:
            ReshapeNeeded: inventory has to move, and no allocations are given.
            ReshapeFailed, BadProviderTree: it is impossible.
        """
        planned, allocations = list(self._planned_moves()), self._allocations
        if planned and allocations is None:
            raise ReshapeNeeded(self.why_moving())
        for move in planned:
            self._carry_over(move)
        self._begin()
        self._tree.expected_classes |= self._expected
        self._hold_up_devices()
        self._hold_up_reserves()
        kept = self._kept(planned)
        self._place_providers()
        for name, data in self._own.items():
            for resource_class, record in self._records_of(name).items():
                unlock(record, data.inventory.get(resource_class, _EMPTY))
        for name in {**self._own, **self._wanted}:
            self._tree.update_inventory(name, self._records_of(name) | kept.get(name, {}))
        if allocations is not None:
            moves = [self._move(move) for move in planned]
            move_allocations(allocations, moves, self._placements)
        self._remove_providers(kept)
        for provider in self._wanted.values():
            if provider.name not in self._unchanged:
                self._write_traits(provider)

    # --- What there is, and what can be -----------------------------------------------------------

    def _follow_root(self) -> None:
        """Rename the driver's providers if the root was renamed."""
        for data in map(self._tree.data, self._tree.get_provider_uuids(self._root.uuid)):
            if OWNER_TRAIT in data.traits and not self._is_named_here(data.name):
                name = f"{self._root.name}_{local_name(data.name)}"
                if local_name(data.name) and not self._tree.exists(name):
                    self._tree.rename(data.uuid, name)

    def _is_own(self, data: ProviderData) -> bool:
        """Whether a provider is the driver's; one from a crashed pass has no trait yet, but the
        right UUID.
        """
        made_here = data.uuid == str(uuid5(UUID(self._root.uuid), data.name))
        return self._is_named_here(data.name) and (OWNER_TRAIT in data.traits or made_here)

    def _is_named_here(self, name: str) -> bool:
        """Whether a provider has one of the driver's names for a part or a device of this host.

        It is not enough that its name begins like the root's, since the root may have been renamed.
        """
        return place_of(name, self._root.name) is not None or is_device(name, self._root.name)

    def _possible(self, wanted: Mapping[str, HostProvider]) -> Iterator[tuple[str, HostProvider]]:
        """The wanted providers, without the devices that others report already.

        Raises:
            BadProviderTree: a provider of others has the name of a part of the host.
        """
        for name, provider in wanted.items():
            if name in self._own:
                yield name, provider
            elif self._tree.exists(name):
                theirs = f"{name} is a provider that berth did not create"
                if provider.place:
                    raise BadProviderTree([f"{theirs}; rename or remove it"])
                self.notices.append(f"{theirs}; the device is left to its owner")
            elif on_root := self._on_root(provider):
                self.notices.append(
                    f"{name} is not reported, because {', '.join(sorted(on_root))} is on "
                    f"{self._root.name} itself, and the device of each consumer is unknown"
                )
            else:
                yield name, provider

    def _on_root(self, provider: HostProvider) -> set[str]:
        """The classes of the root that may be a device, and cannot be moved to it.

        Those of mediated devices were VGPU there, whatever the device offers them as.
        """
        if provider.device is None:
            return set()
        classes = provider.records.keys() | ({"VGPU"} if provider.device.is_mediated else set())
        return (classes - self._movable) & self._root.inventory.keys()

    def _with_pages(self, facts: Facts, options: HostOptions) -> HostOptions:
        """The options, with huge pages left in the other memory as long as that is in use.

        It is unknown how much of it is in pages, so that they could be offered a second time.
        """
        if options.huge_pages is HugePages.MEMORY or not facts.whole.huge_kib:
            return options
        places = {
            data.name: place
            for data in self._own.values()
            if (place := place_of(data.name, self._root.name)) and "MEMORY_MB" in data.inventory
        }
        holders = ", ".join(filter(self._may_be_in_use, places))
        if not holders or any(place.pages is not None for place in places.values()):
            return options
        self.notices.append(
            f"Huge pages are not offered separately, because MEMORY_MB of {holders} "
            f"{'is' if self._used else 'may be'} allocated, in pages or not: release that first"
        )
        return replace(options, huge_pages=HugePages.MEMORY)

    def _may_be_in_use(self, name: str) -> bool:
        uuid = self._own[name].uuid
        return self._used is None or self._used(uuid).get("MEMORY_MB", 0) > 0

    # --- What moves -------------------------------------------------------------------------------

    def _planned_moves(self) -> Iterator[_PlannedMove]:
        sources: dict[tuple[str, tuple[str, ...]], list[ProviderData]] = {}
        for data in self._own.values():
            place = place_of(data.name, self._root.name)
            for resource_class in data.inventory:
                if place and resource_class in MOVING and not self._wants(data, resource_class):
                    homes = tuple(self._homes(place, resource_class))
                    sources.setdefault((resource_class, homes), []).append(data)
        for (resource_class, homes), providers in sources.items():
            if homes:
                targets = tuple(self._wanted[name] for name in homes)
                yield _PlannedMove(resource_class, tuple(providers), targets)

    def _is_own_class(self, data: ProviderData, resource_class: str) -> bool:
        """Whether inventory is the driver's own, and was not added by others."""
        if data.uuid == self._root.uuid:
            return resource_class in ROOT_CLASSES
        return resource_class in MOVING or is_device(data.name, self._root.name)

    def _wants(self, data: ProviderData, resource_class: str) -> bool:
        return resource_class in self._records_of(data.name)

    def _records_of(self, name: str) -> Records:
        """The records that a provider should have; empty if it is not wanted."""
        return self._wanted[name].records if name in self._wanted else {}

    def _homes(self, place: Place, resource_class: str) -> Iterator[str]:
        """The providers to which inventory of the other model belongs."""
        if self._is_of_model(place):
            return
        pages = place.pages if self._has_pages_apart else None
        by_node = self._options.model is Model.NUMA
        for provider in self._wanted.values():
            if (
                provider.place
                and self.offers(provider.name, resource_class)
                and provider.place.pages == pages
                and (not by_node or place.node in (None, provider.place.node))
            ):
                yield provider.name

    def _is_of_model(self, place: Place) -> bool:
        """Whether the model has such a part of a host, whether this host has it or not."""
        return (place.node is not None) == (self._options.model is Model.NUMA) and (
            place.pages is None or self._has_pages_apart
        )

    def _carry_over(self, move: _PlannedMove) -> None:
        """Copy what an operator has set in the old records to the new ones: a share of what is
        reserved, and the other fields, from the old record that differs least. Fields that follow
        from another page size are not copied.
        """
        existing = [
            record
            for target in move.targets
            if target.name in self._own
            and (record := self._own[target.name].inventory.get(move.resource_class))
        ]
        old = {data.name: data.inventory[move.resource_class] for data in move.sources}
        records = [target.records[move.resource_class] for target in move.targets]
        all_records = [*existing, *old.values()]
        if any("reserved" in record for record in all_records):
            reserved = sum(record.get("reserved", 0) for record in all_records)
            shares = share_out(reserved, [record["total"] for record in records])
            for record, share in zip(records, shares, strict=True):
                record.setdefault("reserved", share)
        pages = {target.place.pages for target in move.targets if target.place}
        alike = existing or [
            record
            for name, record in old.items()
            if (place := place_of(name, self._root.name)) and place.pages in pages
        ]
        for field in ("allocation_ratio", "min_unit", "step_size"):
            if values := {record[field] for record in alike if field in record}:
                for record in records:
                    record.setdefault(field, min(values))

    def _begin(self) -> None:
        """Apply the initial values to the first records of a class."""
        for resource_class, fields in self._firsts.items():
            new = [
                provider.records[resource_class]
                for provider in self._wanted.values()
                if provider.place
                and provider.place.pages is None
                and resource_class in provider.records
            ]
            if not new or any(resource_class in data.inventory for data in self._own.values()):
                continue
            for field, value in fields.items():
                values = [value] * len(new)
                if field == "reserved":
                    values = [*share_out(int(value), [record["total"] for record in new])]
                for record, first in zip(new, values, strict=True):
                    record.setdefault(field, first)

    def _hold_up_devices(self) -> None:
        """Keep the total of a device that has shrunk at what is allocated and reserved.

        A device that is counted before a boot script has run must not be overfull, and a consumer's
        allocation must stay valid.
        """
        for name, provider in self._wanted.items():
            if provider.place is not None or name not in self._own:
                continue
            existing = self._own[name]
            for resource_class, record in provider.records.items():
                before = existing.inventory.get(resource_class, _EMPTY)
                if record["total"] < before["total"]:
                    in_use = before["total"]
                    if self._used is not None:
                        in_use = self._used(existing.uuid).get(resource_class, 0)
                    record["max_unit"] = max(record["max_unit"], min(in_use, before["max_unit"]))
                    reserved = before.get("reserved", 0)
                    if (needed := min(in_use + reserved, before["total"])) > record["total"]:
                        self.notices.append(
                            f"{name} has {record['total']} {resource_class}, and {in_use} are "
                            f"allocated{f', {reserved} reserved' if reserved else ''}"
                        )
                        record["total"] = needed

    def _hold_up_reserves(self) -> None:
        """Keep each total at least as large as what is reserved: a host that has shrunk offers
        nothing.

        What an operator has reserved in the service stays as it is. Reducing it would lose it for
        the time when the host has grown again.
        """
        for name, provider in self._wanted.items():
            existing = self._own[name].inventory if name in self._own else {}
            for resource_class, record in provider.records.items():
                reserved = {**existing.get(resource_class, {}), **record}.get("reserved", 0)
                if reserved > record["total"]:
                    self.notices.append(
                        f"{name} has reserved {reserved} {resource_class}, and has "
                        f"{record['total']}"
                    )
                    if "reserved" in record:
                        record["reserved"] = record["total"]
                    else:
                        record["total"] = reserved

    def _move(self, planned: _PlannedMove) -> Move:
        resource_class = planned.resource_class
        targets = []
        for target in planned.targets:
            data = self._tree.data(target.name)
            assert target.place is not None, "devices do not take part in moves"
            node = -1 if target.place.node is None else target.place.node
            stock = Inventory(**data.inventory[resource_class])
            targets.append(Target(data.uuid, data.name, node, stock))
        return Move(resource_class, tuple(data.uuid for data in planned.sources), tuple(targets))

    # --- What is not wanted any more --------------------------------------------------------------

    def _kept(self, planned: Sequence[_PlannedMove]) -> dict[str, Records]:
        """The inventory that stays although the host no longer has it, by provider."""
        used = self._used
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
                    # Exactly what is allocated and reserved: more would be offered, and with less,
                    # a consumer could not rewrite its other allocations.
                    full = {**record, "total": total_in_use(record, amount)} if used else record
                    kept.setdefault(data.name, {})[resource_class] = full
                    self.notices.append(
                        f"The host no longer has {resource_class} for {data.name}; it stays "
                        f"{f'while {amount} are allocated' if used else 'in case it is allocated'}"
                    )
        return kept

    # --- Editing the tree -------------------------------------------------------------------------

    def _place_providers(self) -> None:
        """Create what is missing, and move everything to its place."""
        for provider in self._wanted.values():
            if provider.parent is None:
                continue
            if not self._tree.exists(provider.name):
                self._tree.new_child(provider.name, provider.parent)
            elif (
                self._tree.data(provider.name).parent_uuid != self._tree.data(provider.parent).uuid
            ):
                self._tree.move(provider.name, provider.parent)

    def _remove_providers(self, kept: Mapping[str, Records]) -> None:
        """Remove providers without inventory; what is still needed below them moves up."""
        for name in reversed(self._own):
            if name in self._wanted or name in kept or name == self._root.name:
                continue
            data, before = self._tree.data(name), self._own[name]
            if self._is_away(before) and (
                notice := self._keeping.keep(self._tree, before, self._reported(before))
            ):
                self.notices.append(notice)
                continue
            below = [
                child
                for child in map(self._tree.data, self._tree.get_provider_uuids(name))
                if child.parent_uuid == data.uuid
            ]
            if foreign := [child.name for child in below if child.name not in self._own]:
                self.notices.append(
                    f"{name} is empty, but stays because {', '.join(foreign)} is below it"
                )
                continue
            for child in below:
                self._tree.move(child.uuid, data.parent_uuid)
            self._tree.remove(data.uuid)

    def _is_away(self, data: ProviderData) -> bool:
        """Whether a provider is not wanted because the host lacks it, and not because of the
        model."""
        place = place_of(data.name, self._root.name)
        return place is None or self._is_of_model(place)

    def _reported(self, data: ProviderData) -> set[str]:
        """The traits of a provider that the driver may have given it."""
        of_rules = [rule.traits for rule in self._options.pci]
        of_rules += [rule.traits for rule in self._options.mdev]
        return set().union(*of_rules) | {
            trait
            for trait in data.traits
            if _REPORTED.fullmatch(trait) or _OF_DEVICES.fullmatch(trait)
        }

    def _write_traits(self, provider: HostProvider) -> None:
        """Set the driver's traits; others, of the operator or other agents, stay."""
        current = self._tree.data(provider.name).traits
        mine = frozenset(self._detectable if provider.parent is None else ())
        if provider.place is None:
            mine = frozenset(filter(_OF_DEVICES.fullmatch, current))
        others = current - mine - end_traits(current)
        self._tree.update_traits(provider.name, others | provider.traits)


def _used_in(allocations: Allocations) -> Used:
    """The total of all allocations."""
    sums: dict[str, Counter[str]] = {}
    for body in allocations.values():
        for (provider, resource_class), amount in amounts_of(body).items():
            sums.setdefault(provider, Counter())[resource_class] += amount
    return lambda uuid: sums.get(uuid, Counter())
