# SPDX-License-Identifier: Apache-2.0
"""Providers and aggregates by the names that people give them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from berth.cli.fleet.refusals import Forbidden, NoOwnApi, NotThere
from berth.cli.fleet.suggestions import did_you_mean

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client

#: A provider, an inventory or another object of an answer.
Json = Mapping[str, Any]

#: Beyond so many providers, one list of all is cheaper than a request for each.
_REQUESTS_MAX: Final = 100


def parsed_uuid(reference: str) -> str | None:
    """The UUID that a reference is, in its usual form; None if it is a name."""
    try:
        return str(UUID(reference))
    except ValueError:
        return None


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


# --- Aggregates -----------------------------------------------------------------------------------


class Labels:
    """The labels of every aggregate, read when they are first needed.

    A service without labels, such as OpenStack Placement, has none.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._labels: dict[str, dict[str, str]] | None = None

    def by_uuid(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of each aggregate that has any."""
        if self._labels is None:
            self._labels = _labels_in(self._client)
        return self._labels

    def aggregates(self, reference: str) -> list[str]:
        """The aggregates with a UUID, a name, or a label `key=value`.

        Raises:
            NotThere: there is none.
        """
        if uuid := parsed_uuid(reference):
            return [uuid]
        key, equals, value = reference.partition("=")
        wanted = (key, value) if equals else ("name", reference)
        uuids = [uuid for uuid, labels in self.by_uuid().items() if wanted in labels.items()]
        if not uuids:
            raise NotThere(
                f"no aggregate has the label {'='.join(wanted)}; `berth aggregate list` prints all "
                "of them"
            )
        return uuids

    def describe(self, uuid: str) -> str:
        """An aggregate by its name and its other labels, or by its UUID without any."""
        labels = dict(self.by_uuid().get(uuid, {}))
        name = labels.pop("name", None)
        others = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
        if name is None:
            return others or uuid
        return f"{name} ({others})" if others else name


def _labels_in(client: Client) -> dict[str, dict[str, str]]:
    # Deferred: completion and `--help` do not need it.
    from berth.cli.fleet.client import AGGREGATES

    try:
        listed = client.read(AGGREGATES)["aggregates"]
    except NoOwnApi:
        return {}
    return {
        str(aggregate["uuid"]): dict(aggregate["labels"])
        for aggregate in listed
        if aggregate["labels"]
    }


def described(labels: Labels, uuids: Iterable[str]) -> str:
    """Several aggregates in a sentence, in alphabetical order."""
    return ", ".join(sorted(map(labels.describe, uuids)))
