# SPDX-License-Identifier: Apache-2.0
"""Providers in memory: a forest that a driver edits and the report client sends.

No I/O. Wherever a provider is named, its uuid and its name will both do, and one that is not there
is a ValueError. Uuids and names are unique in the whole forest, as they are in the service. What
goes in and what comes out is copied: nobody holds on to the inside. Every method is one step for
other threads; `transaction` makes one step of several.

Inventory records are what the service takes: `total` and, where they matter, `reserved`,
`min_unit`, `max_unit`, `step_size` and `allocation_ratio`. A field that a new record leaves out is
left as it is, so that an operator's `reserved` survives a driver that says nothing of it.
Source: spec/compute-side.md 1.
"""

from __future__ import annotations

import copy
import threading
import uuid as uuids
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

from berth.model.ids import parse_uuid_lax

SHARING_TRAIT: Final = "MISC_SHARES_VIA_AGGREGATE"

#: A resource class's record: its fields as the service names them.
Record = Mapping[str, Any]
#: Resource classes and their records.
Inventory = Mapping[str, Record]


class ProviderData(NamedTuple):
    """What is known of one provider; a copy."""

    uuid: str
    name: str
    #: None where the service has not said one yet.
    generation: int | None
    parent_uuid: str | None
    inventory: dict[str, dict[str, Any]]
    traits: set[str]
    aggregates: set[str]
    #: Of the host's own things, by resource class; never sent to the service.
    resources: dict[str, set[Any]]


@dataclass(slots=True)
class _Provider:
    """One provider inside of a tree."""

    uuid: str
    name: str
    generation: int | None
    parent: str | None
    #: In the order in which they came.
    children: dict[str, None] = field(default_factory=dict)
    inventory: dict[str, dict[str, Any]] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)
    resources: dict[str, set[Any]] = field(default_factory=dict)

    def data(self) -> ProviderData:
        return ProviderData(
            self.uuid,
            self.name,
            self.generation,
            self.parent,
            copy.deepcopy(self.inventory),
            set(self.traits),
            set(self.aggregates),
            copy.deepcopy(self.resources),
        )


class ProviderTree:
    """A forest of providers."""

    def __init__(self) -> None:
        #: Every provider, by uuid.
        self._providers: dict[str, _Provider] = {}
        #: Agrees with `_providers`.
        self._uuids_by_name: dict[str, str] = {}
        #: All that ever stood here.
        self._had: set[str] = set()
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Copy and pickle everything but the lock."""
        with self._lock:
            state = self.__dict__.copy()
            del state["_lock"]
            return copy.deepcopy(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = type(self).__new__(type(self))
        made.__setstate__(self.__getstate__())
        return made

    # --- Which providers there are ----------------------------------------------------------------

    @property
    def roots(self) -> list[ProviderData]:
        """The providers without a parent."""
        with self._lock:
            return [one.data() for one in self._providers.values() if one.parent is None]

    def get_provider_uuids(self, name_or_uuid: str | None = None) -> list[str]:
        """The uuids of a provider and all below it, or of everything; parents before children."""
        with self._lock:
            if name_or_uuid is None:
                roots = [one.uuid for one in self._providers.values() if one.parent is None]
                return [uuid for root in roots for uuid in self._below(root)]
            return list(self._below(self._find(name_or_uuid).uuid))

    def get_provider_uuids_in_tree(self, name_or_uuid: str) -> list[str]:
        """The uuids of the whole tree that a provider stands in; parents before children."""
        with self._lock:
            return list(self._below(self._root_of(self._find(name_or_uuid))))

    def get_root_uuid(self, name_or_uuid: str) -> str:
        """The uuid of the root above a provider, or its own."""
        with self._lock:
            return self._root_of(self._find(name_or_uuid))

    def exists(self, name_or_uuid: str) -> bool:
        """Whether there is such a provider."""
        with self._lock:
            return self._look_up(name_or_uuid) is not None

    def has_had(self, uuid: str) -> bool:
        """Whether a provider stands here, or did and was removed."""
        with self._lock:
            return uuid in self._had

    def data(self, name_or_uuid: str) -> ProviderData:
        """What is known of a provider."""
        with self._lock:
            return self._find(name_or_uuid).data()

    # --- Adding, moving and removing providers ----------------------------------------------------

    def new_root(self, name: str, uuid: str, generation: int | None = None) -> str:
        """Add a provider without a parent.

        Returns:
            Its uuid.

        Raises:
            ValueError: the uuid or the name is taken.
        """
        with self._lock:
            return self._add(_Provider(uuid, name, generation, None))

    def new_child(
        self, name: str, parent: str, uuid: str | None = None, generation: int | None = None
    ) -> str:
        """Add a provider below another.

        Args:
            uuid: none: one that follows from the root's uuid and the name, so that a driver which
                starts again after a fall means the same provider.

        Returns:
            Its uuid.

        Raises:
            ValueError: the uuid or the name is taken, or there is no such parent.
        """
        with self._lock:
            above = self._find(parent)
            own = uuid or str(uuids.uuid5(uuids.UUID(self._root_of(above)), name))
            return self._add(_Provider(own, name, generation, above.uuid))

    def remove(self, name_or_uuid: str) -> None:
        """Drop a provider and all below it."""
        with self._lock:
            self._drop(self._find(name_or_uuid).uuid)

    def rename(self, name_or_uuid: str, name: str) -> None:
        """Give a provider another name.

        Raises:
            ValueError: the name is taken.
        """
        with self._lock:
            provider = self._find(name_or_uuid)
            if name != provider.name:
                self._refuse_taken_name(name)
                del self._uuids_by_name[provider.name]
                provider.name = name
                self._uuids_by_name[name] = provider.uuid

    def move(self, name_or_uuid: str, parent: str | None) -> None:
        """Put a provider, with all below it, under another parent, or make it a root.

        Raises:
            ValueError: the parent stands below the provider.
        """
        with self._lock:
            provider = self._find(name_or_uuid)
            above = None if parent is None else self._find(parent)
            if above is not None and above.uuid in self._below(provider.uuid):
                raise ValueError(
                    f"Provider {provider.name} cannot be put under {above.name}, which is itself "
                    f"or stands below it"
                )
            if provider.parent is not None:
                del self._providers[provider.parent].children[provider.uuid]
            provider.parent = above.uuid if above else None
            if above is not None:
                above.children[provider.uuid] = None

    def populate_from_iterable(self, provider_dicts: Iterable[Mapping[str, Any]] | None) -> None:
        """Take over providers as the service lists them, in any order.

        What is listed is replaced, with all below it, and starts without inventory, traits,
        aggregates and resources; what is neither listed nor below a listed one stays.

        Args:
            provider_dicts: each with `uuid` and `name`, and where known `generation` and
                `parent_provider_uuid`.

        Raises:
            ValueError: a parent is neither listed nor here, a name is taken, or the parents run in
                a circle. Nothing is changed then.
        """
        listed = {entry["uuid"]: entry for entry in provider_dicts or ()}
        with self.transaction():
            self._refuse_unknown_parents(listed)
            for uuid in [uuid for uuid in listed if uuid in self._providers]:
                if uuid in self._providers:
                    self._drop(uuid)
            for entry in _parents_first(listed):
                parent = entry.get("parent_provider_uuid")
                if parent is not None and parent not in self._providers:
                    raise ValueError(
                        f"Provider {entry['name']} is listed under a parent that went with what "
                        f"it stood under: {parent}"
                    )
                self._add(_Provider(entry["uuid"], entry["name"], entry.get("generation"), parent))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make one step of the block: other threads see none or all of it, an error undoes it."""
        with self._lock:
            before = (copy.deepcopy(self._providers), dict(self._uuids_by_name))
            try:
                yield
            except BaseException:
                self._providers, self._uuids_by_name = before
                raise

    # --- Inventories ------------------------------------------------------------------------------

    def has_inventory(self, name_or_uuid: str) -> bool:
        """Whether a provider has any inventory."""
        with self._lock:
            return bool(self._find(name_or_uuid).inventory)

    def has_inventory_changed(self, name_or_uuid: str, inventory: Inventory) -> bool:
        """Whether an inventory differs from a provider's; fields that it leaves out do not."""
        with self._lock:
            return _differs(self._find(name_or_uuid).inventory, inventory)

    def update_inventory(
        self, name_or_uuid: str, inventory: Inventory, generation: int | None = None
    ) -> bool:
        """Give a provider an inventory in place of the one it has.

        A class that is left out goes; a field that is left out stays as it is.

        Args:
            generation: noted in any case; None leaves the one that is there.

        Returns:
            Whether something has changed.
        """
        with self._lock:
            provider = self._find(name_or_uuid)
            has_changed = _differs(provider.inventory, inventory)
            provider.inventory = {
                resource_class: {**provider.inventory.get(resource_class, {}), **record}
                for resource_class, record in inventory.items()
            }
            _note_generation(provider, generation)
            return has_changed

    def has_sharing_provider(self, resource_class: str) -> bool:
        """Whether a provider of the forest shares a resource class with others."""
        with self._lock:
            return any(
                resource_class in one.inventory and SHARING_TRAIT in one.traits
                for one in self._providers.values()
            )

    # --- Traits, aggregates, resources ------------------------------------------------------------

    def has_traits(self, name_or_uuid: str, traits: Iterable[str]) -> bool:
        """Whether a provider has all of some traits."""
        with self._lock:
            return self._find(name_or_uuid).traits.issuperset(traits)

    def have_traits_changed(self, name_or_uuid: str, traits: Iterable[str]) -> bool:
        """Whether a set of traits differs from a provider's."""
        with self._lock:
            return self._find(name_or_uuid).traits != set(traits)

    def update_traits(
        self, name_or_uuid: str, traits: Iterable[str], generation: int | None = None
    ) -> bool:
        """Give a provider these traits and no others; whether something has changed."""
        with self._lock:
            provider = self._find(name_or_uuid)
            before, provider.traits = provider.traits, set(traits)
            _note_generation(provider, generation)
            return provider.traits != before

    def add_traits(self, name_or_uuid: str, *traits: str) -> None:
        """Give a provider some traits more."""
        with self._lock:
            self._find(name_or_uuid).traits.update(traits)

    def remove_traits(self, name_or_uuid: str, *traits: str) -> None:
        """Take some traits from a provider, those that it has."""
        with self._lock:
            self._find(name_or_uuid).traits.difference_update(traits)

    def in_aggregates(self, name_or_uuid: str, aggregates: Iterable[str]) -> bool:
        """Whether a provider is in all of some aggregates."""
        with self._lock:
            return self._find(name_or_uuid).aggregates.issuperset(_canonical(aggregates))

    def have_aggregates_changed(self, name_or_uuid: str, aggregates: Iterable[str]) -> bool:
        """Whether a set of aggregates differs from a provider's."""
        with self._lock:
            return self._find(name_or_uuid).aggregates != _canonical(aggregates)

    def update_aggregates(
        self, name_or_uuid: str, aggregates: Iterable[str], generation: int | None = None
    ) -> bool:
        """Put a provider into these aggregates and no others; whether something has changed."""
        with self._lock:
            provider = self._find(name_or_uuid)
            before, provider.aggregates = provider.aggregates, _canonical(aggregates)
            _note_generation(provider, generation)
            return provider.aggregates != before

    def add_aggregates(self, name_or_uuid: str, *aggregates: str) -> None:
        """Put a provider into some aggregates more."""
        with self._lock:
            self._find(name_or_uuid).aggregates.update(_canonical(aggregates))

    def remove_aggregates(self, name_or_uuid: str, *aggregates: str) -> None:
        """Take a provider out of some aggregates, those that it is in."""
        with self._lock:
            self._find(name_or_uuid).aggregates.difference_update(_canonical(aggregates))

    def update_resources(self, name_or_uuid: str, resources: Mapping[str, set[Any]]) -> bool:
        """Note which things of the host a provider's inventory counts; whether it has changed."""
        with self._lock:
            provider = self._find(name_or_uuid)
            before, provider.resources = provider.resources, copy.deepcopy(dict(resources))
            return provider.resources != before

    # --- Parts of the forest ----------------------------------------------------------------------

    def subtree(self, root: str) -> ProviderSubTree:
        """A copy of one tree.

        Raises:
            ValueError: the provider is not a root.
        """
        with self._lock:
            top = self._find(root)
            if top.parent is not None:
                raise ValueError(f"Provider {top.name} is not a root")
            part = ProviderSubTree(top.uuid)
            part._had |= self._had
            for uuid in self._below(top.uuid):
                one = copy.deepcopy(self._providers[uuid])
                part._add(replace(one, children={}))
            return part

    # --- Inside; the lock is held -----------------------------------------------------------------

    def _look_up(self, name_or_uuid: str) -> _Provider | None:
        found = self._providers.get(name_or_uuid)
        if found is None and (uuid := self._uuids_by_name.get(name_or_uuid)) is not None:
            found = self._providers[uuid]
        return found

    def _find(self, name_or_uuid: str) -> _Provider:
        found = self._look_up(name_or_uuid)
        if found is None:
            raise ValueError(f"No such provider {name_or_uuid}")
        return found

    def _root_of(self, provider: _Provider) -> str:
        while provider.parent is not None:
            provider = self._providers[provider.parent]
        return provider.uuid

    def _below(self, uuid: str) -> Iterator[str]:
        """A provider and all below it, level by level in each branch, parents first."""
        yield uuid
        for child in self._providers[uuid].children:
            yield from self._below(child)

    def _add(self, provider: _Provider) -> str:
        if not isinstance(provider.uuid, str):
            raise ValueError(f"Provider {provider.name} needs a uuid, and has {provider.uuid!r}")
        if provider.uuid in self._providers:
            raise ValueError(f"Provider {provider.uuid} already exists")
        self._refuse_taken_name(provider.name)
        self._providers[provider.uuid] = provider
        self._had.add(provider.uuid)
        self._uuids_by_name[provider.name] = provider.uuid
        if provider.parent is not None:
            self._providers[provider.parent].children[provider.uuid] = None
        return provider.uuid

    def _drop(self, uuid: str) -> None:
        if (parent := self._providers[uuid].parent) is not None:
            del self._providers[parent].children[uuid]
        for gone in list(self._below(uuid)):
            del self._uuids_by_name[self._providers.pop(gone).name]

    def _refuse_taken_name(self, name: str) -> None:
        if (taken := self._uuids_by_name.get(name)) is not None:
            raise ValueError(f"The name {name} is that of provider {taken}")

    def _refuse_unknown_parents(self, listed: Mapping[str, Mapping[str, Any]]) -> None:
        parents = {entry.get("parent_provider_uuid") for entry in listed.values()} - {None}
        unknown = sorted(str(one) for one in parents - listed.keys() - self._providers.keys())
        if unknown:
            raise ValueError(f"Parents that are neither listed nor known: {', '.join(unknown)}")


class ProviderSubTree(ProviderTree):
    """A forest of which one tree is to be sent; the other providers are there to look at."""

    def __init__(self, scope_rp_uuid: str) -> None:
        super().__init__()
        self._scope_rp_uuid = scope_rp_uuid

    @property
    def scope_rp_uuid(self) -> str:
        """The root of the tree that is to be sent."""
        return self._scope_rp_uuid


def _parents_first(listed: Mapping[str, Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    waiting = dict(listed)
    while waiting:
        ready = [
            uuid
            for uuid, entry in waiting.items()
            if entry.get("parent_provider_uuid") not in waiting
        ]
        if not ready:
            raise ValueError(f"Providers that are each other's parents: {', '.join(waiting)}")
        for uuid in ready:
            yield waiting.pop(uuid)


def _differs(old: Inventory, new: Inventory) -> bool:
    """Whether a new inventory says something that the old one does not."""
    if old.keys() != new.keys():
        return True
    return any(
        name not in old[resource_class] or old[resource_class][name] != value
        for resource_class, record in new.items()
        for name, value in record.items()
    )


def _canonical(aggregates: Iterable[str]) -> set[str]:
    """Aggregates as they are compared; what is no uuid is for `judging` to refuse."""
    return {(isinstance(one, str) and parse_uuid_lax(one)) or one for one in aggregates}


def _note_generation(provider: _Provider, generation: int | None) -> None:
    if generation is not None:
        provider.generation = generation
