# SPDX-License-Identifier: Apache-2.0
"""Resource classes (1.2).

Source: spec/rest-api.md 8.
"""

from __future__ import annotations

from typing import Any

from berth.api import answers, body
from berth.api.contract import (
    CREATED_OR_THERE,
    DONE,
    Answer,
    Body,
    Contract,
    Dated,
    always,
    component,
    ref,
    shows,
)
from berth.api.request import Call
from berth.api.schema import Schema
from berth.api.shapes import (
    CLASS_NAME,
    CUSTOM_NAME_PATTERN,
    closed_object,
    exact_object,
    links,
    list_of,
)
from berth.model.names import NAME_LENGTH_MAX, is_custom_class_name
from berth.store import resource_classes as store

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


@Contract(summary="List resource classes", answers=shows(_RESOURCE_CLASSES))
def list_resource_classes(call: Call) -> dict[str, Any]:
    """List all resource classes, the standard ones first."""
    classes = store.list_resource_classes(call.services.database)
    answers.stamp_or_now(call, classes.last_modified)
    mount = call.mount
    rendered = [_render(name, mount) for name in classes.names]
    return {"resource_classes": rendered}


@Contract(
    summary="Create a resource class",
    details="The names of custom ones start with `CUSTOM_`.",
    body=_NAMED,
    answers=(Answer(201, located=True, means="Created."),),
    conflict="Another resource class has the name.",
)
def create_resource_class(call: Call) -> None:
    """Create a custom resource class."""
    name = body.read(call, CUSTOM_NAME)["name"]
    store.create_resource_class(call.services.database, name)
    call.headers["location"] = call.location(f"/resource_classes/{name}")


@Contract(summary="Show a resource class", answers=shows(_RESOURCE_CLASS))
def show_resource_class(call: Call, name: str) -> dict[str, Any]:
    """Show one resource class."""
    resource_class = store.get_resource_class(call.services.database, name)
    answers.stamp_or_now(call, resource_class.last_modified)
    return _render(resource_class.name, call.mount)


@Contract(
    summary="Rename a resource class",
    details="Standard ones cannot be renamed. From microversion 1.7, this request creates or "
    "confirms the class instead.",
    body=_NAMED,
    answers=shows(_RESOURCE_CLASS, Dated.NO, means="The renamed class."),
    conflict="Another class has the new name.",
)
def rename_resource_class(call: Call, name: str) -> dict[str, Any]:
    """Rename a custom resource class (1.2 to 1.6)."""
    new_name = body.read(call, CUSTOM_NAME)["name"]
    store.rename_resource_class(call.services.database, name, new_name)
    return _render(new_name, call.mount)


@Contract(
    summary="Create a resource class, or confirm that it exists",
    details="The names of custom ones start with `CUSTOM_`.",
    answers=CREATED_OR_THERE,
)
def ensure_resource_class(call: Call, name: str) -> None:
    """Create a custom resource class if missing (1.7)."""
    if not is_custom_class_name(name):
        # COMPAT: OpenStack Placement puts the name into a JSON string, and parses that.
        CUSTOM_NAME.check(body.decode(f'{{"name": "{name}"}}'.encode()))
        CUSTOM_NAME.check({"name": name})
    created = store.ensure_resource_class(call.services.database, name)
    call.headers["location"] = call.location(f"/resource_classes/{name}")
    call.status = answers.STATUS_LINES[201 if created else 204]


@Contract(
    summary="Delete a resource class",
    details="Standard ones cannot be deleted.",
    answers=DONE,
    conflict="A provider has an inventory of the class.",
)
def delete_resource_class(call: Call, name: str) -> None:
    """Delete a custom resource class that no provider has."""
    store.delete_resource_class(call.services.database, name)


def _render(name: str, mount: str) -> dict[str, Any]:
    return {
        "name": name,
        "links": [{"rel": "self", "href": f"{mount}/resource_classes/{name}"}],
    }
