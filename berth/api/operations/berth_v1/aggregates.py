# SPDX-License-Identifier: Apache-2.0
"""Aggregates with their labels. Source: spec/beyond.md 7.2."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from berth.api.operation import (
    Answer,
    Body,
    Dated,
    Operation,
    Parameter,
    Query,
    Segment,
    always,
    component,
    ref,
    shows,
)
from berth.api.operations import examples
from berth.api.operations.berth_v1.pieces import REVISION, REVISION_EXAMPLE
from berth.api.operations.berth_v1.rules import AGGREGATES_LIST, AGGREGATES_UPDATE
from berth.api.operations.fragments import (
    COUNT,
    UUID,
    described,
    exact_object,
    list_of,
    open_object,
)
from berth.api.schema import JSONSchema, Schema
from berth.model.bounds import LABELS_MAX
from berth.model.names import LABEL_KEY
from berth.model.printable import CONTROLS

TAG: Final = "Aggregates"

_VALUE: Final = f"[^={CONTROLS}]{{1,255}}"
_VALUE_SCHEMA: JSONSchema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": rf"^[^={CONTROLS}]*\Z",
}

_LABELS: dict[str, Any] = {
    "type": "object",
    "description": "Keys and values. The label `name` is unique among all aggregates.",
    "patternProperties": {rf"^{LABEL_KEY}\Z": _VALUE_SCHEMA},
    "additionalProperties": False,
}
#: What `PUT` takes.
REPLACE: Final = exact_object(
    {"labels": {**_LABELS, "maxProperties": LABELS_MAX, "x-bound": "max_labels"}}
)

FILTERS: Final = Query(
    Parameter(
        name="label",
        means={
            0: "Only aggregates with this label, `key=value`. If repeated, with all of these "
            "labels."
        },
        example="zone=z1",
        schema={"type": "string", "pattern": rf"^{LABEL_KEY}={_VALUE}\Z"},
        expected="a label, key=value, such as zone=z1",
        repeats_since=0,
    )
)

_EXAMPLE: Final = {
    "uuid": examples.AGGREGATE,
    "labels": {"name": "az-1", "zone": "z1"},
    "members": 40,
}
_MEMBERS: dict[str, JSONSchema] = {
    "uuid": UUID,
    "labels": _LABELS,
    "members": described(COUNT, "How many providers are in the aggregate."),
}
_LISTED: Final = component("ListedAggregate", open_object(_MEMBERS), example=_EXAMPLE)
_AGGREGATE: Final = component(
    "Aggregate",
    open_object({"revision": REVISION, **_MEMBERS}),
    example={"revision": REVISION_EXAMPLE, **_EXAMPLE},
)
_AGGREGATES: Final = component(
    "Aggregates",
    open_object(
        {
            "revision": REVISION,
            "aggregates": described(
                list_of(ref("ListedAggregate")),
                "The aggregates that have labels or members, by UUID.",
            ),
        }
    ),
    example={"revision": REVISION_EXAMPLE, "aggregates": [_EXAMPLE]},
    parts=(_LISTED,),
)

_on_aggregate = partial(
    Operation,
    path="/aggregates/{uuid}",
    segments={"uuid": Segment("The UUID of the aggregate.", UUID, examples.AGGREGATE)},
    tag=TAG,
)

OPERATIONS = (
    Operation(
        "GET",
        "/aggregates",
        handler="berth_v1.aggregates:list_aggregates",
        rule=AGGREGATES_LIST,
        tag=TAG,
        summary="List aggregates with their labels",
        query=FILTERS,
        answers=(
            Answer(200, _AGGREGATES, means="The aggregates with all of the labels.", tagged=True),
            Answer(304, means="Nothing has changed since.", tagged=True),
        ),
    ),
    _on_aggregate(
        "GET",
        handler="berth_v1.aggregates:show_aggregate",
        rule=AGGREGATES_LIST,
        summary="Show an aggregate with its labels",
        answers=shows(_AGGREGATE, Dated.NO),
    ),
    _on_aggregate(
        "PUT",
        handler="berth_v1.aggregates:replace_labels",
        rule=AGGREGATES_UPDATE,
        summary="Replace the labels of an aggregate",
        details="An empty object removes them. An aggregate may have labels before a provider is "
        "in it.",
        body=Body(always(Schema(REPLACE)), always({"labels": _EXAMPLE["labels"]})),
        answers=shows(_AGGREGATE, Dated.NO, means="The aggregate with its new labels."),
        conflict="Another aggregate has this `name`.",
    ),
)
