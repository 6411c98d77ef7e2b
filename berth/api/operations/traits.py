# SPDX-License-Identifier: Apache-2.0
"""Traits, and those of a provider (1.6).

Source: spec/rest-api.md 7.
"""

from __future__ import annotations

from functools import partial

from berth.api.operation import (
    DONE,
    Answer,
    Body,
    Dated,
    Operation,
    Parameter,
    Query,
    Segment,
    always,
    component,
    for_agents,
    for_services,
    shows,
)
from berth.api.operations import examples
from berth.api.operations.fragments import (
    CLASS_NAME,
    GENERATION,
    INTEGER,
    SHOWN_TRAITS,
    TRAIT_NAMES,
    closed_object,
    exact_object,
)
from berth.api.operations.segments import PROVIDER_SEGMENT
from berth.api.schema import Schema

TAG = "Traits"
_NAME = {"name": Segment("The name of the trait.", CLASS_NAME, "CUSTOM_RACK_7")}

_REPLACE = {"traits": TRAIT_NAMES, "resource_provider_generation": INTEGER}
REPLACE = Schema(closed_object(_REPLACE, required=tuple(_REPLACE)))

FILTERS = Query(
    Parameter(
        name="name",
        means={0: "`in:NAME,...` for the existing ones of these traits, or `startswith:PREFIX`."},
        example="startswith:HW_CPU_X86_AVX",
        pattern=always("^(in|startswith):"),
    ),
    Parameter(
        name="associated",
        means={
            0: "`true` for traits that a provider has, `false` for traits that no provider has."
        },
        example="true",
        pattern=always("^(true|false)$"),
    ),
)

_TRAITS = component("Traits", (6, exact_object({"traits": SHOWN_TRAITS})), example=examples.TRAITS)
_PROVIDER_TRAITS = component(
    "ProviderTraits",
    (6, exact_object({"traits": SHOWN_TRAITS, "resource_provider_generation": GENERATION})),
    example={**examples.TRAITS, **examples.GENERATION},
)

_on_provider = partial(
    Operation, path="/resource_providers/{uuid}/traits", segments=PROVIDER_SEGMENT, tag=TAG, since=6
)
_on_trait = partial(Operation, path="/traits/{name}", segments=_NAME, tag=TAG, since=6)

OF_PROVIDERS = (
    _on_provider(
        "GET",
        handler="traits:list_provider_traits",
        rule=for_agents("placement:resource_providers:traits:list", "List a provider's traits."),
        summary="List a provider's traits",
        answers=shows(_PROVIDER_TRAITS),
    ),
    _on_provider(
        "PUT",
        handler="traits:replace_provider_traits",
        rule=for_agents(
            "placement:resource_providers:traits:update", "Replace a provider's traits."
        ),
        summary="Replace a provider's traits",
        details="The traits must exist.",
        body=Body(always(REPLACE), always({**examples.TRAITS, **examples.GENERATION})),
        answers=shows(_PROVIDER_TRAITS, means="The new traits."),
        conflict="The generation is outdated.",
    ),
    _on_provider(
        "DELETE",
        handler="traits:delete_provider_traits",
        rule=for_agents(
            "placement:resource_providers:traits:delete", "Remove a provider's traits."
        ),
        summary="Delete all of a provider's traits",
        answers=DONE,
        conflict="Another request changed the provider.",
    ),
)

OPERATIONS = (
    Operation(
        "GET",
        "/traits",
        handler="traits:list_traits",
        rule=for_agents("placement:traits:list", "List traits."),
        tag=TAG,
        summary="List traits",
        details="Rejects unknown parameters.",
        since=6,
        query=FILTERS,
        answers=shows(_TRAITS),
    ),
    _on_trait(
        "GET",
        handler="traits:show_trait",
        rule=for_agents("placement:traits:show", "Show a trait."),
        summary="Check that a trait exists",
        answers=(Answer(204, dated=Dated.WHERE_KNOWN, means="The trait exists."),),
    ),
    _on_trait(
        "PUT",
        handler="traits:ensure_trait",
        rule=for_agents("placement:traits:update", "Create a trait, or confirm that it exists."),
        summary="Create a trait, or confirm that it exists",
        details="The names of custom ones start with `CUSTOM_`.",
        answers=(
            Answer(201, located=True, dated=Dated.WHERE_KNOWN, means="Created."),
            Answer(204, located=True, dated=Dated.WHERE_KNOWN, means="It already exists."),
        ),
    ),
    _on_trait(
        "DELETE",
        handler="traits:delete_trait",
        rule=for_services("placement:traits:delete", "Delete a trait."),
        summary="Delete a trait",
        details="Standard ones cannot be deleted.",
        answers=DONE,
        conflict="A provider has the trait.",
    ),
)
