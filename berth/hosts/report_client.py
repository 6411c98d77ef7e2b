# SPDX-License-Identifier: Apache-2.0
"""Between a host and the service: reads trees of providers, and writes what a driver changed.

Only the providers of the tree that is sent are ever written. The first argument of the methods is a
context that is not looked at: programs that were written for nova's client pass one. A tree belongs
to one thread at a time; different trees may be read and written side by side.
Source: spec/compute-side.md 2.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Set
from typing import Final, NamedTuple

from berth.hosts.consumers import ConsumerClient
from berth.hosts.errors import ComputeError, Conflict, Truth
from berth.hosts.names import Names
from berth.hosts.plan import Allocations, Plan, make_plan
from berth.hosts.preconditions import ask_whether_it_can_be, refuse_taken_name
from berth.hosts.provider_tree import Inventory, ProviderSubTree, ProviderTree
from berth.hosts.reading import TreeReader
from berth.hosts.service import Listed, Service, Transport, provider_path
from berth.hosts.undo import Change, change_of
from berth.hosts.writing import TreeWriter, create_provider
from berth.model.ids import parse_uuid_lax

#: How often an aggregate is changed anew where others change the provider meanwhile.
_AGGREGATE_ATTEMPTS_MAX: Final = 4


class TraitInfo(NamedTuple):
    """The traits of a provider."""

    traits: set[str]
    #: The provider's, when they were read.
    generation: int


class ReportClient(ConsumerClient):
    """Reads and writes the trees of one or several hosts, and what consumers hold of them.

    Args:
        transport: a keystoneauth Adapter of the service, or that of `berth.direct`.
        refresh_s: after so many seconds everything is read again, since clients of microversions
            before 1.19 change aggregates without a trace.
        note: is told of each reshape before it is sent.
        pause: waits so many seconds, where the service is busy or somebody was quicker.
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
        self._reader = TreeReader(self.service, refresh_s=refresh_s, clock=clock)

    # --- Trees ------------------------------------------------------------------------------------

    def get_provider_tree_and_ensure_root(
        self,
        context: object,
        rp_uuid: str,
        name: str | None = None,
        parent_provider_uuid: str | None = None,
    ) -> ProviderSubTree:
        """The tree that a provider stands in; the provider is made where there is none.

        Args:
            name: of a provider that has to be made; none: its uuid.

        Returns:
            A copy, to be edited, with the providers that share with the tree beside it.

        Raises:
            NameTaken: another provider has the name.
            NotThere, Refused, Unreachable: the service said so, or nothing.
        """

        def make() -> tuple[Listed, bool]:
            return create_provider(self.service, rp_uuid, name or rp_uuid, parent_provider_uuid)

        return copy.deepcopy(self._reader.look_at(rp_uuid, make))

    # nova has two methods: one that gives every tree of the process, and this one.
    get_provider_subtree_and_ensure_root = get_provider_tree_and_ensure_root

    def get_allocations_for_provider_tree(self, context: object, nodename: str) -> Allocations:
        """Everything that the consumers of a tree hold, other hosts' and sharing providers' too.

        A consumer all of whose allocations are of sharing providers is not found.

        Args:
            nodename: name or uuid of a provider of a tree that was read before.

        Returns:
            By consumer, as `GET /allocations/{consumer}` shows it; to be edited.

        Raises:
            ValueError: no such tree was read.
            NotThere: a provider is gone meanwhile.
            Refused, Unreachable: the service said so, or nothing.
        """
        return self._reader.allocations_of(self._reader.tree_with(nodename))

    def update_from_provider_tree(
        self,
        context: object,
        new_tree: ProviderTree,
        allocations: Allocations | None = None,
        *,
        truth: Truth | None = None,
        may_move: bool = True,
        may_shrink: bool = False,
    ) -> Plan:
        """Make the service's tree what a driver has made of it.

        Where `allocations` are given, inventories and allocations change in one step, wholly or
        not at all; else each provider is written by itself. New providers are made first, with
        their aggregates and traits, so that none offers anything before it is complete.

        Args:
            new_tree: from `get_provider_tree_and_ensure_root`, and edited.
            allocations: from `get_allocations_for_provider_tree`, and edited to what the consumers
                are to hold in the end; None: nothing is moved.
            truth: from a driver's `ReshapeNeeded`: who holds more in the end than before.
            may_move: whether consumers may hold less of a provider than before, and as much more
                of others.
            may_shrink: whether those in `truth` may hold less in the end than before.

        Returns:
            What was sent; empty where nothing was.

        Raises:
            BadProviderTree: nothing was sent; it says all that is wrong.
            ValueError: the tree, or what is held of it, was not read by this client yet.
            Conflict: somebody was quicker; look at the tree again, and decide anew.
            ReshapeFailed: the service refused to reshape.
            InventoryInUse, NameTaken, NotThere, Refused: the service refused another step; those
                before it are done.
            Unreachable: the last step may or may not have been done.
        """
        root = _scope_of(new_tree)
        known = self._reader.tree_of(root)
        plan = self.plan_update(
            new_tree, allocations, truth=truth, may_move=may_move, may_shrink=may_shrink
        )
        generations = {
            uuid: _generation_in(new_tree, uuid, known) for uuid in known.get_provider_uuids(root)
        }
        if allocations is not None and plan and self._note is not None:
            self._note(change_of(plan, known, new_tree, root, self.held_in(new_tree)))
        writer = TreeWriter(self.service, self._names, known, generations)
        try:
            writer.carry_out(plan, at_once=allocations is not None)
        except ComputeError:
            self._reader.outdate(root)
            raise
        if allocations is not None and plan:
            # No answer tells the generations that a reshape has moved.
            self._reader.outdate(root)
        return plan

    def plan_update(
        self,
        new_tree: ProviderTree,
        allocations: Allocations | None = None,
        *,
        truth: Truth | None = None,
        may_move: bool = True,
        may_shrink: bool = False,
    ) -> Plan:
        """What `update_from_provider_tree` would send with the same arguments; nothing is.

        Raises:
            BadProviderTree, ValueError: it would be refused.
        """
        root = _scope_of(new_tree)
        known = self._reader.tree_of(root)
        held = self._reader.held_in(root)
        if allocations is not None and held is None:
            raise ValueError(f"What is held of {root} was not read yet")
        plan = make_plan(
            known,
            new_tree,
            root,
            held=held,
            allocations=allocations,
            truth=truth,
            may_move=may_move,
            may_shrink=may_shrink,
            unknown_traits=self._names.unknown_traits(),
        )
        ask_whether_it_can_be(self.service, self._names, known, plan)
        return plan

    def held_in(self, tree: ProviderTree) -> Allocations:
        """What the consumers of a tree held when that was last asked for; empty: it was not."""
        return copy.deepcopy(self._reader.held_in(_scope_of(tree)) or {})

    def last_known_tree(self, uuid: str) -> ProviderSubTree:
        """The tree of a provider as it was last read and written; a copy, and nothing is asked.

        Raises:
            ValueError: it was not read yet.
        """
        return copy.deepcopy(self._reader.tree_with(uuid))

    def last_known_generation(self, uuid: str) -> int | None:
        """A provider's generation as it was last read or written; nothing is asked.

        Raises:
            ValueError: it was not read yet.
        """
        return self._reader.tree_with(uuid).data(uuid).generation

    def clear_provider_cache(self) -> None:
        """Forget all that was read."""
        self._reader.forget()
        self._names.forget()

    def invalidate_resource_provider(self, name_or_uuid: str, cacheonly: bool = False) -> None:
        """Read a provider again when its tree is next looked at, or edited.

        Args:
            cacheonly: not looked at; what is gone from the service is seen at the next look.
        """
        tree = self._reader.tree_with(name_or_uuid)
        self._reader.doubt([tree.data(name_or_uuid).uuid])

    # --- Single providers -------------------------------------------------------------------------

    def get_provider_traits(self, context: object, rp_uuid: str) -> TraitInfo:
        """The traits that a provider has, as the service tells now.

        Raises:
            NotThere: there is no such provider.
        """
        body = self.service.get(provider_path(rp_uuid, "traits"))
        return TraitInfo(set(body["traits"]), body["resource_provider_generation"])

    def get_resource_provider_name(self, context: object, uuid: str) -> str:
        """The name of a provider, as it was read or as the service tells.

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
        """Give a provider an inventory in place of the one it has; nothing is sent if it has it.

        Raises:
            BadProviderTree, NotThere and the rest: see `update_from_provider_tree`.
        """
        tree = self._tree_to_edit(rp_uuid)
        tree.update_inventory(rp_uuid, inv_data)
        self.update_from_provider_tree(context, tree)

    def set_traits_for_provider(
        self, context: object, rp_uuid: str, traits: Iterable[str], generation: int | None = None
    ) -> None:
        """Give a provider these traits and no others; nothing is sent if it has them.

        Args:
            generation: the provider's, where the caller has read it; None: as it was read here.

        Raises:
            BadProviderTree, NotThere and the rest: see `update_from_provider_tree`.
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
        """Put a provider into these aggregates and no others; nothing is sent if it is in them.

        Args:
            use_cache: whether what was read before will do.
            generation: the provider's, where the caller has read it; None: as it was read here.

        Raises:
            BadProviderTree, NotThere and the rest: see `update_from_provider_tree`.
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
        """Put a host's root provider into an aggregate, as it is in the service now.

        Args:
            host_name, rp_uuid: the provider, one of them.

        Raises:
            ValueError: there is no provider of that name, or neither was said.
            Conflict: others were quicker, again and again.
        """
        self._edit_aggregates(
            self._uuid_of(context, host_name, rp_uuid), add={parse_uuid_lax(agg_uuid) or agg_uuid}
        )

    def aggregate_remove_host(self, context: object, agg_uuid: str, host_name: str) -> None:
        """Take a host's root provider out of an aggregate; see `aggregate_add_host`."""
        self._edit_aggregates(
            self._uuid_of(context, host_name, None), remove={parse_uuid_lax(agg_uuid) or agg_uuid}
        )

    def get_providers_in_tree(self, context: object, uuid: str) -> list[Listed]:
        """The providers of the tree that one stands in; none where there is no such provider."""
        return self.service.list_providers(in_tree=uuid)

    def get_provider_by_name(self, context: object, name: str) -> Listed:
        """A provider by its name.

        Raises:
            ValueError: there is none.
        """
        found = self.service.list_providers(name=name)
        if not found:
            raise ValueError(f"No such provider {name}")
        return found[0]

    def refuse_taken_name(self, name: str) -> None:
        """See that a provider of this name could be made.

        Raises:
            NameTaken: there is one.
        """
        refuse_taken_name(self.service, name)

    def get_usages(self, uuid: str) -> dict[str, int]:
        """What is used of a provider, by resource class."""
        usages: dict[str, int] = self.service.get(provider_path(uuid, "usages"))["usages"]
        return usages

    # --- Inside -----------------------------------------------------------------------------------

    def _tree_to_edit(self, rp_uuid: str) -> ProviderSubTree:
        """A copy of the tree that a provider stands in, as it was read, or as it is."""

        def missing() -> tuple[Listed, bool]:
            return self.service.get(provider_path(rp_uuid)), False

        fresh = self._reader.find_fresh_tree_with(rp_uuid)
        return copy.deepcopy(fresh or self._reader.look_at(rp_uuid, missing))

    def _uuid_of(self, context: object, name: str | None, uuid: str | None) -> str:
        if uuid is not None:
            return uuid
        if name is None:
            raise ValueError("Say which host: its name, or its provider's uuid")
        return str(self.get_provider_by_name(context, name)["uuid"])

    def _edit_aggregates(
        self, uuid: str, *, add: Set[str] = frozenset(), remove: Set[str] = frozenset()
    ) -> None:
        path = provider_path(uuid, "aggregates")
        for attempts_left in reversed(range(_AGGREGATE_ATTEMPTS_MAX)):
            there = self.service.get(path)
            # The service shows each as it was once spelled, and should get it back like that.
            spelled = {parse_uuid_lax(text) or text: text for text in there["aggregates"]}
            wanted = (spelled.keys() | add) - remove
            if wanted == spelled.keys():
                return
            sent = sorted(spelled.get(uuid, uuid) for uuid in wanted)
            try:
                self.service.put(path, {**there, "aggregates": sent})
            except Conflict:
                if not attempts_left:
                    raise
            else:
                self._reader.doubt([uuid])
                return


def _generation_in(tree: ProviderTree, uuid: str, known: ProviderTree) -> int | None:
    """A provider's generation when the tree was read; a driver may have made it anew since."""
    read = tree.data(uuid).generation if tree.exists(uuid) else None
    return known.data(uuid).generation if read is None else read


def _scope_of(tree: ProviderTree) -> str:
    """The root of the tree that is to be sent.

    Raises:
        ValueError: there are several, and nothing says which.
    """
    if isinstance(tree, ProviderSubTree):
        return tree.scope_rp_uuid
    roots = [data.uuid for data in tree.roots]
    if len(roots) != 1:
        raise ValueError(f"Say which of {len(roots)} trees is to be sent: hand over its subtree()")
    return roots[0]
