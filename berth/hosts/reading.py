# SPDX-License-Identifier: Apache-2.0
"""Trees as the service has them, read with few requests and kept.

A look at a tree costs one request, which tells every provider's generation; only providers whose
generation has moved are read again. The providers that share with a tree's aggregates cost one
request more, and stand beside it as roots. Clients of microversions before 1.19 change aggregates
without moving a generation, so everything is read again from time to time.
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

#: Aggregates that are asked for with one request.
_AGGREGATES_MAX: Final = 200

#: How often a tree is listed anew where providers vanish while it is read.
_LISTINGS_MAX: Final = 5

#: Seconds for which it is enough to know what a sharing provider offered: each claim moves its
#: generation, and a driver only wants to know which classes it shares.
_SHARED_S: Final = 300.0


class TreeReader:
    """What is known of the trees of one or several hosts."""

    def __init__(self, service: Service, *, refresh_s: float, clock: Callable[[], float]) -> None:
        self._service = service
        self._refresh_s = refresh_s
        self._clock = clock
        #: By their roots.
        self._trees: dict[str, ProviderSubTree] = {}
        #: When each was last read as a whole.
        self._read_at: dict[str, float] = {}
        #: What the consumers of each held when that was last asked for.
        self._held: dict[str, Allocations] = {}
        #: When each sharing provider was last read for a tree: by its root and the provider.
        self._shared_at: dict[tuple[str, str], float] = {}
        #: Providers to be read again, whatever their generation.
        self._unsure: set[str] = set()
        #: Roots of trees that may have changed since they were read.
        self._outdated: set[str] = set()

    # --- What is known ----------------------------------------------------------------------------

    def tree_of(self, root: str) -> ProviderSubTree:
        """A tree as it was last read; not a copy.

        Raises:
            ValueError: it was not.
        """
        if root not in self._trees:
            raise ValueError(f"The tree of {root} was not read yet")
        return self._trees[root]

    def tree_with(self, name_or_uuid: str) -> ProviderSubTree:
        """The tree that a provider stands in.

        Raises:
            ValueError: it is in none that was read.
        """
        tree = self._find_tree_with(name_or_uuid)
        if tree is None:
            raise ValueError(f"No such provider {name_or_uuid} in a tree that was read")
        return tree

    def find_fresh_tree_with(self, name_or_uuid: str) -> ProviderSubTree | None:
        """The tree that a provider stands in, unless it should be looked at before it is edited."""
        tree = self._find_tree_with(name_or_uuid)
        if tree is None:
            return None
        root = tree.scope_rp_uuid
        is_sure = self._unsure.isdisjoint(tree.get_provider_uuids(root))
        is_fresh = is_sure and root not in self._outdated and not self._is_old(root)
        return tree if is_fresh else None

    def name_of(self, uuid: str) -> str | None:
        """A provider's name, where it was read."""
        return next(
            (tree.data(uuid).name for tree in self._trees.values() if tree.exists(uuid)), None
        )

    def held_in(self, root: str) -> Allocations | None:
        """What the consumers of a tree held when that was last asked for."""
        return self._held.get(root)

    def doubt(self, uuids: Iterable[str]) -> None:
        """Read providers again when their tree is next looked at."""
        self._unsure.update(uuids)

    def outdate(self, root: str) -> None:
        """Note that a tree may have changed; the next look tells what has."""
        self._outdated.add(root)

    def forget(self) -> None:
        """Forget everything."""
        self._trees.clear()
        self._read_at.clear()
        self._held.clear()
        self._shared_at.clear()
        self._unsure.clear()
        self._outdated.clear()

    # --- Asking the service -----------------------------------------------------------------------

    def look_at(self, uuid: str, make: Callable[[], tuple[Listed, bool]]) -> ProviderSubTree:
        """The tree that a provider stands in, as it is now; not a copy.

        Args:
            make: makes the provider where there is none; the provider, and whether it is new.

        Raises:
            NotThere: providers of it vanish again and again while it is read.
        """
        for _ in range(_LISTINGS_MAX - 1):
            try:
                return self._look_at_once(uuid, make)
            except NotThere:
                continue
        return self._look_at_once(uuid, make)

    def allocations_of(self, tree: ProviderSubTree) -> Allocations:
        """Everything that the consumers of a tree hold, wherever; a copy of what is kept.

        Every consumer is asked for each time: one who went and came again may have the generation
        and the amounts that he had here, hold something else elsewhere, and lose that to a reshape.
        """
        root = tree.scope_rp_uuid
        consumers: dict[str, None] = {}
        for uuid in tree.get_provider_uuids(root):
            consumers |= dict.fromkeys(
                self._service.get(provider_path(uuid, "allocations"))["allocations"]
            )
        asked = {one: self._service.get(named_path("/allocations", one)) for one in consumers}
        held = {one: body for one, body in asked.items() if body["allocations"]}
        self._held[root] = held
        return copy.deepcopy(held)

    # --- Inside -----------------------------------------------------------------------------------

    def _find_tree_with(self, name_or_uuid: str) -> ProviderSubTree | None:
        # A copy: another thread may be reading a tree that was not known.
        for root, tree in list(self._trees.items()):
            if tree.exists(name_or_uuid) and tree.get_root_uuid(name_or_uuid) == root:
                return tree
        return None

    def _look_at_once(self, uuid: str, make: Callable[[], tuple[Listed, bool]]) -> ProviderSubTree:
        listed = self._service.list_providers(in_tree=uuid)
        if not listed:
            made, is_new = make()
            if is_new and made["parent_provider_uuid"] is None:
                return self._keep_new(made)
            listed = self._service.list_providers(in_tree=uuid)
            if not listed:
                raise NotThere(
                    f"GET /resource_providers?in_tree={uuid}",
                    status=200,
                    code="",
                    detail="it is gone again, as soon as it was made",
                )
        root = next(one["uuid"] for one in listed if one.get("parent_provider_uuid") is None)
        now = self._clock()
        is_old = self._is_old(root)
        known = None if is_old else self._trees.get(root)
        tree = ProviderSubTree(root)
        tree.populate_from_iterable(listed)
        for provider in listed:
            self._fill(tree, provider, known)
        for provider in self._sharing_with(tree):
            tree.new_root(provider["name"], provider["uuid"], provider["generation"])
            self._fill_shared(tree, provider, known)
        self._forget_others_with(listed, root)
        self._trees[root] = tree
        self._outdated.discard(root)
        if is_old:
            self._read_at[root] = now
        return tree

    def _is_old(self, root: str) -> bool:
        """Whether a tree has to be read as a whole."""
        return self._clock() - self._read_at.get(root, -inf) >= self._refresh_s

    def _forget_others_with(self, listed: Iterable[Listed], root: str) -> None:
        """A provider stands in one tree; where it stood before somebody moved it, it is no more."""
        own = {provider["uuid"] for provider in listed}
        for other, tree in list(self._trees.items()):
            if other != root and not own.isdisjoint(tree.get_provider_uuids(other)):
                for kept in self._trees, self._read_at, self._held:
                    kept.pop(other, None)

    def _keep_new(self, root: Listed) -> ProviderSubTree:
        """The tree of a root that was made just now: nobody has given it anything yet."""
        tree = ProviderSubTree(root["uuid"])
        tree.populate_from_iterable([root])
        self._trees[root["uuid"]] = tree
        self._read_at[root["uuid"]] = self._clock()
        return tree

    def _fill(self, tree: ProviderTree, provider: Listed, known: ProviderTree | None) -> None:
        """Give a provider of a tree what is known of its generation, or what the service says."""
        uuid = provider["uuid"]
        if known is not None and known.exists(uuid) and uuid not in self._unsure:
            data = known.data(uuid)
            if data.generation == provider["generation"]:
                _put(tree, data)
                return
        _put(tree, self._read(tree.data(uuid)))
        self._unsure.discard(uuid)

    def _fill_shared(
        self, tree: ProviderSubTree, provider: Listed, known: ProviderTree | None
    ) -> None:
        """As `_fill`, but what was known a while ago will do."""
        uuid = provider["uuid"]
        key = tree.scope_rp_uuid, uuid
        is_known = known is not None and known.exists(uuid) and uuid not in self._unsure
        now = self._clock()
        if known is not None and is_known and now - self._shared_at.get(key, -inf) < _SHARED_S:
            _put(tree, known.data(uuid))
            return
        self._fill(tree, provider, known)
        self._shared_at[key] = now

    def _read(self, data: ProviderData) -> ProviderData:
        """A provider's inventory, aggregates and traits.

        They are three requests; where somebody writes in between, the oldest generation is taken,
        so that the next look reads them again.
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
        own = tree.get_provider_uuids()
        aggregates = sorted({one for uuid in own for one in tree.data(uuid).aggregates})
        seen = set(own)
        for start in range(0, len(aggregates), _AGGREGATES_MAX):
            some = ",".join(aggregates[start : start + _AGGREGATES_MAX])
            for provider in self._service.list_providers(
                member_of=f"in:{some}", required=SHARING_TRAIT
            ):
                if provider["uuid"] not in seen:
                    seen.add(provider["uuid"])
                    yield provider


def _put(tree: ProviderTree, data: ProviderData) -> None:
    """Give a provider of a tree its contents."""
    tree.update_inventory(data.uuid, data.inventory, data.generation)
    tree.update_aggregates(data.uuid, data.aggregates)
    tree.update_traits(data.uuid, data.traits)
    tree.update_resources(data.uuid, data.resources)
