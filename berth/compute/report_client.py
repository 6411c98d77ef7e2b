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
from collections.abc import Callable

from berth.compute.consumers import ConsumerClient
from berth.compute.plan import Allocations, Plan, make_plan
from berth.compute.provider_tree import ProviderSubTree, ProviderTree
from berth.compute.reading import Listed, TreeReader
from berth.compute.service import Service, Transport, provider_path
from berth.compute.writing import Names, TreeWriter, create_provider


class ReportClient(ConsumerClient):
    """Reads and writes the trees of one or several hosts, and what consumers hold of them.

    Args:
        transport: a keystoneauth Adapter of the service, or that of `berth.direct`.
        refresh_s: after so many seconds everything is read again, since clients of microversions
            before 1.19 change aggregates without a trace.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        refresh_s: float = 3600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(Service(transport))
        self._names = Names(self.service)
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

        def make() -> Listed:
            return create_provider(self.service, rp_uuid, name or rp_uuid, parent_provider_uuid)

        return copy.deepcopy(self._reader.look_at(rp_uuid, make))

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
        self, context: object, new_tree: ProviderTree, allocations: Allocations | None = None
    ) -> Plan:
        """Make the service's tree what a driver has made of it.

        Where `allocations` are given, inventories and allocations change in one step, wholly or
        not at all; else each provider is written by itself. New providers are made first, with
        their aggregates and traits, so that none offers anything before it is complete.

        Args:
            new_tree: from `get_provider_tree_and_ensure_root`, and edited.
            allocations: from `get_allocations_for_provider_tree`, and edited to what the consumers
                are to hold in the end; None: nothing is moved.

        Returns:
            What was sent; empty where nothing was.

        Raises:
            BadProviderTree: nothing was sent.
            Conflict: somebody was quicker; look at the tree again, and decide anew.
            ReshapeFailed: the service refused to reshape.
            InventoryInUse, NameTaken, NotThere, Refused: the service refused another step; those
                before it are done.
            Unreachable: the last step may or may not have been done.
        """
        root = _scope_of(new_tree)
        known = self._reader.tree_of(root)
        plan = make_plan(
            known, new_tree, root, held=self._reader.held_in(root), allocations=allocations
        )
        generations = {
            uuid: new_tree.data(uuid).generation
            for uuid in new_tree.get_provider_uuids(root)
            if known.exists(uuid)
        } | {data.uuid: data.generation for data in plan.deleted}
        writer = TreeWriter(self.service, self._names, known, generations)
        writer.carry_out(plan, at_once=allocations is not None)
        return plan

    def clear_provider_cache(self) -> None:
        """Forget all that was read."""
        self._reader.forget()

    def invalidate_resource_provider(self, name_or_uuid: str) -> None:
        """Read a provider again when its tree is next looked at."""
        tree = self._reader.tree_with(name_or_uuid)
        self._reader.doubt([tree.data(name_or_uuid).uuid])

    # --- Single providers  -----------------------------------------------------------

    def get_providers_in_tree(self, context: object, uuid: str) -> list[Listed]:
        """The providers of the tree that one stands in; none where there is no such provider."""
        return self._reader.list_providers(in_tree=uuid)

    def get_provider_by_name(self, context: object, name: str) -> Listed:
        """A provider by its name.

        Raises:
            ValueError: there is none.
        """
        found = self._reader.list_providers(name=name)
        if not found:
            raise ValueError(f"No such provider {name}")
        return found[0]

    def get_usages(self, uuid: str) -> dict[str, int]:
        """What is used of a provider, by resource class."""
        usages: dict[str, int] = self.service.get(provider_path(uuid, "usages"))["usages"]
        return usages


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
