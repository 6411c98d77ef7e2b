# SPDX-License-Identifier: Apache-2.0
"""Checks that only the service can answer, before a plan's first write.

A plan that cannot succeed is refused as a whole, and not half-way. Another client may still
interfere; the service then refuses the step.
"""

from __future__ import annotations

from collections.abc import Iterator

from berth.hosts.errors import BadProviderTree, NameTaken
from berth.hosts.names import Names
from berth.hosts.plan import Plan
from berth.hosts.provider_tree import ProviderSubTree
from berth.hosts.service import MOVING_VERSION, Service, provider_path
from berth.model.names import CUSTOM_PREFIX


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
            status=200,
            code="",
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
            usages = service.get(provider_path(uuid, "usages"))["usages"]
            for name in going:
                if usages.get(name):
                    yield (
                        f"{before.name} would lose its {name}, of which {usages[name]} are "
                        f"allocated; move or release them first"
                    )
