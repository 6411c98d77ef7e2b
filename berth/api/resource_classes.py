# SPDX-License-Identifier: Apache-2.0
"""Resource classes (1.2).

Source: spec/rest-api.md 8.
"""

from __future__ import annotations

from typing import Any

from berth.api import audit, body, caching
from berth.api.operations import resource_classes as schemas
from berth.api.rendering import answer, answer_empty
from berth.api.request import Request, Response, Services
from berth.model.names import is_custom_class_name
from berth.store import resource_classes as store


def list_resource_classes(services: Services, request: Request, response: Response) -> None:
    """List all resource classes, the standard ones first."""
    classes = store.list_resource_classes(services.database)
    caching.stamp_or_now(services, request, response, classes.last_modified)
    mount = request.mount
    rendered = [_render(name, mount) for name in classes.names]
    answer(response, {"resource_classes": rendered})


def create_resource_class(services: Services, request: Request, response: Response) -> None:
    """Create a custom resource class."""
    name = body.read(request, schemas.CUSTOM_NAME)["name"]
    audit.note_wanted(request, name=name)
    store.create_resource_class(services.database, name)
    response.set_header("location", request.location(f"/resource_classes/{name}"))
    answer_empty(response, status=201)


def show_resource_class(
    services: Services, request: Request, response: Response, name: str
) -> None:
    """Show one resource class."""
    resource_class = store.get_resource_class(services.database, name)
    caching.stamp_or_now(services, request, response, resource_class.last_modified)
    answer(response, _render(resource_class.name, request.mount))


def rename_resource_class(
    services: Services, request: Request, response: Response, name: str
) -> None:
    """Rename a custom resource class (1.2 to 1.6)."""
    new_name = body.read(request, schemas.CUSTOM_NAME)["name"]
    audit.note_wanted(request, name=new_name)
    store.rename_resource_class(services.database, name, new_name)
    answer(response, _render(new_name, request.mount))


def ensure_resource_class(
    services: Services, request: Request, response: Response, name: str
) -> None:
    """Create a custom resource class if missing (1.7)."""
    if not is_custom_class_name(name):
        # COMPAT: OpenStack Placement puts the name into a JSON string, and parses that.
        schemas.CUSTOM_NAME.check(body.decode(f'{{"name": "{name}"}}'.encode()))
        schemas.CUSTOM_NAME.check({"name": name})
    created = store.ensure_resource_class(services.database, name)
    response.set_header("location", request.location(f"/resource_classes/{name}"))
    answer_empty(response, status=201 if created else 204)


def delete_resource_class(
    services: Services, request: Request, response: Response, name: str
) -> None:
    """Delete a custom resource class that no provider has."""
    store.delete_resource_class(services.database, name)
    answer_empty(response)


def _render(name: str, mount: str) -> dict[str, Any]:
    return {
        "name": name,
        "links": [{"rel": "self", "href": f"{mount}/resource_classes/{name}"}],
    }
