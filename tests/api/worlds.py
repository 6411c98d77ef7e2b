# SPDX-License-Identifier: Apache-2.0
"""Small worlds for the wire tests, made over the wire.

Names and uuids are random, so that tests can share one server. What a helper makes must succeed;
what a test asks about it sends itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from tests.client import Client, Response

#: A client without any role: authenticated, and refused by every policy rule.
NOBODY: Mapping[str, str | None] = {"X-Auth-Token": "nobody:nothing", "X-Roles": None}

#: Nothing that ever exists.
NOWHERE = "00000000-0000-0000-0000-00000000dead"

TITLES = {
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    409: "Conflict",
    410: "Gone",
    412: "Precondition Failed",
    413: "Content Too Large",
    415: "Unsupported Media Type",
}


def new_uuid() -> str:
    """A uuid that nobody has, lower-case and dashed, with a letter in it."""
    return "ab" + str(uuid4())[2:]


def new_name(prefix: str = "host") -> str:
    """A provider name that nobody has."""
    return f"{prefix}-{uuid4().hex}"


def new_custom_name() -> str:
    """A name for a custom class or trait that nobody has."""
    return f"CUSTOM_{uuid4().hex.upper()}"


def provider(
    api: Client,
    inventories: Mapping[str, Any] | None = None,
    *,
    parent: str | None = None,
    aggregates: list[str] | None = None,
    traits: list[str] | None = None,
    name: str | None = None,
) -> str:
    """Make a provider and return its uuid; inventories are given as totals or as records."""
    uuid = new_uuid()
    body: dict[str, Any] = {"name": name or new_name(), "uuid": uuid}
    if parent is not None:
        body["parent_provider_uuid"] = parent
    done(api.post("/resource_providers", json=body), 200)
    if inventories is not None:
        put_inventories(api, uuid, inventories)
    if aggregates is not None:
        put_aggregates(api, uuid, aggregates)
    if traits is not None:
        put_traits(api, uuid, traits)
    return uuid


def put_inventories(api: Client, uuid: str, inventories: Mapping[str, Any]) -> None:
    """Replace a provider's inventories."""
    records = {
        name: record if isinstance(record, dict) else {"total": record}
        for name, record in inventories.items()
    }
    body = {"inventories": records, "resource_provider_generation": generation(api, uuid)}
    done(api.put(f"/resource_providers/{uuid}/inventories", json=body), 200)


def put_aggregates(api: Client, uuid: str, aggregates: list[str]) -> None:
    """Replace a provider's aggregates."""
    body = {"aggregates": aggregates, "resource_provider_generation": generation(api, uuid)}
    done(api.put(f"/resource_providers/{uuid}/aggregates", json=body), 200)


def put_traits(api: Client, uuid: str, names: list[str]) -> None:
    """Replace a provider's traits."""
    body = {"traits": names, "resource_provider_generation": generation(api, uuid)}
    done(api.put(f"/resource_providers/{uuid}/traits", json=body), 200)


def custom_trait(api: Client) -> str:
    """Make a custom trait and return its name."""
    name = new_custom_name()
    done(api.put(f"/traits/{name}"), 201)
    return name


def custom_class(api: Client) -> str:
    """Make a custom resource class and return its name."""
    name = new_custom_name()
    done(api.put(f"/resource_classes/{name}"), 201)
    return name


def generation(api: Client, uuid: str) -> int:
    """A provider's generation."""
    current = done(api.get(f"/resource_providers/{uuid}"), 200).json["generation"]
    assert isinstance(current, int)
    return current


def done(response: Response, status: int) -> Response:
    """Check that a request had the expected success, and return its answer."""
    assert response.status == status, (response.status, response.text)
    return response


def uuids_of(response: Response) -> set[str]:
    """The uuids in a list of providers."""
    return {provider["uuid"] for provider in done(response, 200).json["resource_providers"]}
