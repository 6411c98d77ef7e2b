# SPDX-License-Identifier: Apache-2.0
"""Providers in memory: a forest that a driver edits and the report client sends.

No I/O. Every method accepts the UUID or the name of a provider, and raises ValueError if there is
no such provider. UUIDs and names are unique in the whole forest, as in the service. Arguments and
results are copied. Every method is atomic for other threads; `transaction` groups several calls.

Inventory records have the service's fields: `total` and, optionally, `reserved`, `min_unit`,
`max_unit`, `step_size` and `allocation_ratio`. A field that a new record leaves out keeps its
value, so that an operator's `reserved` survives a driver that does not set it.
Source: spec/compute-side.md 1.
"""

from __future__ import annotations

import copy
import threading
import uuid as uuids
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Self

from berth.model.ids import parse_uuid_lax

SHARING_TRAIT: Final = "MISC_SHARES_VIA_AGGREGATE"

#: The record of a resource class, with the service's field names.
Record = Mapping[str, Any]
#: Records by resource class.
Inventory = Mapping[str, Record]


class ProviderData(NamedTuple):
    """A copy of one provider's data."""

    uuid: str
    name: str
    #: None until it was read from the service.
    generation: int | None
    parent_uuid: str | None
    inventory: dict[str, dict[str, Any]]
    traits: set[str]
    aggregates: set[str]
    #: The host's own objects, by resource class; never sent to the service.
    resources: dict[str, set[Any]]


def _copy_of(data: ProviderData) -> ProviderData:
    return data._replace(
        inventory=copy.deepcopy(data.inventory),
        traits=set(data.traits),
        aggregates=set(data.aggregates),
        resources=copy.deepcopy(data.resources),
    )


def _empty(uuid: str, name: str, generation: int | None, parent: str | None) -> ProviderData:
    """A provider without inventory, traits, aggregates and resources."""
    return ProviderData(uuid, name, generation, parent, {}, set(), set(), {})


class ProviderTree:
    """A forest of providers."""

    def __init__(self) -> None:
        #: All providers, by UUID.
        self._providers: dict[str, ProviderData] = {}
        #: The same, by name; always agrees with `_providers`.
        self._uuids_by_name: dict[str, str] = {}
        #: The UUIDs of each provider's children, in the order in which they were added.
        self._children: dict[str, dict[str, None]] = {}
        #: The UUIDs of all providers that were ever in the forest.
        self._had: set[str] = set()
        #: Resource classes that the service is to know, although no provider offers them yet.
        self.expected_classes: set[str] = set()
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
            return [_copy_of(data) for data in self._providers.values() if data.parent_uuid is None]

    def get_provider_uuids(self, name_or_uuid: str | None = None) -> list[str]:
        """The UUIDs of a provider and everything below it, or of all; parents before children."""
        with self._lock:
            if name_or_uuid is None:
                roots = [data for data in self._providers.values() if data.parent_uuid is None]
                return [uuid for root in roots for uuid in self._below(root.uuid)]
            return list(self._below(self._find(name_or_uuid).uuid))

    def get_provider_uuids_in_tree(self, name_or_uuid: str) -> list[str]:
        """The UUIDs of the whole tree that contains a provider; parents before children."""
        with self._lock:
            return list(self._below(self._root_of(self._find(name_or_uuid))))

    def get_root_uuid(self, name_or_uuid: str) -> str:
        """The UUID of a provider's root."""
        with self._lock:
            return self._root_of(self._find(name_or_uuid))

    def exists(self, name_or_uuid: str) -> bool:
        """Whether there is such a provider."""
        with self._lock:
            return self._look_up(name_or_uuid) is not None

    def find_name(self, name_or_uuid: str) -> str | None:
        """The name of a provider; None if there is no such provider."""
        with self._lock:
            data = self._look_up(name_or_uuid)
            return None if data is None else data.name

    def has_had(self, uuid: str) -> bool:
        """Whether the provider is in the forest, or was and has been removed."""
        with self._lock:
            return uuid in self._had

    def data(self, name_or_uuid: str) -> ProviderData:
        """The data of a provider."""
        with self._lock:
            return _copy_of(self._find(name_or_uuid))

    # --- Adding, moving and removing providers ----------------------------------------------------

    def new_root(self, name: str, uuid: str, generation: int | None = None) -> str:
        """Add a provider without a parent.

        Returns:
            Its UUID.

        Raises:
            ValueError: the UUID or the name is taken.
        """
        with self._lock:
            return self._add(_empty(uuid, name, generation, None))

    def new_child(
        self, name: str, parent: str, uuid: str | None = None, generation: int | None = None
    ) -> str:
        """Add a provider below another.

        Args:
            uuid: None: derived from the root's UUID and the name, so that a driver that restarts
                after a crash creates the same provider.

        Returns:
            Its UUID.

        Raises:
            ValueError: the UUID or the name is taken, or there is no such parent.
        """
        with self._lock:
            above = self._find(parent)
            own = uuid or str(uuids.uuid5(uuids.UUID(self._root_of(above)), name))
            return self._add(_empty(own, name, generation, above.uuid))

    def remove(self, name_or_uuid: str) -> None:
        """Remove a provider and everything below it."""
        with self._lock:
            self._drop(self._find(name_or_uuid).uuid)

    def rename(self, name_or_uuid: str, name: str) -> None:
        """Rename a provider.

        Raises:
            ValueError: the name is taken.
        """
        with self._lock:
            provider = self._find(name_or_uuid)
            if name != provider.name:
                self._refuse_taken_name(name)
                del self._uuids_by_name[provider.name]
                self._providers[provider.uuid] = provider._replace(name=name)
                self._uuids_by_name[name] = provider.uuid

    def move(self, name_or_uuid: str, parent: str | None) -> None:
        """Move a provider, with everything below it, to another parent, or make it a root.

        Raises:
            ValueError: the parent is below the provider.
        """
        with self._lock:
            provider = self._find(name_or_uuid)
            above = None if parent is None else self._find(parent)
            if above is not None and above.uuid in self._below(provider.uuid):
                raise ValueError(
                    f"Provider {provider.name} cannot be moved below {above.name}, which is itself "
                    f"or is below it"
                )
            if provider.parent_uuid is not None:
                del self._children[provider.parent_uuid][provider.uuid]
            parent_uuid = None if above is None else above.uuid
            self._providers[provider.uuid] = provider._replace(parent_uuid=parent_uuid)
            if above is not None:
                self._children[above.uuid][provider.uuid] = None

    def populate_from_iterable(self, provider_dicts: Iterable[Mapping[str, Any]] | None) -> None:
        """Add or replace providers, in the form in which the service lists them, in any order.

        A listed provider replaces the existing one with everything below it, and starts without
        inventory, traits, aggregates and resources. Providers that are neither listed nor below a
        listed one stay.

        Args:
            provider_dicts: each with `uuid` and `name`, and optionally `generation` and
                `parent_provider_uuid`.

        Raises:
            ValueError: a parent is neither listed nor in the forest, a name is taken, or the
                parents form a cycle. Nothing is changed then.
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
                        f"Provider {entry['name']} is listed below a parent that was removed "
                        f"with its own parent: {parent}"
                    )
                self._add(_empty(entry["uuid"], entry["name"], entry.get("generation"), parent))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make a block atomic: other threads see none or all of it, and an error undoes it."""
        with self._lock:
            providers = {uuid: _copy_of(data) for uuid, data in self._providers.items()}
            children, uuids_by_name = copy.deepcopy(self._children), dict(self._uuids_by_name)
            try:
                yield
            except BaseException:
                self._providers, self._children = providers, children
                self._uuids_by_name = uuids_by_name
                raise

    # --- Inventories ------------------------------------------------------------------------------

    def has_inventory(self, name_or_uuid: str) -> bool:
        """Whether a provider has any inventory."""
        with self._lock:
            return bool(self._find(name_or_uuid).inventory)

    def has_inventory_changed(self, name_or_uuid: str, inventory: Inventory) -> bool:
        """Whether an inventory differs from a provider's; fields that it leaves out are ignored."""
        with self._lock:
            return _differs(self._find(name_or_uuid).inventory, inventory)

    def update_inventory(
        self, name_or_uuid: str, inventory: Inventory, generation: int | None = None
    ) -> bool:
        """Replace the inventory of a provider.

        A class that is left out is removed; a field that is left out keeps its value.

        Args:
            generation: stored in any case; None keeps the present one.

        Returns:
            Whether the inventory changed.
        """
        with self._lock:
            before = self._find(name_or_uuid).inventory
            merged = {
                resource_class: {**before.get(resource_class, {}), **record}
                for resource_class, record in inventory.items()
            }
            self._update(name_or_uuid, generation, inventory=merged)
            return _differs(before, inventory)

    def has_sharing_provider(self, resource_class: str) -> bool:
        """Whether a provider of the forest shares a resource class."""
        with self._lock:
            return any(
                resource_class in data.inventory and SHARING_TRAIT in data.traits
                for data in self._providers.values()
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
        """Replace the traits of a provider; return whether they changed."""
        return self._update(name_or_uuid, generation, traits=set(traits))

    def add_traits(self, name_or_uuid: str, *traits: str) -> None:
        """Add traits to a provider."""
        with self._lock:
            self._find(name_or_uuid).traits.update(traits)

    def remove_traits(self, name_or_uuid: str, *traits: str) -> None:
        """Remove traits from a provider, as far as it has them."""
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
        """Replace the aggregates of a provider; return whether they changed."""
        return self._update(name_or_uuid, generation, aggregates=_canonical(aggregates))

    def add_aggregates(self, name_or_uuid: str, *aggregates: str) -> None:
        """Add a provider to aggregates."""
        with self._lock:
            self._find(name_or_uuid).aggregates.update(_canonical(aggregates))

    def remove_aggregates(self, name_or_uuid: str, *aggregates: str) -> None:
        """Remove a provider from aggregates, as far as it is in them."""
        with self._lock:
            self._find(name_or_uuid).aggregates.difference_update(_canonical(aggregates))

    def update_resources(self, name_or_uuid: str, resources: Mapping[str, set[Any]]) -> bool:
        """Replace the host objects behind a provider's inventory; return whether they changed."""
        return self._update(name_or_uuid, None, resources=copy.deepcopy(dict(resources)))

    # --- Parts of the forest ----------------------------------------------------------------------

    def subtree(self, root: str) -> ProviderSubTree:
        """A copy of one tree.

        Raises:
            ValueError: the provider is not a root.
        """
        with self._lock:
            top = self._find(root)
            if top.parent_uuid is not None:
                raise ValueError(f"Provider {top.name} is not a root")
            part = ProviderSubTree(top.uuid)
            part._had |= self._had
            for uuid in self._below(top.uuid):
                part._add(_copy_of(self._providers[uuid]))
            return part

    # --- Inside; the lock is held -----------------------------------------------------------------

    def _look_up(self, name_or_uuid: str) -> ProviderData | None:
        uuid = self._uuids_by_name.get(name_or_uuid, "")
        return self._providers.get(name_or_uuid) or self._providers.get(uuid)

    def _find(self, name_or_uuid: str) -> ProviderData:
        data = self._look_up(name_or_uuid)
        if data is None:
            raise ValueError(f"No such provider {name_or_uuid}")
        return data

    def _update(self, name_or_uuid: str, generation: int | None, **parts: Any) -> bool:
        """Replace parts of a provider, and its generation unless None; return whether a part
        changed.
        """
        with self._lock:
            before = self._find(name_or_uuid)
            after = before._replace(**parts)
            if generation is None:
                generation = before.generation
            self._providers[before.uuid] = after._replace(generation=generation)
            return after != before

    def _root_of(self, provider: ProviderData) -> str:
        while provider.parent_uuid is not None:
            provider = self._providers[provider.parent_uuid]
        return provider.uuid

    def _below(self, uuid: str) -> Iterator[str]:
        """A provider and everything below it, parents first."""
        yield uuid
        for child in self._children[uuid]:
            yield from self._below(child)

    def _add(self, provider: ProviderData) -> str:
        if not isinstance(provider.uuid, str):
            raise ValueError(f"Provider {provider.name} needs a uuid, and has {provider.uuid!r}")
        if provider.uuid in self._providers:
            raise ValueError(f"Provider {provider.uuid} already exists")
        self._refuse_taken_name(provider.name)
        self._providers[provider.uuid] = provider
        self._children[provider.uuid] = {}
        self._had.add(provider.uuid)
        self._uuids_by_name[provider.name] = provider.uuid
        if provider.parent_uuid is not None:
            self._children[provider.parent_uuid][provider.uuid] = None
        return provider.uuid

    def _drop(self, uuid: str) -> None:
        if (parent := self._providers[uuid].parent_uuid) is not None:
            del self._children[parent][uuid]
        for gone in list(self._below(uuid)):
            del self._uuids_by_name[self._providers.pop(gone).name], self._children[gone]

    def _refuse_taken_name(self, name: str) -> None:
        if (taken := self._uuids_by_name.get(name)) is not None:
            raise ValueError(f"The name {name} is that of provider {taken}")

    def _refuse_unknown_parents(self, listed: Mapping[str, Mapping[str, Any]]) -> None:
        parents = {entry.get("parent_provider_uuid") for entry in listed.values()} - {None}
        unknown = sorted(str(parent) for parent in parents - listed.keys() - self._providers.keys())
        if unknown:
            raise ValueError(f"Unknown parents: {', '.join(unknown)}")


class ProviderSubTree(ProviderTree):
    """A forest of which one tree is sent; the other providers are read-only context."""

    def __init__(self, scope_rp_uuid: str) -> None:
        super().__init__()
        #: The root of the tree that is sent.
        self.scope_rp_uuid = scope_rp_uuid


def _parents_first(listed: Mapping[str, Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    waiting = dict(listed)
    while waiting:
        ready = [
            uuid
            for uuid, entry in waiting.items()
            if entry.get("parent_provider_uuid") not in waiting
        ]
        if not ready:
            raise ValueError(f"Providers whose parents form a cycle: {', '.join(waiting)}")
        for uuid in ready:
            yield waiting.pop(uuid)


def _differs(old: Inventory, new: Inventory) -> bool:
    """Whether a new inventory sets something that the old one does not have."""
    if old.keys() != new.keys():
        return True
    return any(
        name not in old[resource_class] or old[resource_class][name] != value
        for resource_class, record in new.items()
        for name, value in record.items()
    )


def _canonical(aggregates: Iterable[str]) -> set[str]:
    """Aggregates as they are compared; `tree_faults` refuses what is not a UUID."""
    return {
        (isinstance(aggregate, str) and parse_uuid_lax(aggregate)) or aggregate
        for aggregate in aggregates
    }
