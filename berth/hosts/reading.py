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
from berth.hosts.service import Listed, Service, named_path, provider_path
from berth.hosts.whole_trees import Absent, WholeTree, WholeTrees, data_of, listed_of

#: Aggregates per request.
_AGGREGATES_MAX: Final = 200

#: How often a tree is listed again if providers disappear while it is read.
_LISTINGS_MAX: Final = 5

#: Seconds for which the inventory of a sharing provider may be out of date: each claim increases
#: its generation, and drivers only need to know which classes it shares.
_SHARED_S: Final = 300.0


class TreeReader:
    """Reads and caches the trees of one or several hosts."""

    def __init__(
        self,
        service: Service,
        whole_trees: WholeTrees,
        *,
        refresh_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._service = service
        self._whole_trees = whole_trees
        self._refresh_s = refresh_s
        self._clock = clock
        #: By root.
        self._trees: dict[str, ProviderSubTree] = {}
        #: When each tree was last read completely, by root.
        self._read_at: dict[str, float] = {}
        #: The allocations of each tree's consumers when they were last read, by root.
        self._allocations: dict[str, Allocations] = {}
        #: When each sharing provider was last read for a tree, by root and provider.
        self._shared_at: dict[tuple[str, str], float] = {}
        #: When the sharing providers were last listed for a tree, by root.
        self._shared_listed_at: dict[str, float] = {}
        #: Providers to read again, whatever their generation.
        self._unsure: set[str] = set()
        #: Roots of trees that may have changed since they were read.
        self._outdated: set[str] = set()

    # --- What is known ----------------------------------------------------------------------------

    def tree_of(self, root: str) -> ProviderSubTree:
        """The cached tree of a root; not a copy.

        Raises:
            ValueError: it was not read.
        """
        if root not in self._trees:
            raise ValueError(f"The tree of {root} was not read yet")
        return self._trees[root]

    def tree_with(self, name_or_uuid: str) -> ProviderSubTree:
        """The cached tree that contains a provider; not a copy.

        Raises:
            ValueError: none does.
        """
        tree = self._find_tree_with(name_or_uuid)
        if tree is None:
            raise ValueError(f"No such provider {name_or_uuid} in a tree that was read")
        return tree

    def find_fresh_tree_with(self, name_or_uuid: str) -> ProviderSubTree | None:
        """The cached tree that contains a provider, unless it is too old to be edited."""
        tree = self._find_tree_with(name_or_uuid)
        if tree is None:
            return None
        root = tree.scope_rp_uuid
        is_sure = self._unsure.isdisjoint(tree.get_provider_uuids(root))
        is_fresh = is_sure and root not in self._outdated and not self._is_old(root)
        return tree if is_fresh else None

    def name_of(self, uuid: str) -> str | None:
        """The name of a provider in the cache."""
        return next(
            (tree.data(uuid).name for tree in self._trees.values() if tree.exists(uuid)), None
        )

    def allocations_in(self, root: str) -> Allocations | None:
        """The allocations of a tree's consumers when they were last read."""
        return self._allocations.get(root)

    def doubt(self, uuids: Iterable[str]) -> None:
        """Read providers again the next time their tree is checked."""
        self._unsure.update(uuids)

    def outdate(self, root: str) -> None:
        """Mark a tree as possibly changed; the next check finds out."""
        self._outdated.add(root)

    def forget(self) -> None:
        """Clear the cache."""
        self._trees.clear()
        self._read_at.clear()
        self._allocations.clear()
        self._shared_at.clear()
        self._shared_listed_at.clear()
        self._whole_trees.forget()
        self._unsure.clear()
        self._outdated.clear()

    # --- Asking the service -----------------------------------------------------------------------

    def look_at(self, uuid: str, make: Callable[[], tuple[Listed, bool]]) -> ProviderSubTree:
        """Read the current tree that contains a provider; not a copy.

        Args:
            make: creates the provider if it does not exist; returns it, and whether it is new.

        Raises:
            NotThere: providers of the tree keep disappearing while it is read.
        """
        for _ in range(_LISTINGS_MAX - 1):
            try:
                return self._look_at_once(uuid, make)
            except NotThere:
                continue
        return self._look_at_once(uuid, make)

    def allocations_of(self, tree: ProviderSubTree) -> Allocations:
        """Read all allocations of a tree's consumers, including those in other trees; a copy.

        Every consumer is read each time: one that was deleted and created again may have the same
        generation and amounts here, but other allocations elsewhere, which a reshape would delete.
        """
        root = tree.scope_rp_uuid
        consumers: dict[str, None] = {}
        for uuid in tree.get_provider_uuids(root):
            consumers |= dict.fromkeys(
                self._service.get(provider_path(uuid, "allocations"))["allocations"]
            )
        asked = {
            consumer: self._service.get(named_path("/allocations", consumer))
            for consumer in consumers
        }
        allocations = {consumer: body for consumer, body in asked.items() if body["allocations"]}
        self._allocations[root] = allocations
        return copy.deepcopy(allocations)

    # --- Inside -----------------------------------------------------------------------------------

    def _find_tree_with(self, name_or_uuid: str) -> ProviderSubTree | None:
        # A copy: another thread may be reading a new tree.
        for root, tree in list(self._trees.items()):
            if tree.exists(name_or_uuid) and tree.get_root_uuid(name_or_uuid) == root:
                return tree
        return None

    def _look_at_once(self, uuid: str, make: Callable[[], tuple[Listed, bool]]) -> ProviderSubTree:
        whole: WholeTree | Absent = Absent.ROUTES
        if self._whole_trees.are_offered:
            before = self._reliable_tree_with(uuid)
            whole = self._whole_trees.read(uuid, before)
            if isinstance(whole, WholeTree):
                return self._from_whole(whole)
        listed = [] if whole is Absent.PROVIDER else self._service.list_providers(in_tree=uuid)
        if not listed:
            made, is_new = make()
            if is_new and made["parent_provider_uuid"] is None:
                return self._keep_new(made)
            if whole is Absent.PROVIDER and is_new:
                return self._look_at_once(uuid, make)
            listed = self._service.list_providers(in_tree=uuid)
            if not listed:
                raise NotThere(
                    f"GET /resource_providers?in_tree={uuid}",
                    status=200,
                    code="",
                    detail="it disappeared as soon as it was created",
                )
        root = next(
            provider["uuid"] for provider in listed if provider.get("parent_provider_uuid") is None
        )
        is_old = self._is_old(root)
        last_read = None if is_old else self._trees.get(root)
        tree = ProviderSubTree(root)
        tree.populate_from_iterable(listed)
        for provider in listed:
            self._fill(tree, provider, last_read)
        self._add_sharing(tree, last_read)
        self._keep(tree, listed, is_complete=is_old)
        return tree

    def _reliable_tree_with(self, uuid: str) -> str | None:
        """The root of the tree with a provider, if what is known of it can be relied on."""
        tree = self._find_tree_with(uuid)
        return None if tree is None or self._is_old(tree.scope_rp_uuid) else tree.scope_rp_uuid

    def _from_whole(self, whole: WholeTree) -> ProviderSubTree:
        """The tree of one that was read as a whole, with the providers that share with it."""
        root = whole.root
        last_read = None if self._is_old(root) else self._trees.get(root)
        tree = ProviderSubTree(root)
        every = [data_of(line) for line in whole.lines]
        listed = [listed_of(line) for line in whole.lines]
        tree.populate_from_iterable(listed)
        for data in every:
            _put(tree, data)
        self._unsure.difference_update(tree.get_provider_uuids())
        if last_read is not None and self._is_as_before(tree, last_read):
            for data in last_read.roots:
                if data.uuid != root:
                    tree.new_root(data.name, data.uuid, data.generation)
                    _put(tree, data)
        else:
            self._add_sharing(tree, last_read)
            self._shared_listed_at[root] = self._clock()
        self._keep(tree, listed, is_complete=last_read is None)
        return tree

    def _is_as_before(self, tree: ProviderSubTree, last_read: ProviderSubTree) -> bool:
        """Whether what was read a little earlier of those that share with a tree still holds."""
        root = tree.scope_rp_uuid
        since = self._clock() - self._shared_listed_at.get(root, -inf)
        sharing = {data.uuid for data in last_read.roots} - {root}
        return (
            since < _SHARED_S
            and _aggregates_of(tree, root) == _aggregates_of(last_read, root)
            and self._unsure.isdisjoint(sharing)
        )

    def _add_sharing(self, tree: ProviderSubTree, last_read: ProviderTree | None) -> None:
        for provider in self._sharing_with(tree):
            tree.new_root(provider["name"], provider["uuid"], provider["generation"])
            self._fill_shared(tree, provider, last_read)

    def _keep(self, tree: ProviderSubTree, listed: Iterable[Listed], *, is_complete: bool) -> None:
        root = tree.scope_rp_uuid
        self._forget_others_with(listed, root)
        self._trees[root] = tree
        self._outdated.discard(root)
        if is_complete:
            self._read_at[root] = self._clock()

    def keep_written(self, whole: WholeTree) -> None:
        """Keep a tree as it was written as a whole."""
        self._from_whole(whole)

    def _is_old(self, root: str) -> bool:
        """Whether a tree has to be read completely."""
        return self._clock() - self._read_at.get(root, -inf) >= self._refresh_s

    def _forget_others_with(self, listed: Iterable[Listed], root: str) -> None:
        """Drop other trees with these providers: each was moved here from there."""
        own = {provider["uuid"] for provider in listed}
        for other, tree in list(self._trees.items()):
            if other != root and not own.isdisjoint(tree.get_provider_uuids(other)):
                for kept in self._trees, self._read_at, self._allocations:
                    kept.pop(other, None)
                self._whole_trees.forget(other)

    def _keep_new(self, root: Listed) -> ProviderSubTree:
        """The tree of a root that was just created: it is empty."""
        tree = ProviderSubTree(root["uuid"])
        tree.populate_from_iterable([root])
        self._trees[root["uuid"]] = tree
        self._read_at[root["uuid"]] = self._clock()
        return tree

    def _fill(self, tree: ProviderTree, provider: Listed, last_read: ProviderTree | None) -> None:
        """Fill a provider from the cache if its generation is unchanged, else from the service."""
        uuid = provider["uuid"]
        if last_read is not None and last_read.exists(uuid) and uuid not in self._unsure:
            data = last_read.data(uuid)
            if data.generation == provider["generation"]:
                _put(tree, data)
                return
        _put(tree, self._read(tree.data(uuid)))
        self._unsure.discard(uuid)

    def _fill_shared(
        self, tree: ProviderSubTree, provider: Listed, last_read: ProviderTree | None
    ) -> None:
        """Like `_fill`, but accept data that is a little older."""
        uuid = provider["uuid"]
        key = tree.scope_rp_uuid, uuid
        is_known = last_read is not None and last_read.exists(uuid) and uuid not in self._unsure
        now = self._clock()
        if last_read is not None and is_known and now - self._shared_at.get(key, -inf) < _SHARED_S:
            _put(tree, last_read.data(uuid))
            return
        self._fill(tree, provider, last_read)
        self._shared_at[key] = now

    def _read(self, data: ProviderData) -> ProviderData:
        """Read a provider's inventory, aggregates and traits.

        These are three requests. If another client writes in between, the oldest generation is
        kept, so
        that the next check reads them again.
        """
        inventories = self._service.get(provider_path(data.uuid, "inventories"))
        aggregates = self._service.get(provider_path(data.uuid, "aggregates"))
        traits = self._service.get(provider_path(data.uuid, "traits"))
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
            for provider in self._service.list_providers(
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
