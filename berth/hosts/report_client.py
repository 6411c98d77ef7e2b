# SPDX-License-Identifier: Apache-2.0
"""Reads trees of providers from the service, and writes what a driver changed.

Only providers of the tree that is sent are ever written. The first argument of most methods is a
context, which is ignored: programs that were written for nova's client pass one. A tree belongs to
one thread at a time; several threads may read and write different trees.
Source: spec/compute-side.md 2.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from berth.hosts.consumers import ConsumerClient, repeat_after_conflicts
from berth.hosts.errors import ComputeError, Unreachable
from berth.hosts.plan import Allocations, Moves, Plan, make_plan
from berth.hosts.provider_tree import Inventory, ProviderSubTree, ProviderTree
from berth.hosts.reading import TreeReader
from berth.hosts.service import Listed, Service, Transport, provider_path
from berth.hosts.undo import Change, change_of
from berth.hosts.whole_trees import WholeTrees, listed_of
from berth.hosts.writing import (
    Names,
    TreeWriter,
    ask_whether_it_can_be,
    create_provider,
    refuse_taken_name,
)
from berth.model.ids import parse_uuid_lax
from berth.model.names import is_custom_class_name


class TraitInfo(NamedTuple):
    """The traits of a provider."""

    traits: set[str]
    #: The provider's generation when they were read.
    generation: int


class ReportClient(ConsumerClient):
    """Reads and writes the trees of one or several hosts, and the allocations of their consumers.

    Args:
        transport: a keystoneauth Adapter for the service, or that of `berth.direct`.
        refresh_s: read everything again after this many seconds, since clients of microversions
            before 1.19 change aggregates without increasing a generation.
        note: called with each reshape before it is sent.
        pause: waits for a number of seconds, when the service is busy or after a conflict.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        refresh_s: float = 3600.0,
        clock: Callable[[], float] = time.monotonic,
        note: Callable[[Change], None] | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(Service(transport, pause=pause), pause=pause)
        self._note = note
        self._names = Names(self.service, clock)
        self._whole_trees = WholeTrees(self.service, clock)
        self._reader = TreeReader(self.service, self._whole_trees, refresh_s=refresh_s, clock=clock)

    # --- Trees ------------------------------------------------------------------------------------

    def get_provider_tree_and_ensure_root(
        self,
        context: object,
        rp_uuid: str,
        name: str | None = None,
        parent_provider_uuid: str | None = None,
    ) -> ProviderSubTree:
        """Read the tree that contains a provider; create the provider if it does not exist.

        Args:
            name: the name of a provider that has to be created; None: its UUID.

        Returns:
            A copy, to be edited, with the providers that share with the tree as roots of their own.

        Raises:
            NameTaken: another provider has the name.
            NotThere, Refused, Unreachable: a request failed.
        """

        def make() -> tuple[Listed, bool]:
            if parent_provider_uuid is None and (
                whole := self._whole_trees.create_root(rp_uuid, name or rp_uuid)
            ):
                return listed_of(whole.lines[0]), True
            return create_provider(self.service, rp_uuid, name or rp_uuid, parent_provider_uuid)

        return copy.deepcopy(self._reader.look_at(rp_uuid, make))

    # nova has two methods: one that returns every tree of the process, and this one.
    get_provider_subtree_and_ensure_root = get_provider_tree_and_ensure_root

    def get_allocations_for_provider_tree(self, context: object, nodename: str) -> Allocations:
        """Read all allocations of a tree's consumers, including those on other hosts and sharing
        providers.

        Consumers with allocations on sharing providers only are not included.

        Args:
            nodename: the name or UUID of a provider in a tree that was read before.

        Returns:
            By consumer, as `GET /allocations/{consumer}` shows it; to be edited.

        Raises:
            ValueError: no such tree was read.
            NotThere: a provider was deleted meanwhile.
            Refused, Unreachable: a request failed.
        """
        return self._reader.allocations_of(nodename)

    def update_from_provider_tree(
        self, context: object, new_tree: ProviderTree, allocations: Allocations | None = None
    ) -> Plan:
        """Write a driver's changes to the service: `update` with these allocations.

        Args:
            allocations: from `get_allocations_for_provider_tree`, edited to the wanted state; None:
                nothing moves.
        """
        return self.update(new_tree, Moves(allocations))

    def update(self, new_tree: ProviderTree, moves: Moves) -> Plan:
        """Write a driver's changes to the service.

        With allocations, inventories and allocations change in one step, completely or not at all;
        without, each provider is written separately. New providers are created first, with their
        aggregates and traits, so that none offers anything before it is complete.

        Args:
            new_tree: from `get_provider_tree_and_ensure_root`, edited.
            moves: what is to become of the allocations.

        Returns:
            What was sent; empty if nothing differed.

        Raises:
            BadProviderTree: the tree is invalid; nothing was sent.
            ValueError: this client has not read the tree, or its allocations, yet.
            Conflict: another client was faster; read the tree again and decide again.
            ReshapeFailed: the service refused the reshape.
            InventoryInUse, NameTaken, NotThere, Refused: the service refused another step; the
                steps before it are done.
            Unreachable: the last step may or may not have been done.
        """
        root = _scope_of(new_tree)
        last_read = self._reader.tree_of(root)
        plan = self._planned(new_tree, moves)
        at_once = moves.allocations is not None
        self._names.ensure_classes(filter(is_custom_class_name, new_tree.expected_classes))
        uuids = last_read.get_provider_uuids(root)
        generations = {uuid: _generation_in(new_tree, uuid, last_read) for uuid in uuids}
        # A tree that was read before others wrote is sent with the generations that it had then.
        is_newest = all(generations[uuid] == last_read.data(uuid).generation for uuid in uuids)
        if not plan or (not at_once and is_newest and self._is_written_whole(plan, last_read)):
            return plan
        ask_whether_it_can_be(self.service, self._names, last_read, plan)
        self._whole_trees.forget(root)
        if at_once and self._note is not None:
            self._note(change_of(plan, last_read, new_tree, root, self.allocations_in(new_tree)))
        writer = TreeWriter(self.service, self._names, last_read, generations)
        try:
            writer.carry_out(plan, at_once=at_once)
        except ComputeError:
            self._reader.outdate(root)
            raise
        if at_once:
            # No response contains the generations that a reshape has increased.
            self._reader.outdate(root)
        return plan

    def plan_update(self, new_tree: ProviderTree, moves: Moves) -> Plan:
        """What `update` would send; nothing is sent.

        Raises:
            BadProviderTree, ValueError: the update would be refused.
        """
        plan = self._planned(new_tree, moves)
        last_read = self._reader.tree_of(_scope_of(new_tree))
        ask_whether_it_can_be(self.service, self._names, last_read, plan)
        return plan

    def drains_of(self, uuid: str) -> Mapping[str, Sequence[str]]:
        """The drains in effect in a provider's tree, as it was last read: for each the names of the
        providers that it drains. Empty where the service is not berth; sends no request."""
        return self._whole_trees.drains_of(self._reader.tree_with(uuid).scope_rp_uuid)

    def reason_of_drain(self, drain: str) -> str:
        """Why a drain was created, and by whom; empty if the service does not say."""
        return self._whole_trees.reason_of(drain)

    def _planned(self, new_tree: ProviderTree, moves: Moves) -> Plan:
        """What differs, before the service was asked whether it can be."""
        root = _scope_of(new_tree)
        last_read = self._reader.tree_of(root)
        current = self._reader.allocations_in(root)
        if moves.allocations is not None and current is None:
            raise ValueError(f"The allocations of {root} were not read yet")
        return make_plan(
            last_read,
            new_tree,
            root,
            current=current,
            moves=moves,
            unknown_traits=self._names.unknown_traits(),
        )

    def _is_written_whole(self, plan: Plan, last_read: ProviderSubTree) -> bool:
        """Carry out a plan in one request, if the service has one for it and does not refuse.

        Raises:
            Unreachable: it may have been carried out.
        """
        root = last_read.scope_rp_uuid
        try:
            whole = self._whole_trees.write(plan, last_read, root)
        except Unreachable:
            self._reader.outdate(root)
            raise
        if whole is not None:
            self._reader.keep_whole(whole)
        return whole is not None

    def allocations_in(self, tree: ProviderTree) -> Allocations:
        """The allocations of a tree's consumers when they were last read; empty if never."""
        return copy.deepcopy(self._reader.allocations_in(_scope_of(tree)) or {})

    def last_known_tree(self, uuid: str) -> ProviderSubTree:
        """A copy of a provider's tree, as it was last read or written; sends no request.

        Raises:
            ValueError: it was not read yet.
        """
        return copy.deepcopy(self._reader.tree_with(uuid))

    def last_known_generation(self, uuid: str) -> int | None:
        """A provider's generation as it was last read or written; no request.

        Raises:
            ValueError: it was not read yet.
        """
        return self._reader.tree_with(uuid).data(uuid).generation

    def clear_provider_cache(self) -> None:
        """Forget everything that was read."""
        self._reader.forget()
        self._names.forget()

    def invalidate_resource_provider(self, name_or_uuid: str, cacheonly: bool = False) -> None:
        """Read a provider again the next time its tree is checked or edited.

        Args:
            cacheonly: ignored; the next check notices whatever was deleted in the service.
        """
        tree = self._reader.tree_with(name_or_uuid)
        self._reader.doubt([tree.data(name_or_uuid).uuid])

    # --- Single providers -------------------------------------------------------------------------

    def get_provider_traits(self, context: object, rp_uuid: str) -> TraitInfo:
        """Read the current traits of a provider.

        Raises:
            NotThere: there is no such provider.
        """
        body = self.service.get(provider_path(rp_uuid, "traits"))
        return TraitInfo(set(body["traits"]), body["resource_provider_generation"])

    def get_resource_provider_name(self, context: object, uuid: str) -> str:
        """The name of a provider, from the cache or from the service.

        Raises:
            NotThere: there is no such provider.
        """
        name = self._reader.name_of(uuid)
        if name is None:
            name = str(self.service.get(provider_path(uuid))["name"])
        return name

    def set_inventory_for_provider(
        self, context: object, rp_uuid: str, inv_data: Inventory
    ) -> None:
        """Replace the inventory of a provider; send nothing if it is unchanged.

        Raises:
            BadProviderTree, NotThere and others: see `update_from_provider_tree`.
        """
        tree = self._tree_to_edit(rp_uuid)
        tree.update_inventory(rp_uuid, inv_data)
        self.update_from_provider_tree(context, tree)

    def set_traits_for_provider(
        self, context: object, rp_uuid: str, traits: Iterable[str], generation: int | None = None
    ) -> None:
        """Replace the traits of a provider; send nothing if they are unchanged.

        Args:
            generation: the provider's generation, if the caller has read it; None: the cached one.

        Raises:
            BadProviderTree, NotThere and others: see `update_from_provider_tree`.
        """
        tree = self._tree_to_edit(rp_uuid)
        tree.update_traits(rp_uuid, traits, generation)
        self.update_from_provider_tree(context, tree)

    def set_aggregates_for_provider(
        self,
        context: object,
        rp_uuid: str,
        aggregates: Iterable[str],
        use_cache: bool = True,
        generation: int | None = None,
    ) -> None:
        """Replace the aggregates of a provider; send nothing if they are unchanged.

        Args:
            use_cache: whether the cached aggregates may be used.
            generation: the provider's generation, if the caller has read it; None: the cached one.

        Raises:
            BadProviderTree, NotThere and others: see `update_from_provider_tree`.
        """
        if not use_cache:
            self._reader.doubt([rp_uuid])
        tree = self._tree_to_edit(rp_uuid)
        tree.update_aggregates(rp_uuid, aggregates, generation)
        self.update_from_provider_tree(context, tree)

    def aggregate_add_host(
        self,
        context: object,
        agg_uuid: str,
        host_name: str | None = None,
        rp_uuid: str | None = None,
    ) -> None:
        """Add a host's root provider to an aggregate, in its current state in the service.

        Args:
            host_name, rp_uuid: identify the provider; one of them is enough.

        Raises:
            ValueError: no provider has this name, or neither was given.
            Conflict: other clients were faster several times.
        """
        self._edit_aggregates(
            self._uuid_of(host_name, rp_uuid), add={parse_uuid_lax(agg_uuid) or agg_uuid}
        )

    def aggregate_remove_host(self, context: object, agg_uuid: str, host_name: str) -> None:
        """Remove a host's root provider from an aggregate; see `aggregate_add_host`."""
        self._edit_aggregates(
            self._uuid_of(host_name, None), remove={parse_uuid_lax(agg_uuid) or agg_uuid}
        )

    def get_providers_in_tree(self, context: object, uuid: str) -> list[Listed]:
        """List the providers of the tree that contains one; empty if there is no such provider."""
        return self.service.list_providers(in_tree=uuid)

    def get_provider_by_name(self, context: object, name: str) -> Listed:
        """Find a provider by name.

        Raises:
            ValueError: there is none.
        """
        listed = self.service.list_providers(name=name)
        if not listed:
            raise ValueError(f"No such provider {name}")
        return listed[0]

    def refuse_taken_name(self, name: str) -> None:
        """Check that no provider has a name.

        Raises:
            NameTaken: one has it.
        """
        refuse_taken_name(self.service, name)

    def get_usages(self, uuid: str) -> dict[str, int]:
        """Read the usage of a provider, by resource class."""
        usages: dict[str, int] = self.service.get_part(uuid, "usages")
        return usages

    # --- Inside -----------------------------------------------------------------------------------

    def _tree_to_edit(self, rp_uuid: str) -> ProviderSubTree:
        """A copy of the tree that contains a provider, from the cache if it is recent."""

        def missing() -> tuple[Listed, bool]:
            return self.service.get(provider_path(rp_uuid)), False

        fresh = self._reader.find_fresh_tree_with(rp_uuid)
        return copy.deepcopy(fresh or self._reader.look_at(rp_uuid, missing))

    def _uuid_of(self, name: str | None, uuid: str | None) -> str:
        if uuid is not None:
            return uuid
        if name is None:
            raise ValueError("Give the host's name, or its provider's UUID")
        return str(self.get_provider_by_name(None, name)["uuid"])

    def _edit_aggregates(
        self, uuid: str, *, add: Set[str] = frozenset(), remove: Set[str] = frozenset()
    ) -> None:
        path = provider_path(uuid, "aggregates")

        def edit() -> None:
            current = self.service.get(path)
            # The service shows each aggregate as it was first spelled, and gets it back in that
            # form.
            spelled = {parse_uuid_lax(text) or text: text for text in current["aggregates"]}
            wanted = (spelled.keys() | add) - remove
            if wanted != spelled.keys():
                sent = sorted(spelled.get(uuid, uuid) for uuid in wanted)
                self.service.put(path, {**current, "aggregates": sent})
                self._reader.doubt([uuid])

        repeat_after_conflicts(edit)


def _generation_in(tree: ProviderTree, uuid: str, last_read: ProviderTree) -> int | None:
    """A provider's generation when the tree was read; a driver may have created it again since."""
    read = tree.data(uuid).generation if tree.exists(uuid) else None
    return last_read.data(uuid).generation if read is None else read


def _scope_of(tree: ProviderTree) -> str:
    """The root of the tree to send.

    Raises:
        ValueError: there are several trees.
    """
    if isinstance(tree, ProviderSubTree):
        return tree.scope_rp_uuid
    roots = [data.uuid for data in tree.roots]
    if len(roots) != 1:
        raise ValueError(f"Cannot choose one of {len(roots)} trees: pass its subtree()")
    return roots[0]
