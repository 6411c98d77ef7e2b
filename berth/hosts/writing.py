# SPDX-License-Identifier: Apache-2.0
"""Carries out a plan: one request after another, in an order that can be interrupted anywhere.

Finished steps stay done, and the next plan contains only the rest. Between creating new providers
and deleting old ones, one request moves inventories and allocations together.

Before the first write, the service is asked what only it can answer: a plan that cannot succeed is
refused as a whole, and not half-way. Another client may still interfere; the service then refuses
the step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from berth.hosts.errors import (
    BadProviderTree,
    Conflict,
    NameTaken,
    NotThere,
    Refused,
    ReshapeFailed,
    Unreachable,
)
from berth.hosts.plan import Plan
from berth.hosts.provider_tree import Inventory, ProviderData, ProviderSubTree, ProviderTree
from berth.hosts.service import (
    MOVING_VERSION,
    VERSION,
    Listed,
    Service,
    named_path,
    provider_path,
)
from berth.model.names import CUSTOM_PREFIX

LOG = logging.getLogger(__name__)

# --- The names of the service: read once, and created if they are custom --------------------------

#: Seconds before a trait that the service did not know is looked up again.
_UNKNOWN_S: Final = 3600.0


class Names:
    """The resource classes and traits that the service is known to have, or not to have."""

    def __init__(self, service: Service, clock: Callable[[], float]) -> None:
        self._service = service
        self._clock = clock
        self._classes: set[str] = set()
        self._traits: set[str] = set()
        #: Standard traits of a newer release than the service's, with the time when they were
        #: looked up.
        self._unknown_traits: dict[str, float] = {}

    def unknown_traits(self) -> set[str]:
        """Traits that the service did not know when they were last looked up."""
        since = self._clock() - _UNKNOWN_S
        # A copy, because another thread may add to the original.
        asked = list(self._unknown_traits.items())
        return {name for name, asked_at in asked if asked_at > since}

    def forget(self) -> None:
        """Look everything up again: an operator may delete unused custom names."""
        self._classes.clear()
        self._traits.clear()

    def learn_classes(self, names: Iterable[str]) -> None:
        """Remember resource classes that the service has."""
        self._classes.update(names)

    def unknown_classes(self, names: Iterable[str]) -> set[str]:
        """Those of some resource classes that the service does not have."""
        if {*names} - self._classes:
            listed = self._service.get("/resource_classes")["resource_classes"]
            self.learn_classes(resource_class["name"] for resource_class in listed)
        return {*names} - self._classes

    def ensure_classes(self, names: Iterable[str]) -> None:
        """Create the custom resource classes that do not exist."""
        for name in sorted({*names} - self._classes):
            self._service.put(named_path("/resource_classes", name))
            self._classes.add(name)

    def ensure_traits(self, names: Iterable[str]) -> set[str]:
        """Create the custom traits that were not seen yet.

        Returns:
            Those of `names` that exist now: a host may know standard traits that an older service
                does
            not, which is logged.
        """
        wanted = {*names}
        if new := wanted - self._traits:
            existing = set(
                self._service.get("/traits", name=f"in:{','.join(sorted(new))}")["traits"]
            )
            for name in sorted(new - existing):
                if name.startswith(CUSTOM_PREFIX):
                    self._service.put(named_path("/traits", name))
                    existing.add(name)
            self._traits |= existing
            self._note_unknown(wanted - self._traits)
        return wanted & self._traits

    def _note_unknown(self, names: Set[str]) -> None:
        if new := names - self._unknown_traits.keys():
            LOG.warning(
                "The service does not know the traits %s, which are left out",
                ", ".join(sorted(new)),
            )
        self._unknown_traits |= dict.fromkeys(names, self._clock())


# --- Before the first write -----------------------------------------------------------------------


def ask_whether_it_can_be(
    service: Service, names: Names, tree: ProviderSubTree, plan: Plan
) -> None:
    """Check that the service would accept every step; a plan without new names costs no request.

    Args:
        tree: the tree from which the plan starts, as it was read.

    Raises:
        BadProviderTree: with everything that is in the way.
        NameTaken: another provider has the root's new name; see `adoption`.
        TooOld: the service cannot move providers to other parents.
    """
    for data in plan.renamed:
        if data.uuid == tree.scope_rp_uuid:
            refuse_taken_name(service, data.name)
    faults = [*_unknown_classes(names, tree, plan), *_taken_names(service, tree, plan)]
    if plan.allocations is None:
        faults += _use_of_what_goes(service, tree, plan)
    if faults:
        raise BadProviderTree(faults)
    if any(tree.data(data.uuid).parent_uuid != data.parent_uuid for data in plan.renamed):
        # A service that cannot move providers refuses any request at this version.
        service.get("/resource_classes", version=MOVING_VERSION)


def refuse_taken_name(service: Service, name: str) -> None:
    """Check that no provider has a name.

    Raises:
        NameTaken: one has it.
    """
    for taken in service.list_providers(name=name):
        raise NameTaken(
            f"GET /resource_providers?name={name}",
            detail=f"another provider has that name, {taken['uuid']}",
        )


def _unknown_classes(names: Names, tree: ProviderSubTree, plan: Plan) -> Iterator[str]:
    """Standard resource classes that the service does not have; custom ones can be created."""
    wanted = {name for inventory in plan.inventories.values() for name in inventory}
    if wanted:
        names.learn_classes(
            name for uuid in tree.get_provider_uuids() for name in tree.data(uuid).inventory
        )
    for name in sorted(names.unknown_classes(wanted)):
        if not name.startswith(CUSTOM_PREFIX):
            yield (
                f"the service does not know the resource class {name}: it is older than this "
                f"program, or the name of the class must begin with {CUSTOM_PREFIX}"
            )


def _taken_names(service: Service, tree: ProviderSubTree, plan: Plan) -> Iterator[str]:
    """Names that providers of other trees have."""
    own = {tree.data(uuid).name for uuid in tree.get_provider_uuids(tree.scope_rp_uuid)}
    for data in (*plan.created, *plan.renamed):
        if data.name in own:
            continue
        for provider in service.list_providers(name=data.name):
            if (provider["uuid"], provider["parent_provider_uuid"]) != (
                data.uuid,
                data.parent_uuid,
            ):
                yield f"the name {data.name} is that of provider {provider['uuid']} of another tree"


def _use_of_what_goes(service: Service, tree: ProviderSubTree, plan: Plan) -> Iterator[str]:
    """Usage of the resource classes that would be removed, if nothing moves."""
    for uuid, inventory in plan.inventories.items():
        if not tree.exists(uuid):
            continue
        before = tree.data(uuid)
        if going := sorted(before.inventory.keys() - inventory.keys()):
            usages = service.get_part(uuid, "usages")
            for name in going:
                if usages.get(name):
                    yield (
                        f"{before.name} would lose its {name}, of which {usages[name]} are "
                        f"allocated; move or release them first"
                    )


# --- The writes -----------------------------------------------------------------------------------


@dataclass(eq=False)
class TreeWriter:
    """Carries out plans for one tree.

    Attributes:
        tree: the cached tree, which is updated with what is written.
        generations: the generations of the providers from which the plan was made.
    """

    service: Service
    names: Names
    tree: ProviderTree
    generations: dict[str, int | None]

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
                self.names.forget()
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
                if self.tree.exists(uuid):
                    self._write_inventory(uuid, inventory)

    def _create(self, data: ProviderData) -> None:
        made, _ = create_provider(self.service, data.uuid, data.name, data.parent_uuid)
        self.generations[data.uuid] = made["generation"]
        if data.parent_uuid is None:
            self.tree.new_root(data.name, data.uuid, made["generation"])
        else:
            self.tree.new_child(data.name, data.parent_uuid, data.uuid, made["generation"])

    def _rename(self, data: ProviderData) -> None:
        """Rename a provider, and move it to another parent if needed, which takes a newer
        microversion.
        """
        body = {"name": data.name, "parent_provider_uuid": data.parent_uuid}
        version = MOVING_VERSION if self._moves(data) else VERSION
        self.service.put(provider_path(data.uuid), body, version=version)
        self.tree.rename(data.uuid, data.name)
        self.tree.move(data.uuid, data.parent_uuid)

    def _moves(self, data: ProviderData) -> bool:
        return self.tree.data(data.uuid).parent_uuid != data.parent_uuid

    def _reshape(self, plan: Plan) -> None:
        for inventory in plan.inventories.values():
            self.names.ensure_classes(inventory)
        body = {
            "inventories": {
                uuid: {
                    "resource_provider_generation": self.generations[uuid],
                    "inventories": inventory,
                }
                for uuid, inventory in (plan.inventories or self._one_inventory(plan)).items()
            },
            "allocations": plan.allocations or {},
        }
        try:
            self.service.post("/reshaper", body)
        except (Conflict, NotThere, Unreachable):
            raise
        except Refused as error:
            raise ReshapeFailed(str(error)) from error
        for uuid, inventory in plan.inventories.items():
            self.tree.update_inventory(uuid, inventory)

    def _one_inventory(self, plan: Plan) -> Mapping[str, Inventory]:
        """An inventory that stays as it is, because the service requires at least one."""
        root = self.tree.get_provider_uuids()[0]
        return {root: self.tree.data(root).inventory}

    def _delete(self, data: ProviderData) -> None:
        with suppress(NotThere):
            self.service.delete(provider_path(data.uuid))
        if self.tree.exists(data.uuid):
            self.tree.remove(data.uuid)

    def _write_inventory(self, uuid: str, inventory: Inventory) -> None:
        self.names.ensure_classes(inventory)
        body = self._put(uuid, "inventories", inventory)
        self.tree.update_inventory(uuid, body["inventories"], self.generations[uuid])

    def _write_memberships(self, plan: Plan) -> None:
        """Write the aggregates and traits of all providers, children first."""
        for data in plan.aggregates:
            self._put(data.uuid, "aggregates", sorted(data.aggregates))
            self.tree.update_aggregates(data.uuid, data.aggregates, self.generations[data.uuid])
        known_traits = self.names.ensure_traits(
            name for data in plan.traits for name in data.traits
        )
        for data in plan.traits:
            traits = data.traits & known_traits
            if self.tree.have_traits_changed(data.uuid, traits):
                self._put(data.uuid, "traits", sorted(traits))
                self.tree.update_traits(data.uuid, traits, self.generations[data.uuid])

    def _put(self, uuid: str, part: str, value: object) -> dict[str, Any]:
        """Replace a part of a provider, unless another client has written to it meanwhile."""
        answer: dict[str, Any] = self.service.put_part(uuid, part, value, self.generations[uuid])
        self.generations[uuid] = answer["resource_provider_generation"]
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
    try:
        return service.create_provider(uuid, name, parent), True
    except NameTaken:
        existing = service.list_providers(uuid=uuid)
        if not existing or (existing[0]["name"], existing[0]["parent_provider_uuid"]) != (
            name,
            parent,
        ):
            raise
        return existing[0], False
