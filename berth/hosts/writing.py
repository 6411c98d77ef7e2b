# SPDX-License-Identifier: Apache-2.0
"""Carries out a plan: one request after another, in an order that can be interrupted anywhere.

Finished steps stay done, and the next plan contains only the rest. Between creating new providers
and deleting old ones, one request moves inventories and allocations together.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from berth.hosts.errors import (
    Conflict,
    NameTaken,
    NotThere,
    Refused,
    ReshapeFailed,
    Unreachable,
)
from berth.hosts.names import Names
from berth.hosts.plan import Plan
from berth.hosts.provider_tree import Inventory, ProviderData, ProviderTree
from berth.hosts.service import (
    MOVING_VERSION,
    VERSION,
    Listed,
    Service,
    provider_path,
)

LOG = logging.getLogger(__name__)


class TreeWriter:
    """Carries out plans for one tree.

    Args:
        tree: the cached tree, which is updated with what is written.
        generations: the generations of the providers from which the plan was made.
    """

    def __init__(
        self,
        service: Service,
        names: Names,
        tree: ProviderTree,
        generations: Mapping[str, int | None],
    ) -> None:
        self._service = service
        self._names = names
        self._tree = tree
        self._generations = dict(generations)

    def carry_out(self, plan: Plan, *, at_once: bool) -> None:
        """Send a plan.

        Aggregates and traits come before inventories, so that nothing is offered without them.

        Args:
            at_once: change inventories and allocations in one step, completely or not at all.

        Raises:
            Conflict, ReshapeFailed, Refused, Unreachable: see
                `ReportClient.update_from_provider_tree`.
        """
        try:
            self._send(plan, at_once=at_once)
        except (Refused, ReshapeFailed) as error:
            if not isinstance(error, Conflict):
                self._names.forget()
            raise

    def _send(self, plan: Plan, *, at_once: bool) -> None:
        # A new provider may take a name that becomes free, and a renamed one may get a new parent.
        for data in plan.renamed:
            if not self._moves(data):
                self._rename(data)
        for data in plan.created:
            self._create(data)
        for data in plan.renamed:
            if self._moves(data):
                self._rename(data)
        self._write_memberships(plan)
        if at_once and (plan.inventories or plan.allocations):
            self._reshape(plan)
        for data in plan.deleted:
            self._delete(data)
        if not at_once:
            for uuid, inventory in plan.inventories.items():
                if self._tree.exists(uuid):
                    self._write_inventory(uuid, inventory)

    def _create(self, data: ProviderData) -> None:
        made, _ = create_provider(self._service, data.uuid, data.name, data.parent_uuid)
        self._generations[data.uuid] = made["generation"]
        if data.parent_uuid is None:
            self._tree.new_root(data.name, data.uuid, made["generation"])
        else:
            self._tree.new_child(data.name, data.parent_uuid, data.uuid, made["generation"])

    def _rename(self, data: ProviderData) -> None:
        """Rename a provider, and move it to another parent if needed, which takes a newer
        microversion.
        """
        body = {"name": data.name, "parent_provider_uuid": data.parent_uuid}
        version = MOVING_VERSION if self._moves(data) else VERSION
        self._service.put(provider_path(data.uuid), body, version=version)
        self._tree.rename(data.uuid, data.name)
        self._tree.move(data.uuid, data.parent_uuid)

    def _moves(self, data: ProviderData) -> bool:
        return self._tree.data(data.uuid).parent_uuid != data.parent_uuid

    def _reshape(self, plan: Plan) -> None:
        for inventory in plan.inventories.values():
            self._names.ensure_classes(inventory)
        body = {
            "inventories": {
                uuid: {
                    "resource_provider_generation": self._generations[uuid],
                    "inventories": inventory,
                }
                for uuid, inventory in (plan.inventories or self._one_inventory(plan)).items()
            },
            "allocations": plan.allocations or {},
        }
        try:
            self._service.post("/reshaper", body)
        except (Conflict, NotThere, Unreachable):
            raise
        except Refused as error:
            raise ReshapeFailed(str(error)) from error
        for uuid, inventory in plan.inventories.items():
            self._tree.update_inventory(uuid, inventory)

    def _one_inventory(self, plan: Plan) -> Mapping[str, Inventory]:
        """An inventory that stays as it is, because the service requires at least one."""
        root = self._tree.get_provider_uuids()[0]
        return {root: self._tree.data(root).inventory}

    def _delete(self, data: ProviderData) -> None:
        with suppress(NotThere):
            self._service.delete(provider_path(data.uuid))
        if self._tree.exists(data.uuid):
            self._tree.remove(data.uuid)

    def _write_inventory(self, uuid: str, inventory: Inventory) -> None:
        self._names.ensure_classes(inventory)
        body = self._put(uuid, "inventories", {"inventories": inventory})
        self._tree.update_inventory(uuid, body["inventories"], self._generations[uuid])

    def _write_memberships(self, plan: Plan) -> None:
        """Write the aggregates and traits of all providers, children first."""
        for data in plan.aggregates:
            self._put(data.uuid, "aggregates", {"aggregates": sorted(data.aggregates)})
            self._tree.update_aggregates(data.uuid, data.aggregates, self._generations[data.uuid])
        known_traits = self._names.ensure_traits(
            name for data in plan.traits for name in data.traits
        )
        for data in plan.traits:
            traits = data.traits & known_traits
            if self._tree.have_traits_changed(data.uuid, traits):
                self._put(data.uuid, "traits", {"traits": sorted(traits)})
                self._tree.update_traits(data.uuid, traits, self._generations[data.uuid])

    def _put(self, uuid: str, part: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Replace a part of a provider, unless another client has written to it meanwhile."""
        answer: dict[str, Any] = self._service.put(
            provider_path(uuid, part),
            {**body, "resource_provider_generation": self._generations[uuid]},
        )
        self._generations[uuid] = answer["resource_provider_generation"]
        return answer


def create_provider(
    service: Service, uuid: str, name: str, parent: str | None
) -> tuple[Listed, bool]:
    """Create a provider, or find that another client has created it meanwhile.

    Returns:
        The provider as the service lists it, and whether it is new, and therefore empty.

    Raises:
        NameTaken: another provider has the name.
    """
    body = {"uuid": uuid, "name": name}
    if parent is not None:
        body["parent_provider_uuid"] = parent
    try:
        return service.post("/resource_providers", body), True
    except NameTaken:
        existing = service.list_providers(uuid=uuid)
        if not existing or (existing[0]["name"], existing[0]["parent_provider_uuid"]) != (
            name,
            parent,
        ):
            raise
        return existing[0], False
