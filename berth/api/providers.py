# SPDX-License-Identifier: Apache-2.0
"""Resource providers: list, create, show, rename and move, delete.

Source: spec/rest-api.md 4.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Literal

from msgspec import Raw

from berth.api import body, caching, filters
from berth.api.microversion import ByMicroversion
from berth.api.paths import provider_uuid
from berth.api.query_string import Pairs, last_values, parse_pairs, values_of
from berth.api.rendering import LongBody, answer, answer_empty, answer_long, encode
from berth.api.request import Request, Response, Services
from berth.api.schemas import providers as schemas
from berth.model.errors import ProviderNameMissing
from berth.model.filters import ProviderFilters
from berth.model.ids import ProviderUUID, parse_uuid_dashed, parse_uuid_lax
from berth.model.provider import Provider
from berth.model.sentinels import UNSET, Sentinel
from berth.store import providers as store

TREES_SINCE = 14
CREATED_IS_SHOWN_SINCE = 20
MOVING_SINCE = 37

_BASE_LINKS = ("inventories", "usages")
LINKS = ByMicroversion(
    {
        0: _BASE_LINKS,
        1: (*_BASE_LINKS, "aggregates"),
        6: (*_BASE_LINKS, "aggregates", "traits"),
        11: (*_BASE_LINKS, "aggregates", "traits", "allocations"),
    }
)

#: What stands for a uuid in links that are rendered for all; no mount has it.
_ANY_UUID = "\0"
_ANY_UUID_ENCODED = encode(_ANY_UUID)[1:-1]


def list_providers(services: Services, request: Request, response: Response) -> None:
    """Answer all providers that meet the filters."""
    wanted = decode_filters(parse_pairs(request.query_string), request.microversion)
    listing = _Listing(request.mount, request.microversion)
    body = LongBody(listing.pieces(store.iter_providers(services.database, wanted)))
    caching.stamp_or_now(request, response, listing.newest)
    answer_long(response, body)


def create_provider(services: Services, request: Request, response: Response) -> None:
    """Create a provider, as a root or below a parent."""
    wanted = body.read(request, schemas.CREATE.at(request.microversion))
    given_uuid, parent = wanted.get("uuid"), wanted.get("parent_provider_uuid")
    uuid = _canonical(given_uuid) if given_uuid else ProviderUUID(str(uuids.uuid4()))
    if not wanted["name"]:
        raise ProviderNameMissing(uuid)
    provider = store.create_provider(
        services.database,
        uuid=uuid,
        name=wanted["name"],
        parent_uuid=None if parent is None else _canonical(parent),
    )
    response.set_header("location", request.location(f"/resource_providers/{provider.uuid}"))
    if request.microversion >= CREATED_IS_SHOWN_SINCE:
        _answer_with(provider, request, response)
    else:
        answer_empty(response, status=201)


def show_provider(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Answer one provider."""
    _answer_with(store.get_provider(services.database, provider_uuid(uuid)), request, response)


def update_provider(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Rename a provider, and move it where the body names a parent."""
    provider = provider_uuid(uuid)
    with body.judged_after(services.database, provider):
        wanted = body.read(request, schemas.UPDATE.at(request.microversion))
    updated = store.update_provider(
        services.database,
        provider,
        name=wanted["name"],
        parent_uuid=_parent_in(wanted),
        may_reparent=request.microversion >= MOVING_SINCE,
    )
    _answer_with(updated, request, response)


def delete_provider(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Delete a provider that has neither children nor allocations."""
    store.delete_provider(services.database, provider_uuid(uuid))
    answer_empty(response)


def render(provider: Provider, mount: str, microversion: int) -> dict[str, Any]:
    """A provider as a microversion shows it; links begin with the mount prefix."""
    return _shown(provider, _links(provider.uuid, mount, microversion), microversion)


def _links(uuid: str, mount: str, microversion: int) -> list[dict[str, str]]:
    path = f"{mount}/resource_providers/{uuid}"
    links = [{"rel": "self", "href": path}]
    return links + [{"rel": rel, "href": f"{path}/{rel}"} for rel in LINKS.at(microversion)]


def _shown(provider: Provider, links: object, microversion: int) -> dict[str, Any]:
    shown = {
        "uuid": provider.uuid,
        "name": provider.name,
        "generation": provider.generation,
        "links": links,
    }
    if microversion >= TREES_SINCE:
        shown["parent_provider_uuid"] = provider.parent_uuid
        shown["root_provider_uuid"] = provider.root_uuid
    return shown


class _Listing:
    """Renders a list of providers, as `render` does each, and remembers the newest change.

    PERF bench, flat: a provider's links are most of its text, and differ by its uuid only.
    """

    def __init__(self, mount: str, microversion: int) -> None:
        self._microversion = microversion
        self._links = encode(_links(_ANY_UUID, mount, microversion))
        #: When one of those that were rendered was changed last; None before the first.
        self.newest: datetime | None = None

    def pieces(self, parts: Iterable[list[Provider]]) -> Iterator[bytes]:
        """The JSON of the whole list."""
        begin = b'{"resource_providers":['
        for part in parts:
            if part:
                yield begin + encode([self._rendered(provider) for provider in part])[1:-1]
                begin = b","
        yield b"]}" if begin == b"," else begin + b"]}"

    def _rendered(self, provider: Provider) -> dict[str, Any]:
        modified = provider.last_modified
        if modified is not None and (self.newest is None or modified > self.newest):
            self.newest = modified
        links = self._links.replace(_ANY_UUID_ENCODED, encode(provider.uuid)[1:-1])
        return _shown(provider, Raw(links), self._microversion)


def decode_filters(pairs: Pairs, microversion: int) -> ProviderFilters:
    """The filters of a query."""
    last = last_values(pairs)
    schemas.FILTERS.at(microversion).check(last)
    required = values_of(pairs, "required")
    if microversion < filters.ANY_TRAITS_SINCE:
        required = required[-1:]
    memberships = filters.parse_member_of(values_of(pairs, "member_of"), microversion)
    traits = filters.parse_traits(required, microversion)
    return ProviderFilters(
        name=last.get("name") or None,
        uuid=_dashed(last.get("uuid")),
        in_tree=_dashed(last.get("in_tree")),
        member_of=memberships.member_of,
        not_member_of=memberships.not_member_of,
        resources=filters.parse_resources(last["resources"]) if "resources" in last else {},
        required=tuple(dict.fromkeys(traits.required)),
        forbidden=traits.forbidden,
    )


def _answer_with(provider: Provider, request: Request, response: Response) -> None:
    caching.stamp(request, response, provider.last_modified)
    answer(response, render(provider, request.mount, request.microversion))


def _canonical(text: str) -> ProviderUUID:
    """A uuid that the schema has let in."""
    return ProviderUUID(parse_uuid_lax(text) or text)


def _dashed(text: str | None) -> ProviderUUID | None:
    return ProviderUUID(parse_uuid_dashed(text) or text) if text is not None else None


def _parent_in(wanted: dict[str, Any]) -> ProviderUUID | Literal[Sentinel.UNSET] | None:
    """The parent that a PUT asks for: absent keeps the present one, null takes it away."""
    if "parent_provider_uuid" not in wanted:
        return UNSET
    parent = wanted["parent_provider_uuid"]
    return None if parent is None else _canonical(parent)
