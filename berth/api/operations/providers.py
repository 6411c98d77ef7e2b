# SPDX-License-Identifier: Apache-2.0
"""Resource providers.

Source: spec/rest-api.md 4.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from berth.api.microversion import MINOR_MAX, ByMicroversion
from berth.api.operation import (
    DONE,
    Answer,
    Body,
    Dated,
    Operation,
    Parameter,
    Query,
    always,
    component,
    for_agents,
    ref,
    shows,
)
from berth.api.operations import examples, shared_parameters
from berth.api.operations.fragments import (
    GENERATION,
    UUID,
    UUID_OR_NULL,
    closed_object,
    exact_object,
    links,
    list_of,
)
from berth.api.operations.segments import PROVIDER_SEGMENT
from berth.api.schema import JSONSchema, Schema
from berth.model.names import PROVIDER_NAME_LENGTH_MAX

TAG = "Resource providers"

TREES_SINCE = 14
CREATED_IS_SHOWN_SINCE = 20

_BASE_LINKS = ("inventories", "usages")
LINKS = ByMicroversion(
    {
        0: _BASE_LINKS,
        1: (*_BASE_LINKS, "aggregates"),
        6: (*_BASE_LINKS, "aggregates", "traits"),
        11: (*_BASE_LINKS, "aggregates", "traits", "allocations"),
    }
)

_NAME: JSONSchema = {"type": "string", "maxLength": PROVIDER_NAME_LENGTH_MAX}
_PARENT = {"parent_provider_uuid": UUID_OR_NULL}
_CREATE = {"name": _NAME, "uuid": UUID}
_UPDATE = {"name": _NAME}

CREATE = ByMicroversion(
    {
        0: Schema(closed_object(_CREATE, required=("name",))),
        TREES_SINCE: Schema(closed_object({**_CREATE, **_PARENT}, required=("name",))),
    }
)

UPDATE = ByMicroversion(
    {
        0: Schema(closed_object(_UPDATE, required=("name",))),
        TREES_SINCE: Schema(closed_object({**_UPDATE, **_PARENT}, required=("name",))),
    }
)

FILTERS = Query(
    Parameter(name="name", means={0: "Only the provider with exactly this name."}, example="cn1"),
    Parameter(
        name="uuid",
        means={0: "Only the provider with this UUID."},
        example=examples.PROVIDER,
        schema=UUID,
    ),
    replace(shared_parameters.MEMBER_OF, since=3),
    replace(shared_parameters.RESOURCES, since=4),
    replace(shared_parameters.IN_TREE, since=14, schema=UUID),
    replace(shared_parameters.REQUIRED, since=18),
)


def _provider(microversion: int) -> JSONSchema:
    trees = {"parent_provider_uuid": UUID_OR_NULL, "root_provider_uuid": UUID}
    return exact_object(
        {
            "uuid": UUID,
            "name": _NAME,
            "generation": GENERATION,
            **(trees if microversion >= TREES_SINCE else {}),
            "links": links("self", *LINKS.at(microversion)),
        }
    )


def _example(microversion: int) -> dict[str, object]:
    path = f"/resource_providers/{examples.PROVIDER}"
    return {
        "uuid": examples.PROVIDER,
        "name": "cn1",
        "generation": 3,
        "parent_provider_uuid": None,
        "root_provider_uuid": examples.PROVIDER,
        "links": [
            {"rel": "self", "href": path},
            *({"rel": rel, "href": f"{path}/{rel}"} for rel in LINKS.at(microversion)),
        ],
    }


_EXAMPLES = ByMicroversion({minor: _example(minor) for minor in range(MINOR_MAX + 1)})
RESOURCE_PROVIDER = component(
    "ResourceProvider",
    *((minor, _provider(minor)) for minor in (0, 1, 6, 11, TREES_SINCE)),
    example=_EXAMPLES,
)
_RESOURCE_PROVIDERS = component(
    "ResourceProviders",
    exact_object({"resource_providers": list_of(ref("ResourceProvider"))}),
    example=ByMicroversion(
        {minor: {"resource_providers": [_EXAMPLES.at(minor)]} for minor in range(MINOR_MAX + 1)}
    ),
    parts=(RESOURCE_PROVIDER,),
)

_on_providers = partial(Operation, path="/resource_providers", tag=TAG)
_on_provider = partial(
    Operation, path="/resource_providers/{uuid}", segments=PROVIDER_SEGMENT, tag=TAG
)

OPERATIONS = (
    _on_providers(
        "GET",
        handler="providers:list_providers",
        rule=for_agents("placement:resource_providers:list", "List resource providers."),
        summary="List providers",
        details="Returns the providers that match all filters. Rejects unknown parameters.",
        query=FILTERS,
        answers=shows(_RESOURCE_PROVIDERS),
    ),
    _on_providers(
        "POST",
        handler="providers:create_provider",
        rule=for_agents("placement:resource_providers:create", "Create a resource provider."),
        summary="Create a provider",
        details="Creates a root provider, or a child of a parent.",
        body=Body(
            CREATE,
            always({"name": "cn1", "uuid": examples.PROVIDER, "parent_provider_uuid": None}),
        ),
        answers=ByMicroversion(
            {
                0: (Answer(201, located=True, means="Created."),),
                CREATED_IS_SHOWN_SINCE: (
                    Answer(
                        200,
                        RESOURCE_PROVIDER,
                        dated=Dated.WHERE_KNOWN,
                        located=True,
                        means="Created.",
                    ),
                ),
            }
        ),
        conflict="Another provider has the name or the UUID.",
    ),
    _on_provider(
        "GET",
        handler="providers:show_provider",
        rule=for_agents("placement:resource_providers:show", "Show a resource provider."),
        summary="Show a provider",
        answers=shows(RESOURCE_PROVIDER, Dated.WHERE_KNOWN),
    ),
    # Before PUT: `Allow` lists the methods in this order.
    _on_provider(
        "DELETE",
        handler="providers:delete_provider",
        rule=for_agents("placement:resource_providers:delete", "Delete a resource provider."),
        summary="Delete a provider",
        answers=DONE,
        conflict="The provider has children or allocations.",
    ),
    _on_provider(
        "PUT",
        handler="providers:update_provider",
        rule=for_agents(
            "placement:resource_providers:update", "Rename or move a resource provider."
        ),
        summary="Rename a provider, or change its parent",
        details="From microversion 1.37, a provider that has a parent can get another parent or "
        "none.",
        body=Body(UPDATE, always({"name": "cn1.example.org"})),
        answers=shows(RESOURCE_PROVIDER, Dated.WHERE_KNOWN, means="The updated provider."),
        conflict="Another provider has the name.",
    ),
)
