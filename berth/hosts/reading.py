# SPDX-License-Identifier: Apache-2.0
"""Reads the service's trees with few requests, and caches them.

berth shows a whole tree in one request, which says 304 if nothing has changed. Elsewhere,
checking a tree costs one request, which lists the generation of every provider; only providers
whose generation changed are read again. The providers that share with a tree's aggregates cost
another request, and are roots of their own in the cache. Clients of microversions before 1.19
change aggregates without increasing a generation, so everything is read again periodically.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from math import inf
from typing import Final

from berth.hosts.errors import NotThere
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import (
    SHARING_TRAIT,
    ProviderData,
    ProviderSubTree,
    ProviderTree,
)
from berth.hosts.service import Listed, Service, named_path, provider_path, repeated
from berth.hosts.whole_trees import Absent, WholeTree, WholeTrees, data_of, listed_of

#: Aggregates per request.
_AGGREGATES_MAX: Final = 200

#: How often a tree is listed again if providers disappear while it is read.
_LISTINGS_MAX: Final = 5

#: Seconds for which the inventory of a sharing provider may be out of date: each claim increases
#: its generation, and drivers only need to know which classes it shares.
_SHARED_S: Final = 300.0


@dataclass(slots=True)
class _Cached:
    """A tree as it was last read or written."""

    tree: ProviderSubTree
    #: When it was last read completely.
    read_at: float = -inf
    #: When the providers that share with it were last listed.
    shared_listed_at: float = -inf
    #: The allocations of its consumers when they were last read.
    allocations: Allocations | None = None
    #: Whether it may have changed since it was read.
    is_outdated: bool = False


@dataclass(eq=False)
class TreeReader:
    """Reads and caches the trees of one or several hosts."""

    service: Service
    whole_trees: WholeTrees
    _: KW_ONLY
    refresh_s: float
    clock: Callable[[], float]
    #: By root.
    _cached: dict[str, _Cached] = field(default_factory=dict, init=False)
    #: When each sharing provider was last read for a tree, by root and provider.
    _shared_at: dict[tuple[str, str], float] = field(default_factory=dict, init=False)
    #: Providers to read again, whatever their generation.
    _unsure: set[str] = field(default_factory=set, init=False)

    # --- What is known ----------------------------------------------------------------------------

    def tree_of(self, root: str) -> ProviderSubTree:
        """The cached tree of a root; not a copy.

        Raises:
            ValueError: it was not read.
        """
        if (cached := self._cached.get(root)) is None:
            raise ValueError(f"The tree of {root} was not read yet")
        return cached.tree

    def tree_with(self, name_or_uuid: str) -> ProviderSubTree:
        """The cached tree that contains a provider; not a copy.

        Raises:
            ValueError: none does.
        """
        return self._cached_with(name_or_uuid).tree

    def find_fresh_tree_with(self, name_or_uuid: str) -> ProviderSubTree | None:
        """The cached tree that contains a provider, unless it is too old to be edited."""
        cached = self._find(name_or_uuid)
        tree = self._recent_tree(cached)
        if cached is None or cached.is_outdated or tree is None:
            return None
        is_sure = self._unsure.isdisjoint(tree.get_provider_uuids(tree.scope_rp_uuid))
        return tree if is_sure else None

    def name_of(self, uuid: str) -> str | None:
        """The name of a provider in the cache."""
        names = (cached.tree.find_name(uuid) for cached in list(self._cached.values()))
        return next((name for name in names if name is not None), None)

    def allocations_in(self, root: str) -> Allocations | None:
        """The allocations of a tree's consumers when they were last read."""
        cached = self._cached.get(root)
        return None if cached is None else cached.allocations

    def doubt(self, uuids: Iterable[str]) -> None:
        """Read providers again the next time their tree is checked."""
        self._unsure.update(uuids)

    def outdate(self, root: str) -> None:
        """Mark a tree as possibly changed; the next check finds out."""
        if (cached := self._cached.get(root)) is not None:
            cached.is_outdated = True

    def forget(self) -> None:
        """Clear the cache."""
        self._cached.clear()
        self._shared_at.clear()
        self.whole_trees.forget()
        self._unsure.clear()

    # --- Asking the service -----------------------------------------------------------------------

    def look_at(self, uuid: str, make: Callable[[], tuple[Listed, bool]]) -> ProviderSubTree:
        """Read the current tree that contains a provider; not a copy.

        Args:
            make: creates the provider if it does not exist; returns it, and whether it is new.

        Raises:
            NotThere: providers of the tree keep disappearing while it is read.
        """
        return repeated(lambda: self._look_at_once(uuid, make), _LISTINGS_MAX, NotThere)

    def allocations_of(self, name_or_uuid: str) -> Allocations:
        """Read all allocations of the consumers of a provider's tree, including those in other
        trees; a copy.

        Every consumer is read each time: one that was deleted and created again may have the same
        generation and amounts here, but other allocations elsewhere, which a reshape would delete.

        Raises:
            ValueError: no tree that was read contains the provider.
        """
        cached = self._cached_with(name_or_uuid)
        consumers: dict[str, None] = {}
        for uuid in cached.tree.get_provider_uuids(cached.tree.scope_rp_uuid):
            consumers |= dict.fromkeys(self.service.get_part(uuid, "allocations"))
        cached.allocations = {
            consumer: body
            for consumer in consumers
            if (body := self.service.get(named_path("/allocations", consumer)))["allocations"]
        }
        return copy.deepcopy(cached.allocations)

    def keep_whole(self, whole: WholeTree) -> ProviderSubTree:
        """Keep a tree that was read or written as a whole, with the providers that share with it;
        not a copy.
        """
        root = whole.root
        cached = self._cached.get(root)
        last_read = self._recent_tree(cached)
        tree = ProviderSubTree(root)
        tree.populate_from_iterable(map(listed_of, whole.lines))
        for data in map(data_of, whole.lines):
            _put(tree, data)
        self._unsure.difference_update(tree.get_provider_uuids())
        if cached is not None and last_read is not None and self._shares_as_before(tree, cached):
            for data in last_read.roots:
                if data.uuid != root:
                    tree.new_root(data.name, data.uuid, data.generation)
                    _put(tree, data)
            self._keep(tree, is_complete=False)
        else:
            self._add_sharing(tree, last_read)
            kept = self._keep(tree, is_complete=last_read is None)
            kept.shared_listed_at = self.clock()
        return tree

    # --- Inside -----------------------------------------------------------------------------------

    def _cached_with(self, name_or_uuid: str) -> _Cached:
        cached = self._find(name_or_uuid)
        if cached is None:
            raise ValueError(f"No such provider {name_or_uuid} in a tree that was read")
        return cached

    def _find(self, name_or_uuid: str) -> _Cached | None:
        # A copy: another thread may be reading a new tree.
        for root, cached in list(self._cached.items()):
            tree = cached.tree
            if tree.exists(name_or_uuid) and tree.get_root_uuid(name_or_uuid) == root:
                return cached
        return None

    def _look_at_once(self, uuid: str, make: Callable[[], tuple[Listed, bool]]) -> ProviderSubTree:
        whole = self.whole_trees.read(uuid, self._recent_root_of)
        if isinstance(whole, WholeTree):
            return self.keep_whole(whole)
        listed = [] if whole is Absent.PROVIDER else self.service.list_providers(in_tree=uuid)
        if not listed:
            made, is_new = make()
            if is_new and made["parent_provider_uuid"] is None:
                tree = ProviderSubTree(made["uuid"])
                tree.populate_from_iterable([made])
                self._keep(tree, is_complete=True)
                return tree
            if whole is Absent.PROVIDER and is_new:
                return self._look_at_once(uuid, make)
            listed = self.service.list_providers(in_tree=uuid)
            if not listed:
                raise NotThere(
                    f"GET /resource_providers?in_tree={uuid}",
                    detail="it disappeared as soon as it was created",
                )
        root = next(
            provider["uuid"] for provider in listed if provider.get("parent_provider_uuid") is None
        )
        last_read = self._recent_tree(self._cached.get(root))
        tree = ProviderSubTree(root)
        tree.populate_from_iterable(listed)
        for provider in listed:
            self._fill(tree, provider, last_read)
        self._add_sharing(tree, last_read)
        self._keep(tree, is_complete=last_read is None)
        return tree

    def _shares_as_before(self, tree: ProviderSubTree, cached: _Cached) -> bool:
        """Whether what was read a little earlier of those that share with a tree still holds."""
        root = tree.scope_rp_uuid
        sharing = {data.uuid for data in cached.tree.roots} - {root}
        return (
            self.clock() - cached.shared_listed_at < _SHARED_S
            and _aggregates_of(tree, root) == _aggregates_of(cached.tree, root)
            and self._unsure.isdisjoint(sharing)
        )

    def _add_sharing(self, tree: ProviderSubTree, last_read: ProviderTree | None) -> None:
        """Add the providers that share with a tree, whose data may be a little older."""
        now = self.clock()
        for provider in self._sharing_with(tree):
            tree.new_root(provider["name"], provider["uuid"], provider["generation"])
            key = tree.scope_rp_uuid, provider["uuid"]
            is_recent = now - self._shared_at.get(key, -inf) < _SHARED_S
            if not self._fill(tree, provider, last_read, is_recent=is_recent):
                self._shared_at[key] = now

    def _keep(self, tree: ProviderSubTree, *, is_complete: bool) -> _Cached:
        """Keep a tree, and drop others with its providers: each was moved here from there."""
        root = tree.scope_rp_uuid
        own = set(tree.get_provider_uuids(root))
        for other, cached in list(self._cached.items()):
            if other != root and not own.isdisjoint(cached.tree.get_provider_uuids(other)):
                self._cached.pop(other, None)
                self.whole_trees.forget(other)
        cached = self._cached.setdefault(root, _Cached(tree))
        cached.tree, cached.is_outdated = tree, False
        if is_complete:
            cached.read_at = self.clock()
        return cached

    def _recent_tree(self, cached: _Cached | None) -> ProviderSubTree | None:
        """A cached tree, unless it has to be read completely."""
        if cached is None or self.clock() - cached.read_at >= self.refresh_s:
            return None
        return cached.tree

    def _recent_root_of(self, uuid: str) -> str | None:
        """The root of the cached tree that contains a provider, unless the tree has to be read
        completely."""
        tree = self._recent_tree(self._find(uuid))
        return None if tree is None else tree.scope_rp_uuid

    def _fill(
        self,
        tree: ProviderTree,
        provider: Listed,
        last_read: ProviderTree | None,
        *,
        is_recent: bool = False,
    ) -> bool:
        """Fill a provider from the cache if its generation is unchanged, else from the service.

        Args:
            is_recent: whether the cache will do in any case.

        Returns:
            Whether the cache was used only because it is recent.
        """
        uuid = provider["uuid"]
        if last_read is not None and last_read.exists(uuid) and uuid not in self._unsure:
            data = last_read.data(uuid)
            if is_recent or data.generation == provider["generation"]:
                _put(tree, data)
                return is_recent
        _put(tree, self._read(tree.data(uuid)))
        self._unsure.discard(uuid)
        return False

    def _read(self, data: ProviderData) -> ProviderData:
        """Read a provider's inventory, aggregates and traits.

        These are three requests. If another client writes in between, the oldest generation is
        kept, so that the next check reads them again.
        """
        inventories = self.service.get(provider_path(data.uuid, "inventories"))
        aggregates = self.service.get(provider_path(data.uuid, "aggregates"))
        traits = self.service.get(provider_path(data.uuid, "traits"))
        return data._replace(
            generation=min(
                body["resource_provider_generation"] for body in (inventories, aggregates, traits)
            ),
            inventory=inventories["inventories"],
            aggregates=set(aggregates["aggregates"]),
            traits=set(traits["traits"]),
        )

    def _sharing_with(self, tree: ProviderSubTree) -> Iterator[Listed]:
        """The providers outside of a tree that share with its aggregates."""
        aggregates = sorted(_aggregates_of(tree, tree.scope_rp_uuid))
        seen = set(tree.get_provider_uuids())
        for start in range(0, len(aggregates), _AGGREGATES_MAX):
            batch = ",".join(aggregates[start : start + _AGGREGATES_MAX])
            for provider in self.service.list_providers(
                member_of=f"in:{batch}", required=SHARING_TRAIT
            ):
                if provider["uuid"] not in seen:
                    seen.add(provider["uuid"])
                    yield provider


def _aggregates_of(tree: ProviderTree, root: str) -> set[str]:
    uuids = tree.get_provider_uuids(root)
    return {aggregate for uuid in uuids for aggregate in tree.data(uuid).aggregates}


def _put(tree: ProviderTree, data: ProviderData) -> None:
    """Set the contents of a provider in a tree."""
    tree.update_inventory(data.uuid, data.inventory, data.generation)
    tree.update_aggregates(data.uuid, data.aggregates)
    tree.update_traits(data.uuid, data.traits)
    tree.update_resources(data.uuid, data.resources)
