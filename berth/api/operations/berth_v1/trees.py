# SPDX-License-Identifier: Apache-2.0
"""Whole trees of providers. Source: spec/beyond.md 6.3."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from berth.api.operation import (
    DRY_RUN,
    Answer,
    Body,
    Operation,
    Parameter,
    Query,
    Segment,
    always,
    component,
    ref,
)
from berth.api.operations import examples
from berth.api.operations.berth_v1 import rules
from berth.api.operations.berth_v1.pieces import REVISION, REVISION_EXAMPLE, include_parameter
from berth.api.operations.berth_v1.provider_lines import PROVIDER_LINE, PROVIDER_LINE_EXAMPLE
from berth.api.operations.fragments import (
    CLASS_NAME_PATTERN,
    INVENTORY,
    TEXT,
    UUID,
    UUID_OR_NULL,
    closed_object,
    described,
    list_of,
    object_by,
    open_object,
)
from berth.api.schema import JSONSchema, Schema
from berth.model.bounds import TREE_PROVIDERS_MAX
from berth.model.names import NAME_LENGTH_MAX, PROVIDER_NAME_LENGTH_MAX

TAG: Final = "Trees"

#: What a line may show, and what it shows unless the client says.
INCLUDABLE: Final = ("generation", "inventories", "usages", "traits", "aggregates", "drains")
INCLUDED: Final = ("inventories", "traits", "aggregates", "drains")

_INCLUDE: Final = include_parameter(
    INCLUDABLE,
    "inventories,usages",
    "The default is all but `generation` and `usages`, which claims change. With `usages`, there "
    "are also `totals`.",
)
SHOWING: Final = Query(_INCLUDE)
EDITING: Final = Query(
    _INCLUDE,
    Parameter(
        name=DRY_RUN,
        means={0: "With `true`, nothing is written, and `changes` says what would be."},
        example="false",
        schema={"type": "string", "enum": ["true", "false"]},
    ),
)

_NAME: JSONSchema = {"type": "string", "minLength": 1, "maxLength": PROVIDER_NAME_LENGTH_MAX}
_IGNORED: JSONSchema = {"description": "Ignored, so that what `GET` shows can be sent back."}
_REFERENCE: JSONSchema = {"type": "string", "minLength": 1}

_RECORD: Final = closed_object(INVENTORY, required=("total",))
_WANTED: Final = closed_object(
    {
        "uuid": described(UUID, "berth makes one for a new provider without it."),
        "name": described(_NAME, "Required for a new provider."),
        "parent": {
            "type": ["string", "null"],
            "minLength": 1,
            "description": "The UUID or the name of a provider of the tree; null for the root. Left"
            " out, a provider stays where it is.",
        },
        "inventories": {
            "type": "object",
            "patternProperties": {
                CLASS_NAME_PATTERN: closed_object(INVENTORY, required=("total",))
            },
            "additionalProperties": False,
        },
        "traits": {
            "type": "array",
            "items": {
                "type": "string",
                "pattern": CLASS_NAME_PATTERN,
                "maxLength": NAME_LENGTH_MAX,
            },
            "uniqueItems": True,
        },
        "aggregates": {
            "type": "array",
            "items": _REFERENCE,
            "description": "By UUID, by name, or as `key=value` if one aggregate has that label.",
        },
        "root": _IGNORED,
        "generation": _IGNORED,
        "usages": _IGNORED,
        "drains": _IGNORED,
    }
)
#: What `PUT` takes.
PUT: Final = closed_object(
    {
        "providers": {
            **list_of(_WANTED),
            "minItems": 1,
            "maxItems": TREE_PROVIDERS_MAX,
            "x-bound": "max_tree_providers",
            "description": "Each has a `uuid` or a `name`. Inventories, traits and aggregates that "
            "are given replace all that the provider has; those left out stay.",
        },
        "remove_missing": {
            "type": "boolean",
            "default": False,
            "description": "Whether to remove the providers of the tree that are not listed.",
        },
        "create_names": {
            "type": "boolean",
            "default": False,
            "description": "Whether to create the custom traits and resource classes that do not "
            "exist.",
        },
        "revision": _IGNORED,
        "etag": _IGNORED,
        "totals": _IGNORED,
    },
    required=("providers",),
)

_CHILD: Final = "0b7d5a34-5a1d-4c4e-9a0f-2f6a6f0c7d11"
_SENT: Final = {
    "providers": [
        {"name": "cn1", "uuid": examples.PROVIDER, "parent": None},
        {
            "name": "cn1_numa0",
            "parent": "cn1",
            "inventories": {"VCPU": {"total": 32}},
            "traits": ["HW_NUMA_ROOT"],
        },
    ],
    "remove_missing": False,
    "create_names": False,
}
_LINE_EXAMPLE: Final[dict[str, Any]] = {
    name: value
    for name, value in PROVIDER_LINE_EXAMPLE.items()
    if name not in ("generation", "usages")
}
_COUNT: JSONSchema = {"type": "integer", "minimum": 0}
_TOTALS: JSONSchema = described(
    object_by(
        CLASS_NAME_PATTERN,
        open_object(
            {
                "capacity": {"type": "integer"},
                "used": _COUNT,
                "free": described(_COUNT, "What is not used, in total."),
                "largest_free": described(_COUNT, "Of one provider."),
            }
        ),
    ),
    "The sums of the whole tree, by resource class.",
)
_LINES: JSONSchema = described(
    list_of(ref("ProviderLine")), "The providers of the tree, parents first."
)
_ETAG: JSONSchema = described(
    TEXT,
    "The `ETag` of the tree without `include`, which `If-Match` of `PUT` takes: "
    "claims do not change it.",
)
_ETAG_EXAMPLE: Final = '"9f86d081884c7d659a2feaa0c55ad015"'
_TREE: Final = component(
    "Tree",
    open_object(
        {"revision": REVISION, "etag": _ETAG, "providers": _LINES},
        optional={"totals": _TOTALS},
    ),
    example={
        "revision": REVISION_EXAMPLE,
        "etag": _ETAG_EXAMPLE,
        "providers": [_LINE_EXAMPLE],
    },
    parts=(PROVIDER_LINE,),
)

_SIDE: JSONSchema = {
    "type": ["object", "null"],
    "description": "The members that become others; null if the provider does not exist then. "
    "`parent` is a name.",
}
_CHANGE: Final = component(
    "ProviderChange",
    open_object(
        {
            "change": {
                "type": "string",
                "enum": ["create", "update", "remove"],
                "description": "What happens to the provider.",
            },
            "uuid": described(UUID_OR_NULL, "Null if berth is yet to make one."),
            "name": described(TEXT, "Its name, as it is afterwards."),
            "before": _SIDE,
            "after": _SIDE,
        }
    ),
    example={
        "change": "create",
        "uuid": _CHILD,
        "name": "cn1_numa0",
        "before": None,
        "after": {
            "name": "cn1_numa0",
            "parent": "cn1",
            "inventories": {"VCPU": examples.RECORD},
            "traits": ["HW_NUMA_ROOT"],
            "aggregates": [],
        },
    },
)
_CREATED: Final = "The custom names that were created."
_EDITED: Final = component(
    "EditedTree",
    open_object(
        {
            "revision": REVISION,
            "changes": described(
                list_of(ref("ProviderChange")),
                "What differed: parents first, and last what is removed.",
            ),
            "created_resource_classes": described(list_of(TEXT), _CREATED),
            "created_traits": described(list_of(TEXT), _CREATED),
        },
        optional={
            "etag": described(_ETAG, f"{_ETAG['description']} Not without `providers`."),
            "providers": described(
                _LINES,
                "The tree afterwards; not in a dry run, nor if another client has changed it "
                "since.",
            ),
            "totals": _TOTALS,
        },
    ),
    example={
        "revision": REVISION_EXAMPLE,
        "changes": [_CHANGE.example.at(0) if _CHANGE.example else None],
        "created_resource_classes": [],
        "created_traits": [],
        "etag": _ETAG_EXAMPLE,
        "providers": [_LINE_EXAMPLE],
    },
    parts=(_CHANGE, PROVIDER_LINE),
)

_on_tree = partial(
    Operation,
    path="/trees/{reference}",
    segments={
        "reference": Segment(
            "The UUID or the name of any provider of the tree.", _REFERENCE, "cn1", is_rest=True
        )
    },
    tag=TAG,
)

OPERATIONS = (
    _on_tree(
        "PUT",
        handler="berth_v1.trees:put_tree",
        rule=rules.TREES_UPDATE,
        summary="Create a tree of providers, or change it to match the body",
        details="All or nothing, in one transaction. A tree that does not exist is created. "
        "Allocations do not move.",
        query=EDITING,
        body=Body(always(Schema(PUT)), always(_SENT)),
        answers=(
            Answer(201, _EDITED, located=True, means="Created."),
            Answer(200, _EDITED, means="Changed; or it was the same already; or a dry run."),
        ),
        conflict="What would be removed has allocations, or a provider of another tree has a UUID "
        "or a name that is to be given.",
        precondition="`If-Match` has another `ETag` than `GET` without `include` shows, or "
        "`If-None-Match: *` is sent and the tree exists.",
    ),
    _on_tree(
        "GET",
        handler="berth_v1.trees:show_tree",
        rule=rules.TREES_SHOW,
        summary="Show a tree of providers",
        details="The `ETag` stands for exactly what is shown: by default, claims do not change it.",
        query=SHOWING,
        answers=(
            Answer(200, _TREE, means="The tree.", tagged=True),
            Answer(304, means="Nothing of what would be shown has changed since.", tagged=True),
        ),
    ),
)
