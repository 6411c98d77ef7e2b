# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI 3.1 document of one microversion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import berth
from berth.api.caching import SINCE as DATED_SINCE
from berth.api.errors import PHRASES
from berth.api.media_types import HTML, JSON, TEXT
from berth.api.microversion import SERVICE_TYPE, VERSION_MAX, VERSION_MIN
from berth.api.openapi import examples
from berth.api.openapi.dialect import described, ecma
from berth.api.openapi.handler import show_description
from berth.api.openapi.operations import DESCRIBED, TAGS, Dated, Described, Success
from berth.api.openapi.parameters import (
    VERSION_HEADER,
    path_parameters,
    query_parameters,
    version_parameter,
)
from berth.api.paths import PUBLIC
from berth.api.routes import ROUTES, Operation
from berth.api.schemas.answers import COMPONENTS, REQUEST_ID_PATTERN, ref

OPENAPI_VERSION: Final = "3.1.0"

#: The way in which each value of `[api]auth_strategy` wants a caller to say who it is.
_X_AUTH_TOKEN = {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}
_SECURITY: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "keystone": {"token": {**_X_AUTH_TOKEN, "description": "A token of Keystone's."}},
    "noauth2": {
        "token": {
            **_X_AUTH_TOKEN,
            "description": "Whoever the caller wants to be, as `user` or `user:project`.",
        }
    },
    "http_basic": {"password": {"type": "http", "scheme": "basic"}},
    "token": {"bearer": {"type": "http", "scheme": "bearer"}, "token": _X_AUTH_TOKEN},
}
#: Those in which somebody who has failed too often has to wait.
_SLOWING: Final = {"http_basic", "token"}

#: What a refusal means, and the component that is its body.
_REFUSALS: Mapping[int, tuple[str, str]] = {
    400: ("The request is malformed, or names what does not exist.", "EarlyErrors"),
    401: ("The request does not say, or not rightly, who calls.", "Unauthorized"),
    403: ("Who calls may not.", "Errors"),
    404: ("What the path names does not exist.", "Errors"),
    406: ("The microversion is not served, or `Accept` does not admit JSON.", "EarlyErrors"),
    408: ("The body did not come in time.", "EarlyErrors"),
    409: ("The request is right, and the world is not.", "Errors"),
    413: ("The body is too large.", "EarlyErrors"),
    414: ("The path and query are too long.", "EarlyErrors"),
    415: ("The body is not `application/json`.", "Errors"),
    429: ("Too many attempts to say who calls have failed.", "EarlyErrors"),
    500: ("The service has failed.", "EarlyErrors"),
    503: (
        "The service cannot answer at the moment; `Retry-After` says when to try again.",
        "Unavailable",
    ),
}

#: Refusals that are always of the microversion asked for.
_VERSIONED = {403, 404, 409, 415}

_SCHEMAS = "#/components/schemas/"


def describe(microversion: int, *, auth_strategy: str, mount: str = "") -> dict[str, Any]:
    """The document, as JSON values.

    Args:
        auth_strategy: a value of `[api]auth_strategy`.
        mount: the prefix under which the application is mounted.
    """
    components = {
        name: described(schema.at(microversion))
        for name, schema in COMPONENTS.items()
        if schema.first <= microversion
    }
    paths: dict[str, dict[str, Any]] = {}
    for path, method, operation in _operations_at(microversion):
        shown = _operation(path, operation, microversion, auth_strategy, components)
        paths.setdefault(path, {})[method.lower()] = shown
    return {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "Placement",
            "version": f"1.{microversion}",
            "summary": "What a fleet offers, who holds what, and where more would fit.",
            "description": _about(microversion),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "x-served-by": f"berth {berth.__version__}",
        },
        "servers": [{"url": mount or "/"}],
        "tags": [{"name": name, "description": means} for name, means in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": _used(components, paths),
            "headers": _headers(microversion),
            "parameters": {"Microversion": version_parameter(microversion)},
            "responses": {
                PHRASES[status].replace(" ", ""): _refusal(status, microversion)
                for status in _REFUSALS
            },
            "securitySchemes": _SECURITY[auth_strategy],
        },
    }


def _operations_at(microversion: int) -> Iterator[tuple[str, str, Operation]]:
    """Path, method and operation of all that a microversion has."""
    for route in ROUTES:
        for method, operations in route.methods.items():
            for operation in operations:
                if operation.since <= microversion <= operation.until:
                    yield route.path, method, operation


def _about(microversion: int) -> str:
    return (
        f"This document describes microversion 1.{microversion}. "
        f"Every request names it in the header `{VERSION_HEADER}: {SERVICE_TYPE} "
        f"1.{microversion}`; one without the header is of {VERSION_MIN}.\n\n"
        f"To be shown another one, from {VERSION_MIN} to {VERSION_MAX}, send that header to "
        f"`/openapi.json` too; without it the newest is shown.\n\n"
        "Methods that a path does not have are answered 405 with `Allow`, and paths that are not "
        "listed 404. `x-policy-rule` is the rule of the policy that says who may call an operation."
    )


def _operation(
    path: str,
    operation: Operation,
    microversion: int,
    auth_strategy: str,
    components: dict[str, Any],
) -> dict[str, Any]:
    told = DESCRIBED[operation.handler]
    name = operation.handler.__name__
    found = [*path_parameters(path)]
    if told.query is not None:
        found += query_parameters(told.query, microversion)
    if operation.handler is not show_description:
        found.append({"$ref": "#/components/parameters/Microversion"})
    shown: dict[str, Any] = {
        "operationId": name,
        "tags": [told.tag],
        "summary": told.summary,
        "parameters": found,
        "responses": _responses(path, operation, told, microversion, auth_strategy, components),
        "x-since": f"1.{operation.since}",
    }
    if told.details:
        shown["description"] = told.details
    if told.body is not None:
        component = f"{name.title().replace('_', '')}Body"
        components[component] = described(told.body.at(microversion).definition)
        example = examples.BODIES[name].at(microversion)
        content = _content(component, example, components)
        shown["requestBody"] = {"required": True, "content": content}
    if operation.rule is None:
        shown["security"] = []
    else:
        shown["security"] = [{scheme: []} for scheme in _SECURITY[auth_strategy]]
        shown["x-policy-rule"] = operation.rule
    return shown


def _content(component: str, example: object, components: Mapping[str, Any]) -> dict[str, Any]:
    fitting = examples.fitted(example, components[component], components)
    return {JSON: {"schema": ref(component), "example": fitting}}


def _responses(
    path: str,
    operation: Operation,
    told: Described,
    microversion: int,
    auth_strategy: str,
    components: Mapping[str, Any],
) -> dict[str, Any]:
    responses = {
        str(success.status): _success(success, microversion, components)
        for success in told.successes.at(microversion)
    }
    for status in _refusals_of(path, operation, told, auth_strategy):
        reference = {"$ref": f"#/components/responses/{PHRASES[status].replace(' ', '')}"}
        if status == 409:
            reference["description"] = told.conflict
        responses[str(status)] = reference
    return responses


def _refusals_of(
    path: str, operation: Operation, told: Described, auth_strategy: str
) -> Iterable[int]:
    """The statuses of what may go wrong, in their order."""
    is_public = path in PUBLIC
    given = {
        401: not is_public,
        403: operation.rule is not None,
        404: "{" in path,
        409: told.conflict != "",
        415: operation.takes_json,
        429: not is_public and auth_strategy in _SLOWING,
        503: not is_public,
    }
    return [status for status in _REFUSALS if given.get(status, True)]


def _success(success: Success, microversion: int, components: Mapping[str, Any]) -> dict[str, Any]:
    names = ["ApiVersion", "Vary", "RequestId"]
    if success.located:
        names.append("Location")
    if success.dated is not Dated.NO and microversion >= DATED_SINCE:
        always = success.dated is Dated.ALWAYS
        names += ["CacheControl", "LastModified" if always else "LastModifiedWhereKnown"]
    response: dict[str, Any] = {"description": success.means, "headers": _named(names)}
    if success.component is not None and success.component in examples.ANSWERS:
        example = examples.ANSWERS[success.component].at(microversion)
        response["content"] = _content(success.component, example, components)
    elif success.component is not None:
        response["content"] = {JSON: {"schema": ref(success.component)}}
    return response


def _refusal(status: int, microversion: int) -> dict[str, Any]:
    means, component = _REFUSALS[status]
    names = ["ApiVersion", "Vary", "RequestId"] if status in _VERSIONED else ["RequestId"]
    if status in (429, 503):
        names.append("RetryAfter")
    if status == 401:
        names.append("Challenge")
    text = {"schema": {"type": "string"}}
    return {
        "description": means,
        "headers": _named(names),
        "content": {JSON: {"schema": ref(component)}, HTML: text, TEXT: text},
    }


#: Of each header how it is spelt, what it means, and whether it is always there.
_HEADERS: Mapping[str, tuple[str, str, bool]] = {
    "ApiVersion": (VERSION_HEADER, "The microversion of the answer.", True),
    "Vary": ("Vary", "What else the answer depends on.", True),
    "RequestId": ("X-Openstack-Request-Id", "Names the request; so does the log.", True),
    "Location": ("Location", "Where the thing is.", True),
    "CacheControl": ("Cache-Control", "The answer is to be asked for anew.", True),
    "LastModified": ("Last-Modified", "When what is shown was changed.", True),
    "LastModifiedWhereKnown": ("Last-Modified", "The same, where it is known.", False),
    "RetryAfter": ("Retry-After", "Seconds after which to try again.", False),
    "Challenge": ("WWW-Authenticate", "How to say who calls.", False),
}


def _named(components: Iterable[str]) -> dict[str, Any]:
    return {_HEADERS[name][0]: {"$ref": f"#/components/headers/{name}"} for name in components}


def _headers(microversion: int) -> dict[str, Any]:
    date = r"^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$"
    schemas: dict[str, dict[str, Any]] = {
        "ApiVersion": {"enum": [f"{SERVICE_TYPE} 1.{microversion}"]},
        "Vary": {"pattern": VERSION_HEADER.lower()},
        "RequestId": {"pattern": ecma(REQUEST_ID_PATTERN)},
        "Location": {"pattern": "^https?://", "format": "uri"},
        "CacheControl": {"enum": ["no-cache"]},
        "LastModified": {"pattern": date},
        "LastModifiedWhereKnown": {"pattern": date},
        "RetryAfter": {"pattern": "^[0-9]+$"},
        "Challenge": {},
    }
    return {
        name: {
            "description": means,
            "required": always,
            "schema": {"type": "string", **schemas[name]},
        }
        for name, (_, means, always) in _HEADERS.items()
    }


def _used(components: Mapping[str, Any], paths: object) -> dict[str, Any]:
    """The schemas that operations of this microversion come to, directly or by others."""
    found: dict[str, Any] = {}
    ahead = [_REFUSED_BY, paths]
    while ahead:
        for name in _references(ahead.pop()):
            if name not in found:
                found[name] = components[name]
                ahead.append(components[name])
    return {name: found[name] for name in sorted(found)}


_REFUSED_BY = [ref(component) for _, component in _REFUSALS.values()]


def _references(value: object) -> Iterator[str]:
    """The names of the schemas that a part of the document refers to."""
    if isinstance(value, Mapping):
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith(_SCHEMAS):
            yield reference.removeprefix(_SCHEMAS)
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _references(one)
