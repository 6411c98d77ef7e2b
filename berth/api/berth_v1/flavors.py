# SPDX-License-Identifier: Apache-2.0
"""Flavors: requests with a name. Source: spec/beyond.md 4.5."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from berth.api.answers import SENT, Sent, encode, insists_on_new
from berth.api.berth_v1.codes import TOO_LARGE
from berth.api.berth_v1.fleet_questions import check_names
from berth.api.berth_v1.grammar import FLAVOR_REQUEST
from berth.api.berth_v1.inputs import BodySchema
from berth.api.berth_v1.questions import JSONObject, read_question
from berth.api.berth_v1.refusals import check_name, named_record, no_record, refused
from berth.api.berth_v1.revisions import after_write, answer_put, at_revision, is_unchanged, lists
from berth.api.contract import DONE, Body, Contract, Dated, always, puts, shows
from berth.api.request import Call
from berth.api.schema import JSONSchema
from berth.api.shapes import FREE_TEXT_PATTERN, NAME
from berth.api.struct_schema import Input, shown, shown_at_revision
from berth.model.bounds import FLAVOR_BYTES_MAX
from berth.model.named import Flavor, FlavorName
from berth.model.shown import Shown
from berth.store import named as store

_DESCRIPTION_LENGTH_MAX: Final = 255

_EXPOSE: JSONSchema = {
    "type": "boolean",
    "default": True,
    "description": "Whether metrics may show how many more fit.",
}
_DESCRIPTION: JSONSchema = {
    "type": "string",
    "maxLength": _DESCRIPTION_LENGTH_MAX,
    "default": "",
    "description": "A description; shown in lists.",
}


class _Body(Input):
    """A flavor to store."""

    request: Annotated[JSONObject, FLAVOR_REQUEST]
    expose: Annotated[bool, _EXPOSE] = True
    description: Annotated[str, _DESCRIPTION, Meta(pattern=FREE_TEXT_PATTERN)] = ""


_BODY: Final = BodySchema(_Body)

_SENT: Final = {
    "request": {
        "groups": {"": {"resources": {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 80}}},
        "host": {"required": ["HW_CPU_X86_AVX2"]},
    },
    "expose": True,
    "description": "General purpose",
}
_EXAMPLE: Final = {"name": "m1.large", **_SENT}


class ListedFlavor(Shown):
    """A flavor as it is shown."""

    component = "ListedFlavor"

    name: Annotated[str, NAME]
    request: Annotated[
        Mapping[str, Any],
        {"type": "object"},
        "The request as it was sent; empty if the database is damaged.",
    ]
    expose: Annotated[bool, _EXPOSE]
    description: Annotated[str, _DESCRIPTION]


class Flavors(Shown):
    """All flavors."""

    flavors: Annotated[list[ListedFlavor], "By name."]


_LISTED: Final = shown(ListedFlavor, example=_EXAMPLE)
_FLAVOR: Final = shown_at_revision("Flavor", ListedFlavor, example=_EXAMPLE)
_FLAVORS: Final = shown_at_revision(
    "Flavors", Flavors, example={"flavors": [_EXAMPLE]}, parts=(_LISTED,)
)


@Contract(
    summary="List flavors",
    answers=lists(_FLAVORS, means="All flavors."),
)
def list_flavors(call: Call) -> Sent | bytes:
    """List all flavors."""
    snapshot = call.services.index.snapshot()
    if is_unchanged(call, snapshot):
        return SENT
    flavors = snapshot.names.records.flavors
    shown = [_shown(name, flavors[name]) for name in sorted(flavors)]
    return at_revision(snapshot, Flavors(shown))


@Contract(summary="Show a flavor", answers=shows(_FLAVOR, Dated.NO))
def show_flavor(call: Call, name: str) -> bytes:
    """Show one flavor."""
    snapshot = call.services.index.snapshot()
    flavor = named_record("flavor", FlavorName(name), snapshot.names.records.flavors)
    return at_revision(snapshot, _shown(name, flavor))


@Contract(
    summary="Create or replace a flavor",
    details="The resource classes and traits must exist. Providers and aggregates need not:"
    " each question looks them up.",
    body=Body(always(_BODY), always(_SENT)),
    answers=puts(_FLAVOR, means="Replaced; or it was the same already."),
    precondition="`If-None-Match: *` is sent and the flavor exists.",
)
def put_flavor(call: Call, name: str) -> bytes:
    """Create or replace a flavor."""
    check_name("flavor", name)
    body = _BODY.read(call)
    asked = read_question(body.request, "/request")
    before = call.services.index.snapshot()
    check_names((asked,), before)
    flavor = Flavor(_text(body.request), body.expose, body.description)
    is_new = store.put_flavor(
        call.services.database, FlavorName(name), flavor, is_new=insists_on_new(call)
    )
    answer_put(call, call.path, is_new=is_new)
    after = after_write(call.services, before)
    return at_revision(after, _shown(name, flavor))


@Contract(summary="Delete a flavor", answers=DONE)
def delete_flavor(call: Call, name: str) -> None:
    """Delete a flavor."""
    if not store.delete_flavor(call.services.database, FlavorName(name)):
        raise no_record("flavor", name, call.services.index.snapshot().names.records.flavors)


def _text(request: JSONObject) -> str:
    """A request as it is stored.

    Raises:
        Refused: 400 if it is too long.
    """
    text = encode(request)
    if len(text) > FLAVOR_BYTES_MAX:
        raise refused(
            "/request",
            f"may have at most {FLAVOR_BYTES_MAX:,} bytes (max_flavor_bytes), and has"
            f" {len(text):,}",
            code=TOO_LARGE,
        )
    return text.decode()


def _shown(name: str, flavor: Flavor) -> ListedFlavor:
    return ListedFlavor(name, _request(flavor), flavor.expose, flavor.description)


def _request(flavor: Flavor) -> JSONObject:
    """The stored request; nothing if it is damaged, which `berth db check` reports."""
    try:
        request = json.loads(flavor.request)
    except ValueError:
        return {}
    return request if isinstance(request, dict) else {}
