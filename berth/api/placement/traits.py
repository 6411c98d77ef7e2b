# SPDX-License-Identifier: Apache-2.0
"""Traits (1.6): the definitions, and those of a provider.

Source: spec/rest-api.md 7.
"""

from __future__ import annotations

from typing import Any

from berth.api import answers, body, examples
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
    shows,
)
from berth.api.errors import Refused
from berth.api.paths import provider_uuid
from berth.api.query_string import parse_pairs
from berth.api.request import Call
from berth.api.schema import Schema
from berth.api.shapes import (
    GENERATION,
    INTEGER,
    SHOWN_TRAITS,
    TRAIT_NAMES,
    closed_object,
    exact_object,
)
from berth.index.providers import get_provider
from berth.model.ids import Generation
from berth.model.names import NAME_LENGTH_MAX, is_custom_trait_name
from berth.store import traits as store

_REPLACE = {"traits": TRAIT_NAMES, "resource_provider_generation": INTEGER}
REPLACE = Schema(closed_object(_REPLACE, required=tuple(_REPLACE)))

FILTERS = Query(
    Parameter(
        name="name",
        means="`in:NAME,...` for the existing ones of these traits, or `startswith:PREFIX`.",
        example="startswith:HW_CPU_X86_AVX",
        pattern=always("^(in|startswith):"),
    ),
    Parameter(
        name="associated",
        means="`true` for traits that a provider has, `false` for traits that no provider has.",
        example="true",
        pattern=always("^(true|false)$"),
    ),
)

_TRAITS = component("Traits", (6, exact_object({"traits": SHOWN_TRAITS})), example=examples.TRAITS)
_PROVIDER_TRAITS = component(
    "ProviderTraits",
    (6, exact_object({"traits": SHOWN_TRAITS, "resource_provider_generation": GENERATION})),
    example={**examples.TRAITS, **examples.GENERATION},
)


@Contract(
    summary="List traits",
    details="Rejects unknown parameters.",
    query=FILTERS,
    answers=shows(_TRAITS),
)
def list_traits(call: Call) -> dict[str, Any]:
    """List the names of traits that match the filters."""
    query = dict(parse_pairs(call.query_string))
    FILTERS.schema.at(call.microversion).check(query)
    names, prefix = _decode_name(query.get("name"))
    traits = store.list_traits(
        call.services.database,
        names=names,
        prefix=prefix,
        associated=_decode_associated(query.get("associated")),
    )
    answers.stamp_or_now(call, traits.last_modified)
    return {"traits": traits.names}


@Contract(
    summary="Check that a trait exists",
    answers=(Answer(204, dated=Dated.WHERE_KNOWN, means="The trait exists."),),
)
def show_trait(call: Call, name: str) -> None:
    """Check for a trait."""
    trait = store.get_trait(call.services.database, name)
    answers.stamp(call, trait.created_at)


@Contract(
    summary="Create a trait, or confirm that it exists",
    details="The names of custom ones start with `CUSTOM_`.",
    answers=(
        Answer(201, located=True, dated=Dated.WHERE_KNOWN, means="Created."),
        Answer(204, located=True, dated=Dated.WHERE_KNOWN, means="It already exists."),
    ),
)
def ensure_trait(call: Call, name: str) -> None:
    """Create a trait if missing."""
    if not is_custom_trait_name(name):
        raise Refused(
            400,
            f"The trait is invalid. A valid trait must be no longer than {NAME_LENGTH_MAX} "
            'characters, start with the prefix "CUSTOM_" and use following characters: '
            '"A"-"Z", "0"-"9" and "_"',
            hint=f"Got: {name}",
        )
    trait, created = store.create_trait(call.services.database, name)
    call.headers["location"] = call.location(f"/traits/{name}")
    answers.stamp(call, trait.created_at)
    call.status = answers.STATUS_LINES[201 if created else 204]


@Contract(
    summary="Delete a trait",
    details="Standard ones cannot be deleted.",
    answers=DONE,
    conflict="A provider has the trait.",
)
def delete_trait(call: Call, name: str) -> None:
    """Delete a trait that no provider has."""
    store.delete_trait(call.services.database, name)


@Contract(summary="List a provider's traits", answers=shows(_PROVIDER_TRAITS))
def list_provider_traits(call: Call, uuid: str) -> bytes:
    """List a provider's traits."""
    provider = get_provider(call.services.index.snapshot(), provider_uuid(uuid))
    traits = provider.traits()
    answers.stamp_or_now(call, traits.modified)
    return b'{"traits":%b,"resource_provider_generation":%d}' % (traits.names, provider.generation)


@Contract(
    summary="Replace a provider's traits",
    details="The traits must exist.",
    body=Body(always(REPLACE), always({**examples.TRAITS, **examples.GENERATION})),
    answers=shows(_PROVIDER_TRAITS, means="The new traits."),
    conflict="The generation is outdated.",
)
def replace_provider_traits(call: Call, uuid: str) -> dict[str, Any]:
    """Replace the traits of a provider."""
    provider = provider_uuid(uuid)
    # COMPAT spec/rest-api.md 1.14: only here, the body is checked before the path.
    wanted = body.read(call, REPLACE)
    with body.report_missing_provider_first(call.services.database, provider) as seen_generation:
        seen: Generation = seen_generation.note(wanted["resource_provider_generation"])
    names = list(dict.fromkeys(wanted["traits"]))
    traits = store.replace_provider_traits(call.services.database, provider, names, seen)
    answers.stamp_or_now(call, traits.last_modified)
    return {"traits": traits.names, "resource_provider_generation": traits.generation}


@Contract(
    summary="Delete all of a provider's traits",
    answers=DONE,
    conflict="Another request changed the provider.",
)
def delete_provider_traits(call: Call, uuid: str) -> None:
    """Remove all traits of a provider."""
    store.delete_provider_traits(call.services.database, provider_uuid(uuid))


def _decode_name(value: str | None) -> tuple[list[str] | None, str | None]:
    """The requested names, and the prefix; an unknown operator does not filter."""
    if value is None:
        return None, None
    operator, colon, operand = value.partition(":")
    if not colon:
        raise Refused(
            400,
            "Badly formatted name parameter. Expected name query string parameter in form: "
            f'?name=[in|startswith]:[name1,name2|prefix]. Got: "{value}"',
        )
    if operator == "in":
        return operand.split(","), None
    return None, operand if operator == "startswith" else None


def _decode_associated(value: str | None) -> bool | None:
    if value is None:
        return None
    if value.lower() not in ("true", "false"):
        raise Refused(
            400,
            'The query parameter "associated" only accepts "true" or "false"',
            hint=f"Got: {value}",
        )
    return value.lower() == "true"
