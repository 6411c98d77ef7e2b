# SPDX-License-Identifier: Apache-2.0
"""What only the service can tell of a plan, asked before the first write.

So a plan that cannot be carried out is refused whole, and not in its middle. Somebody else may
still be quicker; the service then refuses that step.
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
    """See that no step of a plan would be refused; a plan without new names costs no request.

    Args:
        tree: that the plan starts from, as it was read.

    Raises:
        BadProviderTree: with all that is in the way.
        NameTaken: the root is to have a name that another provider has; see `adoption`.
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
        # A service that cannot move them says so to whatever is asked at that version.
        service.get("/resource_classes", version=MOVING_VERSION)


def refuse_taken_name(service: Service, name: str) -> None:
    """See that a provider could have a name.

    Raises:
        NameTaken: another one has it.
    """
    for taken in service.list_providers(name=name):
        raise NameTaken(
            f"GET /resource_providers?name={name}",
            status=200,
            code="",
            detail=f"another provider has that name, {taken['uuid']}",
        )


def _unknown_classes(names: Names, tree: ProviderSubTree, plan: Plan) -> Iterator[str]:
    """Standard resource classes that the service does not have; custom ones can be made."""
    wanted = {name for inventory in plan.inventories.values() for name in inventory}
    if wanted:
        names.learn_classes(
            name for uuid in tree.get_provider_uuids() for name in tree.data(uuid).inventory
        )
    for name in sorted(names.unknown_classes(wanted)):
        if not name.startswith(CUSTOM_PREFIX):
            yield (
                f"the service does not know the resource class {name}: it is older than this "
                f"program, or the class wants {CUSTOM_PREFIX} before its name"
            )


def _taken_names(service: Service, tree: ProviderSubTree, plan: Plan) -> Iterator[str]:
    """Names that providers of other trees have."""
    own = {tree.data(uuid).name for uuid in tree.get_provider_uuids(tree.scope_rp_uuid)}
    for data in (*plan.created, *plan.renamed):
        if data.name in own:
            continue
        for there in service.list_providers(name=data.name):
            if (there["uuid"], there["parent_provider_uuid"]) != (data.uuid, data.parent_uuid):
                yield f"the name {data.name} is that of provider {there['uuid']} of another tree"


def _use_of_what_goes(service: Service, tree: ProviderSubTree, plan: Plan) -> Iterator[str]:
    """What is held of classes that are to go, where nothing moves."""
    for uuid, inventory in plan.inventories.items():
        if not tree.exists(uuid):
            continue
        before = tree.data(uuid)
        if going := sorted(before.inventory.keys() - inventory.keys()):
            usages = service.get(provider_path(uuid, "usages"))["usages"]
            for name in going:
                if usages.get(name):
                    yield (
                        f"{before.name} is to lose its {name}, and {usages[name]} of it are held; "
                        f"they have to be moved or given back first"
                    )
