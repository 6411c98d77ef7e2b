# SPDX-License-Identifier: Apache-2.0
"""Resource providers: list, create, show, rename and move, delete.

Source: spec/rest-api.md 4.
"""

from __future__ import annotations

import uuid as uuids
from typing import Any, Final, Literal

from berth.api import audit, body, caching, filters
from berth.api.operations import providers as schemas
from berth.api.operations.providers import CREATED_IS_SHOWN_SINCE, LINKS, TREES_SINCE
from berth.api.paths import provider_uuid
from berth.api.query_string import Pairs, parse_pairs, values_of
from berth.api.rendering import answer, answer_bytes, answer_empty, answer_pieces, encode
from berth.api.request import Request, Response, Services
from berth.candidates.providers import find_providers
from berth.index.memory import Memory
from berth.index.provider_texts import Field, ProviderForm, ProviderList
from berth.index.providers import get_provider
from berth.model.errors import ProviderNameMissing
from berth.model.filters import ProviderFilters
from berth.model.ids import ProviderUUID, parse_uuid_dashed, parse_uuid_lax
from berth.model.provider import Provider
from berth.model.sentinels import UNSET, Sentinel
from berth.store import providers as store

MOVING_SINCE = 37

#: Stands for the uuid in links that are rendered once; no mount contains it.
_ANY_UUID = "\0"
_ANY_UUID_ENCODED = encode(_ANY_UUID)[1:-1]

_LIST_HEAD: Final = b'{"resource_providers":['


def list_providers(services: Services, request: Request, response: Response) -> None:
    """List the providers that match the filters."""
    wanted = decode_filters(parse_pairs(request.query_string), request.microversion)
    snapshot = services.index.snapshot()
    form = _form_of(snapshot.memory, request.mount, request.microversion)
    places = find_providers(snapshot, wanted)
    if services.rights is not None:
        services.rights.check_listed(snapshot, places)
    listing = ProviderList(snapshot, places, form, _LIST_HEAD)
    caching.stamp_or_now(services, request, response, listing.modified)
    answer_pieces(response, listing.pieces(), listing.length)


def create_provider(services: Services, request: Request, response: Response) -> None:
    """Create a provider, as a root or below a parent."""
    wanted = body.read(request, schemas.CREATE.at(request.microversion))
    given_uuid, parent = wanted.get("uuid"), wanted.get("parent_provider_uuid")
    uuid = _canonical(given_uuid) if given_uuid else ProviderUUID(str(uuids.uuid4()))
    if not wanted["name"]:
        raise ProviderNameMissing(uuid)
    parent_uuid = None if parent is None else _canonical(parent)
    audit.note_new_provider(services, request, uuid, wanted["name"], parent_uuid)
    provider = store.create_provider(
        services.database, uuid=uuid, name=wanted["name"], parent_uuid=parent_uuid
    )
    response.set_header("location", request.location(f"/resource_providers/{provider.uuid}"))
    if request.microversion >= CREATED_IS_SHOWN_SINCE:
        _answer_with(provider, request, response)
    else:
        answer_empty(response, status=201)


def show_provider(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Show one provider."""
    snapshot = services.index.snapshot()
    provider = get_provider(snapshot, provider_uuid(uuid))
    form = _form_of(snapshot.memory, request.mount, request.microversion)
    caching.stamp(request, response, provider.modified)
    answer_bytes(response, form.text(provider.block, provider.node, provider.row))


def update_provider(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Rename a provider, and move it if the body names a parent."""
    provider = provider_uuid(uuid)
    with body.report_missing_provider_first(services.database, provider):
        wanted = body.read(request, schemas.UPDATE.at(request.microversion))
    parent = _parent_in(wanted)
    audit.note_provider(request, wanted["name"], parent)
    updated = store.update_provider(
        services.database,
        provider,
        name=wanted["name"],
        parent_uuid=parent,
        may_reparent=request.microversion >= MOVING_SINCE,
    )
    _answer_with(updated, request, response)


def delete_provider(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Delete a provider that has neither children nor allocations."""
    provider = provider_uuid(uuid)
    audit.note_deleted_provider(services, request, provider)
    store.delete_provider(services.database, provider)
    answer_empty(response)


def render(provider: Provider, mount: str, microversion: int) -> dict[str, Any]:
    """A provider as a microversion shows it; links start with the mount prefix."""
    shown = {
        "uuid": provider.uuid,
        "name": provider.name,
        "generation": provider.generation,
        "links": _links(provider.uuid, mount, microversion),
    }
    if microversion >= TREES_SINCE:
        shown["parent_provider_uuid"] = provider.parent_uuid
        shown["root_provider_uuid"] = provider.root_uuid
    return shown


def _links(uuid: str, mount: str, microversion: int) -> list[dict[str, str]]:
    path = f"{mount}/resource_providers/{uuid}"
    links = [{"rel": "self", "href": path}]
    return links + [{"rel": rel, "href": f"{path}/{rel}"} for rel in LINKS.at(microversion)]


def _form_of(memory: Memory, mount: str, microversion: int) -> ProviderForm:
    """The form of a provider's JSON, as `render` shows it; kept."""
    key = "provider", mount, microversion
    form: ProviderForm | None = memory.get(key)
    if form is None:
        links = encode(_links(_ANY_UUID, mount, microversion)).split(_ANY_UUID_ENCODED)
        literals = [b'{"uuid":"', b'","name":', b',"generation":', b',"links":' + links[0]]
        literals += links[1:]
        fields = [Field.UUID, Field.NAME, Field.GENERATION, *(Field.UUID for _ in links[1:])]
        if microversion >= TREES_SINCE:
            literals[-1] += b',"parent_provider_uuid":'
            literals += [b',"root_provider_uuid":"', b'"']
            fields += [Field.PARENT, Field.ROOT]
        literals[-1] += b"}"
        form = ProviderForm(tuple(literals), tuple(fields))
        memory.keep(key, form, form.size, is_lasting=True)
    return form


def decode_filters(pairs: Pairs, microversion: int) -> ProviderFilters:
    """Decode query filters."""
    last = dict(pairs)
    schemas.FILTERS.schema.at(microversion).check(last)
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
    """A uuid that passed the schema."""
    return ProviderUUID(parse_uuid_lax(text) or text)


def _dashed(text: str | None) -> ProviderUUID | None:
    return ProviderUUID(parse_uuid_dashed(text) or text) if text is not None else None


def _parent_in(wanted: dict[str, Any]) -> ProviderUUID | Literal[Sentinel.UNSET] | None:
    """The parent that a PUT requests: absent keeps the current one, null removes it."""
    if "parent_provider_uuid" not in wanted:
        return UNSET
    parent = wanted["parent_provider_uuid"]
    return None if parent is None else _canonical(parent)
