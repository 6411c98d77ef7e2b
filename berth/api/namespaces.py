# SPDX-License-Identifier: Apache-2.0
"""The API namespaces that berth serves: OpenStack Placement's, and its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from berth.api.operation import Namespace
from berth.api.operations import (
    aggregates,
    allocation_candidates,
    allocations,
    inventories,
    providers,
    reshaper,
    resource_classes,
    service,
    traits,
    usages,
)
from berth.api.operations.berth_v1 import aggregates as berth_aggregates
from berth.api.operations.berth_v1 import candidates as berth_candidates
from berth.api.operations.berth_v1 import capacity as berth_capacity
from berth.api.operations.berth_v1 import changes as berth_changes
from berth.api.operations.berth_v1 import codes
from berth.api.operations.berth_v1 import consumers as berth_consumers
from berth.api.operations.berth_v1 import drains as berth_drains
from berth.api.operations.berth_v1 import explain as berth_explain
from berth.api.operations.berth_v1 import flavors as berth_flavors
from berth.api.operations.berth_v1 import fleet as berth_fleet
from berth.api.operations.berth_v1 import leases as berth_leases
from berth.api.operations.berth_v1 import place as berth_place
from berth.api.operations.berth_v1 import service as berth_service
from berth.api.operations.berth_v1 import trees as berth_trees

PLACEMENT: Final = Namespace(
    prefix="",
    title="Placement",
    summary="Track what every machine in a fleet offers, who uses it, and where more fits.",
    tags={
        service.TAG: "The service itself.",
        providers.TAG: "Machines, parts of machines, and shared pools that provide resources.",
        inventories.TAG: "Amounts of resource classes that a provider has.",
        aggregates.TAG: "Groups of providers; an aggregate is only a UUID.",
        traits.TAG: "Capabilities of a provider, without amounts.",
        resource_classes.TAG: "Kinds of resources, such as VCPU.",
        allocations.TAG: "Resources that a consumer uses.",
        usages.TAG: "Sums of allocations.",
        allocation_candidates.TAG: "Providers that can satisfy a request.",
    },
    operations=(
        *service.OPERATIONS,
        *providers.OPERATIONS,
        *inventories.OPERATIONS,
        *aggregates.OPERATIONS,
        *traits.OF_PROVIDERS,
        *usages.OF_PROVIDERS,
        *allocations.OF_PROVIDERS,
        *resource_classes.OPERATIONS,
        *traits.OPERATIONS,
        *allocations.OPERATIONS,
        *allocation_candidates.OPERATIONS,
        *usages.OPERATIONS,
        *reshaper.OPERATIONS,
    ),
)

BERTH: Final = Namespace(
    prefix="/berth/v1",
    title="berth",
    summary="Questions about a fleet, and what only berth keeps of it.",
    tags={
        berth_service.TAG: "The API itself.",
        berth_candidates.TAG: "Where a request fits, why it does not, and how many more do.",
        berth_place.TAG: "Choose hosts and claim in one call.",
        berth_aggregates.TAG: "Groups of providers, with labels such as names and zones.",
        berth_fleet.TAG: "Every provider, and what changes.",
        berth_consumers.TAG: "Who holds what.",
        berth_leases.TAG: "When berth takes back what consumers hold.",
        berth_flavors.TAG: "Requests with a name.",
        berth_trees.TAG: "Whole trees of providers, read and written in one call.",
        berth_drains.TAG: "Providers that get nothing new.",
    },
    operations=(
        *berth_service.OPERATIONS,
        *berth_aggregates.OPERATIONS,
        *berth_consumers.OPERATIONS,
        *berth_leases.OPERATIONS,
        *berth_flavors.OPERATIONS,
        *berth_drains.OPERATIONS,
        *berth_trees.OPERATIONS,
        *berth_fleet.OPERATIONS,
        *berth_changes.OPERATIONS,
        *berth_candidates.OPERATIONS,
        *berth_explain.OPERATIONS,
        *berth_capacity.OPERATIONS,
        *berth_place.OPERATIONS,
    ),
    codes=codes.CODES,
    version=berth_service.VERSION,
    headers={"Berth-API": berth_service.VERSION},
    query_reader="berth_v1.query:QueryReader",
)

NAMESPACES: Final = (PLACEMENT, BERTH)


def namespace_of(path: str, namespaces: Sequence[Namespace] = NAMESPACES) -> Namespace:
    """The namespace of a path; Placement's if no other matches."""
    for namespace in namespaces:
        if namespace.prefix and (
            path == namespace.prefix or path.startswith(f"{namespace.prefix}/")
        ):
            return namespace
    return PLACEMENT
