# SPDX-License-Identifier: Apache-2.0
"""The operations of the OpenStack Placement API: for each path, its methods in the order of
`Allow`, their versions, their policy rules and their handlers.

Source: spec/rest-api.md 1.3 and 2.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from berth.api import examples
from berth.api.operation import Operation, Rule, Segment, for_agents, for_services
from berth.api.shapes import CLASS_NAME, UUID

_SERVICE: Final = "Service"
_PROVIDERS: Final = "Resource providers"
_INVENTORIES: Final = "Inventories"
_AGGREGATES: Final = "Aggregates"
_TRAITS: Final = "Traits"
_RESOURCE_CLASSES: Final = "Resource classes"
_ALLOCATIONS: Final = "Allocations"
_USAGES: Final = "Usages"
_CANDIDATES: Final = "Allocation candidates"

#: The headings of the OpenAPI document.
TAGS: Final = {
    _SERVICE: "The service itself.",
    _PROVIDERS: "Machines, parts of machines, and shared pools that provide resources.",
    _INVENTORIES: "Amounts of resource classes that a provider has.",
    _AGGREGATES: "Groups of providers; an aggregate is only a UUID.",
    _TRAITS: "Capabilities of a provider, without amounts.",
    _RESOURCE_CLASSES: "Kinds of resources, such as VCPU.",
    _ALLOCATIONS: "Resources that a consumer uses.",
    _USAGES: "Sums of allocations.",
    _CANDIDATES: "Providers that can satisfy a request.",
}

_PROVIDER: Final = {"uuid": Segment("The UUID of the provider.", UUID, examples.PROVIDER)}
_CLASS: Final = Segment("The name of the resource class.", CLASS_NAME, "VCPU")

_UPDATE_INVENTORIES: Final = for_agents(
    "placement:resource_providers:inventories:update",
    "Replace one or all of a provider's inventories.",
)
_DELETE_INVENTORIES: Final = for_agents(
    "placement:resource_providers:inventories:delete",
    "Delete one or all of a provider's inventories.",
)
_UPDATE_CLASS: Final = for_agents(
    "placement:resource_classes:update",
    "Create a resource class, or confirm that it exists (before 1.7: rename it).",
)

_on_providers = partial(Operation, path="/resource_providers", tag=_PROVIDERS)
_on_provider = partial(
    Operation, path="/resource_providers/{uuid}", segments=_PROVIDER, tag=_PROVIDERS
)
_on_inventories = partial(
    Operation, path="/resource_providers/{uuid}/inventories", segments=_PROVIDER, tag=_INVENTORIES
)
_on_inventory = partial(
    Operation,
    path="/resource_providers/{uuid}/inventories/{resource_class}",
    segments={**_PROVIDER, "resource_class": _CLASS},
    tag=_INVENTORIES,
)
_on_aggregates = partial(
    Operation,
    path="/resource_providers/{uuid}/aggregates",
    segments=_PROVIDER,
    tag=_AGGREGATES,
    since=1,
    media_first=True,
)
_on_provider_traits = partial(
    Operation,
    path="/resource_providers/{uuid}/traits",
    segments=_PROVIDER,
    tag=_TRAITS,
    since=6,
)
_on_classes = partial(Operation, path="/resource_classes", tag=_RESOURCE_CLASSES, since=2)
_on_class = partial(
    Operation,
    path="/resource_classes/{name}",
    segments={"name": Segment("The name of the resource class.", CLASS_NAME, "CUSTOM_LICENCE")},
    tag=_RESOURCE_CLASSES,
)
_on_trait = partial(
    Operation,
    path="/traits/{name}",
    segments={"name": Segment("The name of the trait.", CLASS_NAME, "CUSTOM_RACK_7")},
    tag=_TRAITS,
    since=6,
)
_on_consumer = partial(
    Operation,
    path="/allocations/{consumer_uuid}",
    segments={"consumer_uuid": Segment("The UUID of the consumer.", UUID, examples.CONSUMER)},
    tag=_ALLOCATIONS,
)

OPERATIONS: Final = (
    Operation("GET", "placement.service:show_versions", None, path="/", tag=_SERVICE),
    Operation(
        "GET", "placement.service:show_description", None, path="/openapi.json", tag=_SERVICE
    ),
    _on_providers(
        "GET",
        "placement.providers:list_providers",
        for_agents("placement:resource_providers:list", "List resource providers."),
    ),
    _on_providers(
        "POST",
        "placement.providers:create_provider",
        for_agents("placement:resource_providers:create", "Create a resource provider."),
    ),
    _on_provider(
        "GET",
        "placement.providers:show_provider",
        for_agents("placement:resource_providers:show", "Show a resource provider."),
    ),
    _on_provider(
        "DELETE",
        "placement.providers:delete_provider",
        for_agents("placement:resource_providers:delete", "Delete a resource provider."),
    ),
    _on_provider(
        "PUT",
        "placement.providers:update_provider",
        for_agents("placement:resource_providers:update", "Rename or move a resource provider."),
    ),
    _on_inventories(
        "GET",
        "placement.inventories:list_inventories",
        for_agents(
            "placement:resource_providers:inventories:list", "List a provider's inventories."
        ),
    ),
    _on_inventories(
        "POST",
        "placement.inventories:create_inventory",
        for_agents(
            "placement:resource_providers:inventories:create", "Add one inventory to a provider."
        ),
    ),
    _on_inventories("PUT", "placement.inventories:replace_inventories", _UPDATE_INVENTORIES),
    _on_inventories(
        "DELETE",
        "placement.inventories:delete_inventories",
        _DELETE_INVENTORIES,
        since=5,
        absent_is_405=True,
    ),
    _on_inventory(
        "GET",
        "placement.inventories:show_inventory",
        for_agents("placement:resource_providers:inventories:show", "Show one inventory."),
    ),
    _on_inventory("PUT", "placement.inventories:update_inventory", _UPDATE_INVENTORIES),
    _on_inventory("DELETE", "placement.inventories:delete_inventory", _DELETE_INVENTORIES),
    _on_aggregates(
        "GET",
        "placement.aggregates:list_aggregates",
        for_agents("placement:resource_providers:aggregates:list", "List a provider's aggregates."),
    ),
    _on_aggregates(
        "PUT",
        "placement.aggregates:replace_aggregates",
        for_agents(
            "placement:resource_providers:aggregates:update", "Replace a provider's aggregates."
        ),
    ),
    _on_provider_traits(
        "GET",
        "placement.traits:list_provider_traits",
        for_agents("placement:resource_providers:traits:list", "List a provider's traits."),
    ),
    _on_provider_traits(
        "PUT",
        "placement.traits:replace_provider_traits",
        for_agents("placement:resource_providers:traits:update", "Replace a provider's traits."),
    ),
    _on_provider_traits(
        "DELETE",
        "placement.traits:delete_provider_traits",
        for_agents("placement:resource_providers:traits:delete", "Remove a provider's traits."),
    ),
    Operation(
        "GET",
        "placement.usages:show_provider_usages",
        for_agents("placement:resource_providers:usages", "Show a provider's usage."),
        path="/resource_providers/{uuid}/usages",
        segments=_PROVIDER,
        tag=_USAGES,
    ),
    Operation(
        "GET",
        "placement.allocations:list_provider_allocations",
        for_agents(
            "placement:resource_providers:allocations:list", "List the allocations on a provider."
        ),
        path="/resource_providers/{uuid}/allocations",
        segments=_PROVIDER,
        tag=_ALLOCATIONS,
    ),
    _on_classes(
        "GET",
        "placement.resource_classes:list_resource_classes",
        for_agents("placement:resource_classes:list", "List resource classes."),
    ),
    _on_classes(
        "POST",
        "placement.resource_classes:create_resource_class",
        for_agents("placement:resource_classes:create", "Create a resource class."),
    ),
    _on_class(
        "GET",
        "placement.resource_classes:show_resource_class",
        for_agents("placement:resource_classes:show", "Show a resource class."),
        since=2,
    ),
    _on_class(
        "PUT", "placement.resource_classes:rename_resource_class", _UPDATE_CLASS, since=2, until=6
    ),
    _on_class("PUT", "placement.resource_classes:ensure_resource_class", _UPDATE_CLASS, since=7),
    _on_class(
        "DELETE",
        "placement.resource_classes:delete_resource_class",
        for_services("placement:resource_classes:delete", "Delete a resource class."),
        since=2,
    ),
    Operation(
        "GET",
        "placement.traits:list_traits",
        for_agents("placement:traits:list", "List traits."),
        path="/traits",
        tag=_TRAITS,
        since=6,
    ),
    _on_trait(
        "GET",
        "placement.traits:show_trait",
        for_agents("placement:traits:show", "Show a trait."),
    ),
    _on_trait(
        "PUT",
        "placement.traits:ensure_trait",
        for_agents("placement:traits:update", "Create a trait, or confirm that it exists."),
    ),
    _on_trait(
        "DELETE",
        "placement.traits:delete_trait",
        for_services("placement:traits:delete", "Delete a trait."),
    ),
    Operation(
        "POST",
        "placement.allocations:manage_allocations",
        for_agents("placement:allocations:manage", "Write the allocations of several consumers."),
        path="/allocations",
        tag=_ALLOCATIONS,
        since=13,
    ),
    _on_consumer(
        "GET",
        "placement.allocations:show_allocations",
        for_agents("placement:allocations:list", "List the allocations of a consumer."),
    ),
    _on_consumer(
        "PUT",
        "placement.allocations:replace_allocations",
        for_agents("placement:allocations:update", "Write the allocations of a consumer."),
    ),
    _on_consumer(
        "DELETE",
        "placement.allocations:delete_allocations",
        for_agents("placement:allocations:delete", "Delete the allocations of a consumer."),
    ),
    Operation(
        "GET",
        "placement.allocation_candidates:list_candidates",
        for_services("placement:allocation_candidates:list", "List allocation candidates."),
        path="/allocation_candidates",
        tag=_CANDIDATES,
        since=10,
        is_search=True,
    ),
    Operation(
        "GET",
        "placement.usages:show_project_usages",
        Rule(
            "placement:usages",
            "rule:admin_or_project_reader_or_service_api",
            "Show a project's usage.",
        ),
        path="/usages",
        tag=_USAGES,
        since=9,
    ),
    Operation(
        "POST",
        "placement.allocations:reshape",
        Rule(
            "placement:reshaper:reshape",
            "rule:service_api or rule:agent_api",
            "Move inventories and allocations in one transaction.",
        ),
        path="/reshaper",
        tag=_ALLOCATIONS,
        since=30,
    ),
)
