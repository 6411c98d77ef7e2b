# SPDX-License-Identifier: Apache-2.0
"""Providers and consumers by the names that people give them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from berth.cli.fleet.labels import parsed_uuid
from berth.cli.fleet.refusals import did_you_mean
from berth.model.paths import path_of
from berth.model.refusals import Forbidden, NotThere

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client

#: A provider, an inventory or another object of an answer.
Json = Mapping[str, Any]

#: From this number of providers on, one list of all is cheaper than a request for each.
_REQUESTS_MAX: Final = 100


def find_provider(client: Client, reference: str) -> Json:
    """The provider with a name or a UUID.

    Raises:
        NotThere: there is none.
    """
    if uuid := parsed_uuid(reference):
        provider: Json = client.read(f"/resource_providers/{uuid}")
        return provider
    listed: list[Json] = client.read("/resource_providers", ("name", reference))[
        "resource_providers"
    ]
    if not listed:
        hint = did_you_mean(client, "/resource_providers", reference)
        raise NotThere(
            f"no provider is named {reference}"
            + (hint or "; `berth provider list` prints all of them")
        )
    return listed[0]


def uuid_of(client: Client, reference: str) -> str:
    """The UUID of the provider with a name; a UUID itself is not looked up.

    Raises:
        NotThere: no provider has this name.
    """
    return parsed_uuid(reference) or str(find_provider(client, reference)["uuid"])


def path_to_provider(client: Client, reference: str, *parts: str) -> str:
    """The path of the provider with a name or a UUID, or of what it has, such as its `traits`.

    Raises:
        NotThere: no provider has this name.
    """
    return path_of("resource_providers", uuid_of(client, reference), *parts)


def consumer_uuid_of(client: Client, reference: str) -> str:
    """The UUID of the consumer `project/name`; a UUID itself is not looked up.

    Raises:
        NotThere: no consumer has this name.
    """
    return client.consumer(reference).uuid if "/" in reference else reference


def names_of(client: Client, uuids: Collection[str]) -> dict[str, str]:
    """The names of providers by UUID.

    One that is gone keeps its UUID as its name, and so do all if the caller may not read providers,
    as a member of a project.
    """
    try:
        return _names_of(client, uuids)
    except Forbidden:
        return {uuid: uuid for uuid in uuids}


def _names_of(client: Client, uuids: Collection[str]) -> dict[str, str]:
    if len(uuids) > _REQUESTS_MAX:
        listed = client.read("/resource_providers")["resource_providers"]
        every = {str(provider["uuid"]): str(provider["name"]) for provider in listed}
        return {uuid: every.get(uuid, uuid) for uuid in uuids}
    return {uuid: _name_of(client, uuid) for uuid in uuids}


def _name_of(client: Client, uuid: str) -> str:
    try:
        return str(client.read(f"/resource_providers/{uuid}")["name"])
    except NotThere:
        return uuid
