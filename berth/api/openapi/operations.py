# SPDX-License-Identifier: Apache-2.0
"""What each operation does, takes and answers, by the handler that serves it.

Since when it exists, and who may call it, stands in the table of routes.
Source: spec/rest-api.md 1.8 and 3 to 12.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from berth.api import (
    aggregates,
    allocation_candidates,
    allocations,
    inventories,
    providers,
    reshaper,
    resource_classes,
    root,
    traits,
    usages,
)
from berth.api.microversion import ByMicroversion
from berth.api.openapi import handler, parameters
from berth.api.openapi.parameters import Query
from berth.api.routes import Handler
from berth.api.schema import Schema
from berth.api.schemas import aggregates as aggregates_schemas
from berth.api.schemas import allocation_candidates as candidates_schemas
from berth.api.schemas import allocations as allocations_schemas
from berth.api.schemas import inventories as inventories_schemas
from berth.api.schemas import providers as providers_schemas
from berth.api.schemas import resource_classes as classes_schemas
from berth.api.schemas import traits as traits_schemas
from berth.api.schemas import usages as usages_schemas


class Dated(Enum):
    """Whether an answer has `Cache-Control` and `Last-Modified`, from 1.15 on."""

    NO = 0
    #: The second is left out where nobody knows the time.
    WHERE_KNOWN = 1
    ALWAYS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """A way in which a request succeeds; no component means that there is no body."""

    status: int = 200
    component: str | None = None
    means: str = "Done."
    dated: Dated = Dated.NO
    #: Whether `Location` tells where the thing is.
    located: bool = False


#: What is said in which tag of the document, in its order.
TAGS: Mapping[str, str] = {
    "Service": "The service itself.",
    "Resource providers": "What gives resources: machines, parts of them, shared pools.",
    "Inventories": "How much of what a provider has.",
    "Aggregates": "Groups of providers; an aggregate is no more than a uuid.",
    "Traits": "What a provider can, beside amounts.",
    "Resource classes": "What is counted.",
    "Allocations": "Who holds what.",
    "Usages": "How much is held.",
    "Allocation candidates": "Where something would fit.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """An operation, as the document tells it."""

    tag: str
    summary: str
    successes: ByMicroversion[tuple[Success, ...]]
    details: str = ""
    body: ByMicroversion[Schema] | None = None
    query: Query | None = None
    #: When the answer is 409; empty: it never is.
    conflict: str = field(default="")


def _always(*successes: Success) -> ByMicroversion[tuple[Success, ...]]:
    return ByMicroversion({0: successes})


def _shows(
    component: str, dated: Dated = Dated.ALWAYS, *, means: str = "What was asked for."
) -> ByMicroversion[tuple[Success, ...]]:
    return _always(Success(component=component, dated=dated, means=means))


def _schema(schema: Schema) -> ByMicroversion[Schema]:
    return ByMicroversion({0: schema})


_DONE = _always(Success(status=204))
_CREATED_OR_THERE = (
    Success(status=201, located=True, means="Created."),
    Success(status=204, located=True, means="It was there."),
)
_CHANGED = "The provider has changed since it was read"

DESCRIBED: Mapping[Handler, Described] = {
    root.show_versions: Described(
        tag="Service",
        summary="Show which microversions are served",
        successes=_shows("VersionDocument"),
    ),
    handler.show_description: Described(
        tag="Service",
        summary="Show this document",
        details="Of the microversion that the header asks for; of the newest, where there is none.",
        successes=_shows("Description", Dated.NO),
    ),
    providers.list_providers: Described(
        tag="Resource providers",
        summary="List providers",
        details="All filters must hold. Parameters other than these are refused.",
        query=Query(
            providers_schemas.FILTERS,
            {
                "name": parameters.PROVIDER_NAME,
                "uuid": parameters.PROVIDER_UUID,
                "member_of": parameters.MEMBER_OF,
                "resources": parameters.RESOURCES,
                "in_tree": parameters.IN_TREE,
                "required": parameters.REQUIRED,
            },
        ),
        successes=_shows("ResourceProviders"),
    ),
    providers.create_provider: Described(
        tag="Resource providers",
        summary="Create a provider",
        details="As a root, or below a parent.",
        body=providers_schemas.CREATE,
        successes=ByMicroversion(
            {
                0: (Success(status=201, located=True, means="Created."),),
                providers.CREATED_IS_SHOWN_SINCE: (
                    Success(
                        component="ResourceProvider",
                        dated=Dated.WHERE_KNOWN,
                        located=True,
                        means="Created.",
                    ),
                ),
            }
        ),
        conflict="The name or the uuid is taken.",
    ),
    providers.show_provider: Described(
        tag="Resource providers",
        summary="Show a provider",
        successes=_shows("ResourceProvider", Dated.WHERE_KNOWN),
    ),
    providers.update_provider: Described(
        tag="Resource providers",
        summary="Rename a provider, or move it in its tree",
        details="A provider that has a parent can be moved from 1.37 on.",
        body=providers_schemas.UPDATE,
        successes=_shows("ResourceProvider", Dated.WHERE_KNOWN, means="The provider as it is now."),
        conflict="The name is taken.",
    ),
    providers.delete_provider: Described(
        tag="Resource providers",
        summary="Delete a provider",
        successes=_DONE,
        conflict="It has children, or something of it is held.",
    ),
    inventories.list_inventories: Described(
        tag="Inventories",
        summary="Show all that a provider has",
        successes=_shows("Inventories", Dated.WHERE_KNOWN),
    ),
    inventories.show_inventory: Described(
        tag="Inventories",
        summary="Show what a provider has of one class",
        successes=_shows("Inventory"),
    ),
    inventories.create_inventory: Described(
        tag="Inventories",
        summary="Add a class to what a provider has",
        body=_schema(inventories_schemas.CREATE),
        successes=_always(
            Success(
                status=201,
                component="Inventory",
                dated=Dated.ALWAYS,
                located=True,
                means="Created.",
            )
        ),
        conflict="The provider has that class, or somebody else changed it meanwhile.",
    ),
    inventories.replace_inventories: Described(
        tag="Inventories",
        summary="Replace all that a provider has",
        details="What is left out takes its default; nothing is merged with what was there.",
        body=_schema(inventories_schemas.REPLACE),
        successes=_shows("Inventories", Dated.WHERE_KNOWN, means="All that it has now."),
        conflict=f"{_CHANGED}, or something is held of a class that would go.",
    ),
    inventories.update_inventory: Described(
        tag="Inventories",
        summary="Replace what a provider has of one class",
        body=_schema(inventories_schemas.UPDATE),
        successes=_shows("Inventory", means="What it has now."),
        conflict=f"{_CHANGED}.",
    ),
    inventories.delete_inventory: Described(
        tag="Inventories",
        summary="Remove one class from what a provider has",
        successes=_DONE,
        conflict="Something of it is held, or somebody else changed the provider meanwhile.",
    ),
    inventories.delete_inventories: Described(
        tag="Inventories",
        summary="Remove all that a provider has",
        successes=_DONE,
        conflict="Something of it is held, or somebody else changed the provider meanwhile.",
    ),
    usages.show_provider_usages: Described(
        tag="Usages",
        summary="Show how much is held of each class that a provider has",
        successes=_shows("ProviderUsages"),
    ),
    usages.show_project_usages: Described(
        tag="Usages",
        summary="Show how much a project holds",
        details="From 1.38 on by type of consumer. Parameters other than these are refused.",
        query=Query(
            usages_schemas.FILTERS,
            {
                "project_id": parameters.PROJECT,
                "user_id": parameters.USER,
                "consumer_type": parameters.CONSUMER_TYPE,
            },
        ),
        successes=_shows("ProjectUsages"),
    ),
    aggregates.list_aggregates: Described(
        tag="Aggregates",
        summary="Show the aggregates that a provider is in",
        successes=_shows("Aggregates"),
    ),
    aggregates.replace_aggregates: Described(
        tag="Aggregates",
        summary="Replace the aggregates that a provider is in",
        body=aggregates_schemas.REPLACE,
        successes=_shows("Aggregates", means="The aggregates, as they were sent."),
        conflict=f"{_CHANGED}, or somebody else is changing it.",
    ),
    traits.list_traits: Described(
        tag="Traits",
        summary="List the names of traits",
        details="Parameters other than these are refused.",
        query=Query(
            _schema(traits_schemas.FILTERS),
            {"name": parameters.TRAIT_NAME, "associated": parameters.ASSOCIATED},
        ),
        successes=_shows("Traits"),
    ),
    traits.show_trait: Described(
        tag="Traits",
        summary="Say whether a trait exists",
        successes=_always(Success(status=204, dated=Dated.WHERE_KNOWN, means="It does.")),
    ),
    traits.ensure_trait: Described(
        tag="Traits",
        summary="Create a trait, or confirm it",
        details="Names of one's own begin with `CUSTOM_`.",
        successes=_always(
            Success(status=201, located=True, dated=Dated.WHERE_KNOWN, means="Created."),
            Success(status=204, located=True, dated=Dated.WHERE_KNOWN, means="It was there."),
        ),
    ),
    traits.delete_trait: Described(
        tag="Traits",
        summary="Delete a trait",
        details="Standard ones cannot be.",
        successes=_DONE,
        conflict="A provider has it.",
    ),
    traits.list_provider_traits: Described(
        tag="Traits",
        summary="Show the traits of a provider",
        successes=_shows("ProviderTraits"),
    ),
    traits.replace_provider_traits: Described(
        tag="Traits",
        summary="Replace the traits of a provider",
        details="They must exist.",
        body=_schema(traits_schemas.REPLACE),
        successes=_shows("ProviderTraits", means="The traits that it has now."),
        conflict=f"{_CHANGED}.",
    ),
    traits.delete_provider_traits: Described(
        tag="Traits",
        summary="Remove all traits of a provider",
        successes=_DONE,
        conflict="Somebody else changed the provider meanwhile.",
    ),
    resource_classes.list_resource_classes: Described(
        tag="Resource classes",
        summary="List resource classes",
        successes=_shows("ResourceClasses"),
    ),
    resource_classes.create_resource_class: Described(
        tag="Resource classes",
        summary="Create a resource class",
        details="Names of one's own begin with `CUSTOM_`.",
        body=_schema(classes_schemas.CUSTOM_NAME),
        successes=_always(Success(status=201, located=True, means="Created.")),
        conflict="The name is taken.",
    ),
    resource_classes.show_resource_class: Described(
        tag="Resource classes",
        summary="Show a resource class",
        successes=_shows("ResourceClass"),
    ),
    resource_classes.rename_resource_class: Described(
        tag="Resource classes",
        summary="Rename a resource class",
        details="Standard ones cannot be. From 1.7 on, the same request confirms the class.",
        body=_schema(classes_schemas.CUSTOM_NAME),
        successes=_shows("ResourceClass", Dated.NO, means="The class as it is called now."),
        conflict="The new name is taken.",
    ),
    resource_classes.ensure_resource_class: Described(
        tag="Resource classes",
        summary="Create a resource class, or confirm it",
        details="Names of one's own begin with `CUSTOM_`.",
        successes=_always(*_CREATED_OR_THERE),
    ),
    resource_classes.delete_resource_class: Described(
        tag="Resource classes",
        summary="Delete a resource class",
        details="Standard ones cannot be.",
        successes=_DONE,
        conflict="A provider has an inventory of it.",
    ),
    allocations.manage_allocations: Described(
        tag="Allocations",
        summary="Replace all that several consumers hold",
        details="All of it is written, or nothing; what one lets go another may take.",
        body=allocations_schemas.MANAGE,
        successes=_DONE,
        conflict="There is not so much, or a consumer has changed since it was read.",
    ),
    allocations.show_allocations: Described(
        tag="Allocations",
        summary="Show what a consumer holds",
        details="Nothing, for one that nobody knows.",
        successes=_shows("ConsumerAllocations"),
    ),
    allocations.replace_allocations: Described(
        tag="Allocations",
        summary="Replace all that a consumer holds",
        body=allocations_schemas.REPLACE,
        successes=_DONE,
        conflict="There is not so much, or the consumer has changed since it was read.",
    ),
    allocations.delete_allocations: Described(
        tag="Allocations",
        summary="Take away all that a consumer holds",
        details="Whatever its generation.",
        successes=_DONE,
        conflict="Somebody else is changing what it holds.",
    ),
    allocations.list_provider_allocations: Described(
        tag="Allocations",
        summary="Show who holds what of a provider",
        successes=_shows("ProviderAllocations"),
    ),
    allocation_candidates.list_candidates: Described(
        tag="Allocation candidates",
        summary="List the ways in which what is asked for could be given",
        details="At least one group asks for resources. Parameters other than these are refused.",
        query=Query(
            candidates_schemas.KEYS,
            {
                "resources": parameters.RESOURCES,
                "required": parameters.REQUIRED,
                "member_of": parameters.MEMBER_OF,
                "in_tree": parameters.IN_TREE,
                "limit": parameters.LIMIT,
                "group_policy": parameters.GROUP_POLICY,
                "root_required": parameters.ROOT_REQUIRED,
                "same_subtree": parameters.SAME_SUBTREE,
            },
        ),
        successes=_shows("AllocationCandidates", means="The candidates; none, if nothing fits."),
    ),
    reshaper.reshape: Described(
        tag="Allocations",
        summary="Move inventories and allocations in one transaction",
        details="Replaces all that some providers have, and all that some consumers hold.",
        body=allocations_schemas.RESHAPE,
        successes=_DONE,
        conflict="A provider or a consumer has changed since it was read, or there is not so much.",
    ),
}
