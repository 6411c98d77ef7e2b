# SPDX-License-Identifier: Apache-2.0
"""Resource classes (1.2).

Source: spec/rest-api.md 8.
"""

from __future__ import annotations

from functools import partial

from berth.api.operation import (
    CREATED_OR_THERE,
    DONE,
    Answer,
    Body,
    Dated,
    Operation,
    Segment,
    always,
    component,
    for_agents,
    for_services,
    ref,
    shows,
)
from berth.api.operations.fragments import (
    CLASS_NAME,
    CUSTOM_NAME_PATTERN,
    closed_object,
    exact_object,
    links,
    list_of,
)
from berth.api.schema import Schema
from berth.model.names import NAME_LENGTH_MAX

TAG = "Resource classes"
_NAME = {"name": Segment("The name of the resource class.", CLASS_NAME, "CUSTOM_LICENCE")}

#: A custom resource class name, from a body or from the path.
CUSTOM_NAME = Schema(
    closed_object(
        {
            "name": {
                "type": "string",
                "pattern": CUSTOM_NAME_PATTERN,
                "maxLength": NAME_LENGTH_MAX,
            }
        },
        required=("name",),
    )
)

_EXAMPLE = {
    "name": "CUSTOM_LICENCE",
    "links": [{"rel": "self", "href": "/resource_classes/CUSTOM_LICENCE"}],
}
_RESOURCE_CLASS = component(
    "ResourceClass",
    (2, exact_object({"name": CLASS_NAME, "links": links("self")})),
    example=_EXAMPLE,
)
_RESOURCE_CLASSES = component(
    "ResourceClasses",
    (2, exact_object({"resource_classes": list_of(ref("ResourceClass"))})),
    example={"resource_classes": [_EXAMPLE]},
    parts=(_RESOURCE_CLASS,),
)
_NAMED = Body(always(CUSTOM_NAME), always({"name": "CUSTOM_LICENCE"}))
_UPDATE_RULE = for_agents(
    "placement:resource_classes:update",
    "Create a resource class, or confirm that it exists (before 1.7: rename it).",
)

_on_classes = partial(Operation, path="/resource_classes", tag=TAG, since=2)
_on_class = partial(Operation, path="/resource_classes/{name}", segments=_NAME, tag=TAG)

OPERATIONS = (
    _on_classes(
        "GET",
        handler="resource_classes:list_resource_classes",
        rule=for_agents("placement:resource_classes:list", "List resource classes."),
        summary="List resource classes",
        answers=shows(_RESOURCE_CLASSES),
    ),
    _on_classes(
        "POST",
        handler="resource_classes:create_resource_class",
        rule=for_agents("placement:resource_classes:create", "Create a resource class."),
        summary="Create a resource class",
        details="The names of custom ones start with `CUSTOM_`.",
        body=_NAMED,
        answers=(Answer(201, located=True, means="Created."),),
        conflict="Another provider has the name.",
    ),
    _on_class(
        "GET",
        handler="resource_classes:show_resource_class",
        rule=for_agents("placement:resource_classes:show", "Show a resource class."),
        summary="Show a resource class",
        since=2,
        answers=shows(_RESOURCE_CLASS),
    ),
    _on_class(
        "PUT",
        handler="resource_classes:rename_resource_class",
        rule=_UPDATE_RULE,
        summary="Rename a resource class",
        details="Standard ones cannot be renamed. From microversion 1.7, this request creates or "
        "confirms the class instead.",
        since=2,
        until=6,
        body=_NAMED,
        answers=shows(_RESOURCE_CLASS, Dated.NO, means="The renamed class."),
        conflict="Another class has the new name.",
    ),
    _on_class(
        "PUT",
        handler="resource_classes:ensure_resource_class",
        rule=_UPDATE_RULE,
        summary="Create a resource class, or confirm that it exists",
        details="The names of custom ones start with `CUSTOM_`.",
        since=7,
        answers=CREATED_OR_THERE,
    ),
    _on_class(
        "DELETE",
        handler="resource_classes:delete_resource_class",
        rule=for_services("placement:resource_classes:delete", "Delete a resource class."),
        summary="Delete a resource class",
        details="Standard ones cannot be deleted.",
        since=2,
        answers=DONE,
        conflict="A provider has an inventory of the class.",
    ),
)
