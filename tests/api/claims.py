# SPDX-License-Identifier: Apache-2.0
"""Claims over HTTP: bodies at every microversion, consumers, and their allocations.

The providers come from `tests.api.worlds`.
"""

from collections.abc import Mapping
from typing import Any

from tests.api.versions import at_least
from tests.api.worlds import done, new_uuid
from tests.client import Client

#: What is claimed: provider -> class -> amount.
Claims = Mapping[str, Mapping[str, int]]

#: Stands for "do not write this key at all" in `claim_body`.
LEFT_OUT = object()


def claim_body(
    version: str,
    claims: Claims,
    *,
    project: object = "project",
    user: object = "user",
    consumer_generation: object = None,
    consumer_type: object = "INSTANCE",
) -> dict[str, Any]:
    """The body of `PUT /allocations/{consumer}` in the form of this microversion."""
    body: dict[str, Any] = {"allocations": _allocations(version, claims)}
    if at_least(version, "1.8"):
        body |= {"project_id": project, "user_id": user}
    if at_least(version, "1.28"):
        body["consumer_generation"] = consumer_generation
    if at_least(version, "1.38"):
        body["consumer_type"] = consumer_type
    return {key: value for key, value in body.items() if value is not LEFT_OUT}


def _allocations(version: str, claims: Claims) -> object:
    if at_least(version, "1.12"):
        return {uuid: {"resources": dict(resources)} for uuid, resources in claims.items()}
    return [
        {"resource_provider": {"uuid": uuid}, "resources": dict(resources)}
        for uuid, resources in claims.items()
    ]


def consumer(
    client: Client,
    claims: Claims,
    *,
    project: str = "project",
    user: str = "user",
    consumer_type: str = "INSTANCE",
) -> str:
    """The uuid of a new consumer with these allocations, at generation 1."""
    uuid = new_uuid()
    body = claim_body("1.39", claims, project=project, user=user, consumer_type=consumer_type)
    done(client.put(f"/allocations/{uuid}", json=body), 204)
    return uuid


def held(client: Client, consumer_uuid: str) -> dict[str, dict[str, int]]:
    """The consumer's allocations: provider -> class -> amount."""
    answer = client.get(f"/allocations/{consumer_uuid}").json["allocations"]
    return {uuid: entry["resources"] for uuid, entry in answer.items()}


def used(client: Client, provider_uuid: str) -> dict[str, int]:
    """The provider's usage by class."""
    usages: dict[str, int] = client.get(f"/resource_providers/{provider_uuid}/usages").json[
        "usages"
    ]
    return usages
