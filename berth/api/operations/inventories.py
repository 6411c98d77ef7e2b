# SPDX-License-Identifier: Apache-2.0
"""Inventories: one record, or the whole set of a provider.

Source: spec/rest-api.md 5.
"""

from __future__ import annotations

from functools import partial

from berth.api.operation import (
    DONE,
    Answer,
    Body,
    Dated,
    Operation,
    Segment,
    always,
    component,
    for_agents,
    ref,
    shows,
)
from berth.api.operations import examples
from berth.api.operations.fragments import (
    CLASS_NAME,
    CLASS_NAME_PATTERN,
    GENERATION,
    INTEGER,
    INVENTORY,
    closed_object,
    exact_object,
    object_by,
)
from berth.api.operations.segments import PROVIDER_SEGMENT
from berth.api.schema import JSONSchema, Schema

TAG = "Inventories"
_SEGMENTS = {
    **PROVIDER_SEGMENT,
    "resource_class": Segment("The name of the resource class.", CLASS_NAME, "VCPU"),
}

_SEEN = {"resource_provider_generation": INTEGER}
_CLASS = {"resource_class": {"type": "string", "pattern": CLASS_NAME_PATTERN}}

CREATE = Schema(
    closed_object({**INVENTORY, **_SEEN, **_CLASS}, required=("total", "resource_class"))
)

UPDATE = Schema(
    closed_object({**INVENTORY, **_SEEN}, required=("total", "resource_provider_generation"))
)

_RECORD = closed_object({**_SEEN, **INVENTORY}, required=("total",))

#: COMPAT: records under impossible resource class names are checked after the body.
RECORD = Schema(_RECORD)

#: The whole set; a generation inside a record is accepted but ignored.
REPLACEMENT: JSONSchema = closed_object(
    {
        **_SEEN,
        "inventories": {
            "type": "object",
            "patternProperties": {CLASS_NAME_PATTERN: _RECORD},
        },
    },
    required=("resource_provider_generation", "inventories"),
)
REPLACE = Schema(REPLACEMENT)

_SHOWN_RECORD = exact_object(
    {**dict.fromkeys(INVENTORY, INTEGER), "allocation_ratio": {"type": "number"}}
)
_INVENTORY_RECORD = component("InventoryRecord", _SHOWN_RECORD)
_INVENTORY = component(
    "Inventory",
    closed_object(
        {**_SHOWN_RECORD["properties"], "resource_provider_generation": GENERATION},
        required=(*_SHOWN_RECORD["required"], "resource_provider_generation"),
    ),
    example={**examples.RECORD, **examples.GENERATION},
)
_INVENTORIES = component(
    "Inventories",
    exact_object(
        {
            "resource_provider_generation": GENERATION,
            "inventories": object_by(CLASS_NAME_PATTERN, ref("InventoryRecord")),
        }
    ),
    example={**examples.GENERATION, "inventories": {"VCPU": examples.RECORD}},
    parts=(_INVENTORY_RECORD,),
)

_CHANGED = "The generation is outdated"
_IN_USE = "The inventory has allocations, or another request changed the provider."
_UPDATE_RULE = for_agents(
    "placement:resource_providers:inventories:update",
    "Replace one or all of a provider's inventories.",
)
_DELETE_RULE = for_agents(
    "placement:resource_providers:inventories:delete",
    "Delete one or all of a provider's inventories.",
)

_on_all = partial(
    Operation, path="/resource_providers/{uuid}/inventories", segments=PROVIDER_SEGMENT, tag=TAG
)
_on_one = partial(
    Operation,
    path="/resource_providers/{uuid}/inventories/{resource_class}",
    segments=_SEGMENTS,
    tag=TAG,
)

OPERATIONS = (
    _on_all(
        "GET",
        handler="inventories:list_inventories",
        rule=for_agents(
            "placement:resource_providers:inventories:list", "List a provider's inventories."
        ),
        summary="List a provider's inventories",
        answers=shows(_INVENTORIES, Dated.WHERE_KNOWN),
    ),
    _on_all(
        "POST",
        handler="inventories:create_inventory",
        rule=for_agents(
            "placement:resource_providers:inventories:create", "Add one inventory to a provider."
        ),
        summary="Add an inventory to a provider",
        body=Body(always(CREATE), always({"resource_class": "VCPU", **examples.RECORD})),
        answers=(Answer(201, _INVENTORY, dated=Dated.ALWAYS, located=True, means="Created."),),
        conflict="The provider already has an inventory of the class, or another request changed "
        "the provider.",
    ),
    _on_all(
        "PUT",
        handler="inventories:replace_inventories",
        rule=_UPDATE_RULE,
        summary="Replace a provider's inventories",
        details="Missing fields get their defaults; the request does not merge with the old "
        "inventories.",
        body=Body(
            always(REPLACE),
            always(
                {
                    **examples.GENERATION,
                    "inventories": {
                        "VCPU": {"total": 64, "reserved": 2, "allocation_ratio": 4.0},
                        "MEMORY_MB": {"total": 262144, "step_size": 1024},
                    },
                }
            ),
        ),
        answers=shows(_INVENTORIES, Dated.WHERE_KNOWN, means="The new inventories."),
        conflict=f"{_CHANGED}, or a class that the request removes has allocations.",
    ),
    _on_all(
        "DELETE",
        handler="inventories:delete_inventories",
        rule=_DELETE_RULE,
        summary="Delete all of a provider's inventories",
        since=5,
        absent_is_405=True,
        answers=DONE,
        conflict=_IN_USE,
    ),
    _on_one(
        "GET",
        handler="inventories:show_inventory",
        rule=for_agents("placement:resource_providers:inventories:show", "Show one inventory."),
        summary="Show a provider's inventory of a resource class",
        answers=shows(_INVENTORY),
    ),
    _on_one(
        "PUT",
        handler="inventories:update_inventory",
        rule=_UPDATE_RULE,
        summary="Replace a provider's inventory of a resource class",
        body=Body(always(UPDATE), always({**examples.GENERATION, **examples.RECORD})),
        answers=shows(_INVENTORY, means="The new inventory."),
        conflict=f"{_CHANGED}.",
    ),
    _on_one(
        "DELETE",
        handler="inventories:delete_inventory",
        rule=_DELETE_RULE,
        summary="Delete a provider's inventory of a resource class",
        answers=DONE,
        conflict=_IN_USE,
    ),
)
