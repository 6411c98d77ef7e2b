# SPDX-License-Identifier: Apache-2.0
"""Resource providers: list, create, show, rename and move, delete.

Source: spec/rest-api.md 4.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from berth.api import answers, audit, body, examples, filters
from berth.api.answers import Pieces, encode
from berth.api.contract import (
    DONE,
    Answer,
    Body,
    Contract,
    Dated,
    Parameter,
    Query,
    always,
    component,
    ref,
    shows,
)
from berth.api.microversion import MINOR_MAX, ByMicroversion
from berth.api.paths import provider_uuid
from berth.api.query_string import Pairs, parse_pairs, values_of
from berth.api.request import Call
from berth.api.schema import JSONSchema, Schema
from berth.api.shapes import (
    GENERATION,
    UUID,
    UUID_OR_NULL,
    closed_object,
    exact_object,
    links,
    list_of,
)
from berth.candidates.providers import find_providers
from berth.index.memory import Memory
from berth.index.provider_texts import Field, ProviderList, provider_text
from berth.index.providers import get_provider
from berth.index.texts import Template
from berth.model.errors import ProviderNameMissing
from berth.model.ids import ProviderUUID, parse_uuid_dashed, parse_uuid_lax
from berth.model.names import PROVIDER_NAME_LENGTH_MAX
from berth.model.provider import Provider, ProviderFilters
from berth.model.shown import UNSET, Sometimes
from berth.store import providers as store

TREES_SINCE = 14
CREATED_IS_SHOWN_SINCE = 20

_BASE_LINKS = ("inventories", "usages")
LINKS = ByMicroversion(
    {
        0: _BASE_LINKS,
        1: (*_BASE_LINKS, "aggregates"),
        6: (*_BASE_LINKS, "aggregates", "traits"),
        11: (*_BASE_LINKS, "aggregates", "traits", "allocations"),
    }
)

_NAME: JSONSchema = {"type": "string", "maxLength": PROVIDER_NAME_LENGTH_MAX}
_PARENT = {"parent_provider_uuid": UUID_OR_NULL}
_CREATE = {"name": _NAME, "uuid": UUID}
_UPDATE = {"name": _NAME}

CREATE = ByMicroversion(
    {
        0: Schema(closed_object(_CREATE, required=("name",))),
        TREES_SINCE: Schema(closed_object({**_CREATE, **_PARENT}, required=("name",))),
    }
)

UPDATE = ByMicroversion(
    {
        0: Schema(closed_object(_UPDATE, required=("name",))),
        TREES_SINCE: Schema(closed_object({**_UPDATE, **_PARENT}, required=("name",))),
    }
)

FILTERS = Query(
    Parameter(name="name", means="Only the provider with exactly this name.", example="cn1"),
    Parameter(
        name="uuid",
        means="Only the provider with this UUID.",
        example=examples.PROVIDER,
        schema=UUID,
    ),
    replace(filters.MEMBER_OF, since=3),
    replace(filters.RESOURCES, since=4),
    replace(filters.IN_TREE, since=14, schema=UUID),
    replace(filters.REQUIRED, since=18),
)


def _provider(microversion: int) -> JSONSchema:
    trees = {"parent_provider_uuid": UUID_OR_NULL, "root_provider_uuid": UUID}
    return exact_object(
        {
            "uuid": UUID,
            "name": _NAME,
            "generation": GENERATION,
            **(trees if microversion >= TREES_SINCE else {}),
            "links": links("self", *LINKS.at(microversion)),
        }
    )


def _example(microversion: int) -> dict[str, object]:
    path = f"/resource_providers/{examples.PROVIDER}"
    return {
        "uuid": examples.PROVIDER,
        "name": "cn1",
        "generation": 3,
        "parent_provider_uuid": None,
        "root_provider_uuid": examples.PROVIDER,
        "links": [
            {"rel": "self", "href": path},
            *({"rel": rel, "href": f"{path}/{rel}"} for rel in LINKS.at(microversion)),
        ],
    }


_EXAMPLES = ByMicroversion({minor: _example(minor) for minor in range(MINOR_MAX + 1)})
RESOURCE_PROVIDER = component(
    "ResourceProvider",
    *((minor, _provider(minor)) for minor in (0, 1, 6, 11, TREES_SINCE)),
    example=_EXAMPLES,
)
_RESOURCE_PROVIDERS = component(
    "ResourceProviders",
    exact_object({"resource_providers": list_of(ref("ResourceProvider"))}),
    example=ByMicroversion(
        {minor: {"resource_providers": [_EXAMPLES.at(minor)]} for minor in range(MINOR_MAX + 1)}
    ),
    parts=(RESOURCE_PROVIDER,),
)


MOVING_SINCE = 37

#: Stands for the uuid in links that are rendered once; no mount contains it.
_ANY_UUID = "\0"
_ANY_UUID_ENCODED = encode(_ANY_UUID)[1:-1]

_LIST_HEAD: Final = b'{"resource_providers":['


@Contract(
    summary="List providers",
    details="Returns the providers that match all filters. Rejects unknown parameters.",
    query=FILTERS,
    answers=shows(_RESOURCE_PROVIDERS),
)
def list_providers(call: Call) -> Pieces:
    """List the providers that match the filters."""
    wanted = decode_filters(parse_pairs(call.query_string), call.microversion)
    snapshot = call.services.index.snapshot()
    form = _form_of(snapshot.memory, call.mount, call.microversion)
    places = find_providers(snapshot, wanted)
    if call.services.rights is not None:
        call.services.rights.check_listed(snapshot, places)
    listing = ProviderList(snapshot, places, form, _LIST_HEAD)
    answers.stamp_or_now(call, listing.modified)
    return Pieces(listing.pieces(), listing.length)


@Contract(
    summary="Create a provider",
    details="Creates a root provider, or a child of a parent.",
    body=Body(
        CREATE,
        always({"name": "cn1", "uuid": examples.PROVIDER, "parent_provider_uuid": None}),
    ),
    answers=ByMicroversion(
        {
            0: (Answer(201, located=True, means="Created."),),
            CREATED_IS_SHOWN_SINCE: (
                Answer(
                    200,
                    RESOURCE_PROVIDER,
                    dated=Dated.WHERE_KNOWN,
                    located=True,
                    means="Created.",
                ),
            ),
        }
    ),
    conflict="Another provider has the name or the UUID.",
)
def create_provider(call: Call) -> dict[str, Any] | None:
    """Create a provider, as a root or below a parent."""
    wanted = body.read(call, CREATE.at(call.microversion))
    given_uuid, parent = wanted.get("uuid"), wanted.get("parent_provider_uuid")
    uuid = _canonical(given_uuid) if given_uuid else ProviderUUID(str(uuids.uuid4()))
    if not wanted["name"]:
        raise ProviderNameMissing(uuid)
    parent_uuid = None if parent is None else _canonical(parent)
    provider = store.create_provider(
        call.services.database, uuid=uuid, name=wanted["name"], parent_uuid=parent_uuid
    )
    call.headers["location"] = call.location(f"/resource_providers/{provider.uuid}")
    if call.microversion >= CREATED_IS_SHOWN_SINCE:
        return _shown(provider, call)
    return None


@Contract(summary="Show a provider", answers=shows(RESOURCE_PROVIDER, Dated.WHERE_KNOWN))
def show_provider(call: Call, uuid: str) -> bytes:
    """Show one provider."""
    snapshot = call.services.index.snapshot()
    provider = get_provider(snapshot, provider_uuid(uuid))
    form = _form_of(snapshot.memory, call.mount, call.microversion)
    answers.stamp(call, provider.modified)
    return provider_text(form, provider.block, provider.node, provider.row)


@Contract(
    summary="Rename a provider, or change its parent",
    details="From microversion 1.37, a provider that has a parent can get another parent or none.",
    body=Body(UPDATE, always({"name": "cn1.example.org"})),
    answers=shows(RESOURCE_PROVIDER, Dated.WHERE_KNOWN, means="The updated provider."),
    conflict="Another provider has the name.",
)
def update_provider(call: Call, uuid: str) -> dict[str, Any]:
    """Rename a provider, and move it if the body names a parent."""
    provider = provider_uuid(uuid)
    with body.report_missing_provider_first(call.services.database, provider):
        wanted = body.read(call, UPDATE.at(call.microversion))
    updated = store.update_provider(
        call.services.database,
        provider,
        name=wanted["name"],
        parent_uuid=_parent_in(wanted),
        may_reparent=call.microversion >= MOVING_SINCE,
    )
    return _shown(updated, call)


@Contract(
    summary="Delete a provider",
    answers=DONE,
    conflict="The provider has children or allocations.",
)
def delete_provider(call: Call, uuid: str) -> None:
    """Delete a provider that has neither children nor allocations."""
    provider = provider_uuid(uuid)
    audit.note_deleted_provider(call, provider)
    store.delete_provider(call.services.database, provider)


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


def _form_of(memory: Memory, mount: str, microversion: int) -> Template[Field]:
    """The form of a provider's JSON, as `render` shows it; kept."""
    key = "provider", mount, microversion
    form: Template[Field] | None = memory.get(key)
    if form is None:
        form = Template.of(_pieces(mount, microversion))
        memory.keep(key, form, form.size, is_lasting=True)
    return form


def _pieces(mount: str, microversion: int) -> Iterator[bytes | tuple[Field, bytes]]:
    yield b'{"uuid":'
    yield Field.UUID, b'"%b"'
    yield b',"name":'
    yield Field.NAME, b"%b"
    yield b',"generation":'
    yield Field.GENERATION, b"%d"
    first, *links = encode(_links(_ANY_UUID, mount, microversion)).split(_ANY_UUID_ENCODED)
    yield b',"links":' + first
    for text in links:
        yield Field.UUID, b"%b"
        yield text
    if microversion >= TREES_SINCE:
        yield b',"parent_provider_uuid":'
        yield Field.PARENT, b"%b"
        yield b',"root_provider_uuid":'
        yield Field.ROOT, b'"%b"'
    yield b"}"


def decode_filters(pairs: Pairs, microversion: int) -> ProviderFilters:
    """Decode query filters."""
    last = dict(pairs)
    FILTERS.schema.at(microversion).check(last)
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


def _shown(provider: Provider, call: Call) -> dict[str, Any]:
    answers.stamp(call, provider.last_modified)
    return render(provider, call.mount, call.microversion)


def _canonical(text: str) -> ProviderUUID:
    """A uuid that passed the schema."""
    return ProviderUUID(parse_uuid_lax(text) or text)


def _dashed(text: str | None) -> ProviderUUID | None:
    return ProviderUUID(parse_uuid_dashed(text) or text) if text is not None else None


def _parent_in(wanted: dict[str, Any]) -> Sometimes[ProviderUUID | None]:
    """The parent that a PUT requests: absent keeps the current one, null removes it."""
    parent = wanted.get("parent_provider_uuid", UNSET)
    return _canonical(parent) if isinstance(parent, str) else parent
