# SPDX-License-Identifier: Apache-2.0
"""One request of the script, and short ways to write many."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import NAMESPACE_URL, uuid5

from bench.api import LATEST, Json

#: The headers of a caller who may do everything (berth and Placement in noauth2 mode).
CALLER: Mapping[str, str] = {"x-auth-token": "admin", "x-roles": "admin,service"}

_UUID = re.compile("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def uid(name: str) -> str:
    """The uuid that the script uses for `name`: the same in every run and on both servers."""
    return str(uuid5(NAMESPACE_URL, f"berth/{name}"))


@dataclass(frozen=True, slots=True)
class Step:
    """A request, ready to be sent."""

    method: str
    path: str
    version: str | None
    headers: Mapping[str, str]
    body: bytes | None
    #: True where a list of candidates is answered: those are compared as multisets.
    candidates: bool = field(default=False)

    def __str__(self) -> str:
        """The request on one line, without the caller's headers."""
        hidden = {*CALLER, "openstack-api-version"}
        if self.headers.get("content-type") == "application/json":
            hidden.add("content-type")
        shown = [f"{name}={value!r}" for name, value in self.headers.items() if name not in hidden]
        shown += [f"-{name}" for name in CALLER if name not in self.headers]
        body = [] if self.body is None else [self.body.decode(errors="backslashreplace")]
        return " ".join([f"[{self.version or '-'}]", self.method, self.path, *shown, *body])


def request(
    method: str,
    path: str,
    version: str | None = LATEST,
    json_body: Json | bytes = b"",
    **headers: str | None,
) -> Step:
    """Write a request.

    Args:
        method: as sent.
        path: path and query string, percent-encoded where necessary.
        version: microversion, or None to send no header.
        json_body: bytes are sent as they are (none at all when empty), anything else as JSON
            with its content type.
        headers: further headers, underscores for dashes; None takes away one of the usual ones.
    """
    sent: dict[str, str] = dict(CALLER)
    if version is not None:
        sent["openstack-api-version"] = f"placement {version}"
    raw = json_body if isinstance(json_body, bytes) else json.dumps(json_body).encode()
    body = raw or None
    if body is not None:
        sent["content-type"] = "application/json"
    for name, value in headers.items():
        dashed = name.replace("_", "-")
        if value is None:
            sent.pop(dashed, None)
        else:
            sent[dashed] = value
    path_only = path.partition("?")[0]
    return Step(method, path, version, sent, body, path_only == "/allocation_candidates")


def get(path: str, *versions: str) -> Iterator[Step]:
    """`GET path` at each of `versions` (the latest if none is given)."""
    for version in versions or (LATEST,):
        yield request("GET", path, version)


def make_provider(name: str, parent: str | None = None) -> Step:
    """Create the provider `name`, whose uuid is `uid(name)`."""
    body: dict[str, Json] = {"name": name, "uuid": uid(name)}
    if parent is not None:
        body["parent_provider_uuid"] = uid(parent)
    return request("POST", "/resource_providers", LATEST, body)


def set_inventories(name: str, generation: int, inventories: Json) -> Step:
    """Replace the inventories of provider `name`."""
    return request(
        "PUT",
        f"/resource_providers/{uid(name)}/inventories",
        LATEST,
        {"resource_provider_generation": generation, "inventories": inventories},
    )


def set_traits(name: str, generation: int, traits: Sequence[str]) -> Step:
    """Replace the traits of provider `name`."""
    return request(
        "PUT",
        f"/resource_providers/{uid(name)}/traits",
        LATEST,
        {"resource_provider_generation": generation, "traits": traits},
    )


def set_aggregates(name: str, generation: int, aggregates: Sequence[str]) -> Step:
    """Replace the aggregates of provider `name` by those named."""
    return request(
        "PUT",
        f"/resource_providers/{uid(name)}/aggregates",
        LATEST,
        {
            "resource_provider_generation": generation,
            "aggregates": [uid(aggregate) for aggregate in aggregates],
        },
    )


def claim(
    consumer: str,
    allocations: Mapping[str, Mapping[str, int]],
    *,
    generation: int | None = None,
    project: str = "project",
    user: str = "user",
    consumer_type: str = "INSTANCE",
) -> Step:
    """Replace the allocations of `consumer`; providers are named, not given by uuid."""
    return request(
        "PUT",
        f"/allocations/{uid(consumer)}",
        LATEST,
        {
            "allocations": {
                uid(name): {"resources": dict(resources)} for name, resources in allocations.items()
            },
            "project_id": project,
            "user_id": user,
            "consumer_generation": generation,
            "consumer_type": consumer_type,
        },
    )


def known_uuids(steps: Iterable[Step]) -> frozenset[str]:
    """Every uuid that the requests name, lower-case and dashed."""
    names: set[str] = set()
    for step in steps:
        text = step.path + (step.body or b"").decode(errors="replace")
        names.update(match.lower() for match in _UUID.findall(text))
    return frozenset(names)
