# SPDX-License-Identifier: Apache-2.0
"""Traits (1.6): the definitions, and those of a provider.

Source: spec/rest-api.md 7.
"""

from __future__ import annotations

from berth.api import body, caching
from berth.api.errors import Refused
from berth.api.operations import traits as schemas
from berth.api.paths import provider_uuid
from berth.api.query_string import parse_pairs
from berth.api.rendering import answer, answer_bytes, answer_empty
from berth.api.request import Request, Response, Services
from berth.index.providers import get_provider
from berth.model.ids import Generation
from berth.model.names import NAME_LENGTH_MAX, is_custom_trait_name
from berth.store import traits as store


def list_traits(services: Services, request: Request, response: Response) -> None:
    """List the names of traits that match the filters."""
    query = dict(parse_pairs(request.query_string))
    schemas.FILTERS.schema.at(request.microversion).check(query)
    names, prefix = _decode_name(query.get("name"))
    traits = store.list_traits(
        services.database,
        names=names,
        prefix=prefix,
        associated=_decode_associated(query.get("associated")),
    )
    caching.stamp_or_now(services, request, response, traits.last_modified)
    answer(response, {"traits": traits.names})


def show_trait(services: Services, request: Request, response: Response, name: str) -> None:
    """Check for a trait."""
    trait = store.get_trait(services.database, name)
    caching.stamp(request, response, trait.created_at)
    answer_empty(response)


def ensure_trait(services: Services, request: Request, response: Response, name: str) -> None:
    """Create a trait if missing."""
    if not is_custom_trait_name(name):
        raise Refused(
            400,
            f"The trait is invalid. A valid trait must be no longer than {NAME_LENGTH_MAX} "
            'characters, start with the prefix "CUSTOM_" and use following characters: '
            '"A"-"Z", "0"-"9" and "_"',
            hint=f"Got: {name}",
        )
    trait, created = store.create_trait(services.database, name)
    response.set_header("location", request.location(f"/traits/{name}"))
    caching.stamp(request, response, trait.created_at)
    answer_empty(response, status=201 if created else 204)


def delete_trait(services: Services, request: Request, response: Response, name: str) -> None:
    """Delete a trait that no provider has."""
    store.delete_trait(services.database, name)
    answer_empty(response)


def list_provider_traits(
    services: Services, request: Request, response: Response, uuid: str
) -> None:
    """List a provider's traits."""
    provider = get_provider(services.index.snapshot(), provider_uuid(uuid))
    traits = provider.traits()
    caching.stamp_or_now(services, request, response, traits.modified)
    text = b'{"traits":%b,"resource_provider_generation":%d}' % (traits.names, provider.generation)
    answer_bytes(response, text)


def replace_provider_traits(
    services: Services, request: Request, response: Response, uuid: str
) -> None:
    """Replace the traits of a provider."""
    provider = provider_uuid(uuid)
    # COMPAT spec/rest-api.md 1.14: only here, the body is checked before the path.
    wanted = body.read(request, schemas.REPLACE)
    with body.report_missing_provider_first(services.database, provider) as seen_generation:
        seen: Generation = seen_generation.note(wanted["resource_provider_generation"])
    names = list(dict.fromkeys(wanted["traits"]))
    traits = store.replace_provider_traits(services.database, provider, names, seen)
    caching.stamp_or_now(services, request, response, traits.last_modified)
    answer(
        response,
        {"traits": traits.names, "resource_provider_generation": traits.generation},
    )


def delete_provider_traits(
    services: Services, request: Request, response: Response, uuid: str
) -> None:
    """Remove all traits of a provider."""
    store.delete_provider_traits(services.database, provider_uuid(uuid))
    answer_empty(response)


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
