# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI 3.1 document of one microversion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

import berth
from berth.api.answers import DATED_SINCE
from berth.api.contract import Answer, Component, Dated, ref
from berth.api.errors import PHRASES
from berth.api.media_types import HTML, JSON, TEXT
from berth.api.microversion import SERVICE_TYPE, VERSION_MAX, VERSION_MIN, ByMicroversion
from berth.api.namespaces import PLACEMENT
from berth.api.openapi.components import (
    REFUSALS,
    REQUEST_ID_PATTERN,
    described,
    ecma,
    error_components,
)
from berth.api.openapi.parameters import (
    PRECONDITION_PARAMETERS,
    TAG_PARAMETER,
    VERSION_HEADER,
    path_parameters,
    query_parameters,
    version_parameter,
)
from berth.api.operation import Namespace, Operation

OPENAPI_VERSION: Final = "3.1.0"

#: The path of the document itself.
DOCUMENT: Final = "/openapi.json"

#: How callers authenticate, for each value of `[api]auth_strategy`.
_X_AUTH_TOKEN = {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}
_SECURITY: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "keystone": {"token": {**_X_AUTH_TOKEN, "description": "A Keystone token."}},
    "noauth2": {
        "token": {
            **_X_AUTH_TOKEN,
            "description": "The user that the client claims to be, as `user` or `user:project`.",
        }
    },
    "http_basic": {"password": {"type": "http", "scheme": "basic"}},
    "token": {"bearer": {"type": "http", "scheme": "bearer"}, "token": _X_AUTH_TOKEN},
}
#: Strategies that make clients wait after many failures.
_SLOWING: Final = {"http_basic", "token"}

#: Refusals that always have the requested microversion.
_VERSIONED = {403, 404, 409, 415}

_SCHEMAS = "#/components/schemas/"


def describe(
    microversion: int,
    *,
    auth_strategy: str,
    mount: str = "",
    namespace: Namespace = PLACEMENT,
) -> dict[str, Any]:
    """The document, as JSON values.

    Args:
        auth_strategy: a value of `[api]auth_strategy`.
        mount: the prefix under which the application is mounted.
    """
    schemas = {
        component.name: described(component.schema.at(microversion))
        for component in _components_of(namespace)
        if component.schema.first <= microversion
    }
    paths: dict[str, dict[str, Any]] = {}
    for operation in namespace.operations:
        if operation.since <= microversion <= operation.until:
            shown = _operation(namespace, operation, microversion, auth_strategy, schemas)
            paths.setdefault(namespace.path_of(operation), {})[operation.method.lower()] = shown
    parameters = {} if namespace.version else {"Microversion": version_parameter(microversion)}
    return {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": namespace.title,
            "version": namespace.version or f"1.{microversion}",
            "summary": namespace.summary,
            "description": _about(namespace, microversion),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "x-served-by": f"berth {berth.__version__}",
        },
        "servers": [{"url": mount or "/"}],
        "tags": [{"name": name, "description": means} for name, means in namespace.tags.items()],
        "paths": paths,
        "components": {
            "schemas": _used(schemas, paths),
            "headers": _headers(namespace, microversion),
            "parameters": parameters,
            "responses": {
                PHRASES[status].replace(" ", ""): _refusal(status, namespace)
                for status in REFUSALS
                if (status != 410 or any(each.contract.gone for each in namespace.operations))
                and (
                    status != 412
                    or any(each.contract.precondition for each in namespace.operations)
                )
            },
            "securitySchemes": _SECURITY[auth_strategy],
        },
    }


#: A stream of server-sent events, which no schema describes.
_EVENTS: Final[dict[str, Any]] = {
    "schema": {"type": "string"},
    "example": 'event: names\ndata: {"change": "names", "commits": 1}\n\n',
}


def _components_of(namespace: Namespace) -> Iterator[Component]:
    """The components of all responses, with those they refer to; some repeatedly."""
    yield from error_components(namespace.codes)
    for operation in namespace.operations:
        answers = operation.contract.answers
        versions = answers.values() if isinstance(answers, ByMicroversion) else [answers]
        for answer in chain.from_iterable(versions):
            if answer.component is not None:
                yield from answer.component.parts
                yield answer.component


_OF_ROUTES: Final = (
    "For a method that a path does not have, berth answers 405 with `Allow`; for other paths, 404. "
    "`x-policy-rule` is the policy rule that decides who may call an operation."
)


def _about(namespace: Namespace, microversion: int) -> str:
    if namespace.version:
        return f"This document describes all paths below `{namespace.prefix}`. {_OF_ROUTES}"
    return (
        f"This document describes microversion 1.{microversion}. "
        f"Select it in every request with the header `{VERSION_HEADER}: {SERVICE_TYPE} "
        f"1.{microversion}`; without the header, a request has microversion {VERSION_MIN}.\n\n"
        f"For the document of another microversion, from {VERSION_MIN} to {VERSION_MAX}, send the "
        f"header with the request for `/openapi.json`; without it, you get the newest.\n\n"
        f"{_OF_ROUTES}"
    )


def _operation(
    namespace: Namespace,
    operation: Operation,
    microversion: int,
    auth_strategy: str,
    schemas: dict[str, Any],
) -> dict[str, Any]:
    contract = operation.contract
    parameters = [*path_parameters(operation)]
    if contract.query is not None:
        parameters += query_parameters(contract.query, microversion)
    if any(answer.tagged for answer in contract.answers_at(microversion)):
        parameters.append(TAG_PARAMETER)
    parameters += [
        each for each in PRECONDITION_PARAMETERS if each["name"] in contract.precondition
    ]
    if operation.path != DOCUMENT and not namespace.version:
        parameters.append({"$ref": "#/components/parameters/Microversion"})
    shown: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": contract.summary,
        "parameters": parameters,
        "responses": _responses(namespace, operation, microversion, auth_strategy, schemas),
        "x-since": namespace.version or f"1.{operation.since}",
    }
    if namespace.version:
        shown["x-stability"] = "experimental" if operation.is_experimental else "stable"
    if contract.details:
        shown["description"] = contract.details
    if contract.body is not None:
        name = f"{operation.name.title().replace('_', '')}Body"
        schemas[name] = described(contract.body.schema.at(microversion).definition)
        content = _content(name, contract.body.example.at(microversion), schemas)
        shown["requestBody"] = {"required": True, "content": content}
    if operation.rule is None:
        shown["security"] = []
    else:
        shown["security"] = [{scheme: []} for scheme in _SECURITY[auth_strategy]]
        shown["x-policy-rule"] = operation.rule.name
    return shown


def _content(
    name: str, example: object, schemas: Mapping[str, Any], media_type: str = JSON
) -> dict[str, Any]:
    return {media_type: {"schema": ref(name), "example": fitted(example, schemas[name], schemas)}}


def fitted(value: Any, schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """A value without the members that a schema does not have.

    Examples are written for the newest form; older ones have fewer.
    """
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    if isinstance(value, dict):
        members = schema.get("properties", {})
        others = schema.get("additionalProperties", {})
        return {
            name: fitted(member, members.get(name, others), schemas)
            for name, member in value.items()
            if name in members or others is not False
        }
    if isinstance(value, list):
        return [fitted(item, schema.get("items", {}), schemas) for item in value]
    return value


def _responses(
    namespace: Namespace,
    operation: Operation,
    microversion: int,
    auth_strategy: str,
    schemas: Mapping[str, Any],
) -> dict[str, Any]:
    responses = {
        str(answer.status): _success(namespace, answer, microversion, schemas)
        for answer in operation.contract.answers_at(microversion)
    }
    for status in _refusals_of(operation, auth_strategy):
        reference = {"$ref": f"#/components/responses/{PHRASES[status].replace(' ', '')}"}
        if status == 409:
            reference["description"] = operation.contract.conflict
        if status == 410:
            reference["description"] = operation.contract.gone
        if status == 412:
            reference["description"] = operation.contract.precondition
        responses[str(status)] = reference
    return responses


def _refusals_of(operation: Operation, auth_strategy: str) -> Iterable[int]:
    """The statuses of possible refusals, in order."""
    is_public = operation.rule is None
    given = {
        401: not is_public,
        403: not is_public,
        404: "{" in operation.path,
        409: operation.contract.conflict != "",
        410: operation.contract.gone != "",
        412: operation.contract.precondition != "",
        415: operation.contract.body is not None,
        429: not is_public and auth_strategy in _SLOWING,
        503: not is_public,
    }
    return [status for status in REFUSALS if given.get(status, True)]


def _success(
    namespace: Namespace, answer: Answer, microversion: int, schemas: Mapping[str, Any]
) -> dict[str, Any]:
    names = ["ApiVersion", "Vary", "RequestId", *map(_component_of, namespace.headers)]
    if answer.located:
        names.append("Location")
    if answer.tagged:
        names.append("ETag")
    if answer.dated is not Dated.NO and microversion >= DATED_SINCE:
        always = answer.dated is Dated.ALWAYS
        names += ["CacheControl", "LastModified" if always else "LastModifiedWhereKnown"]
    response: dict[str, Any] = {
        "description": answer.means,
        "headers": _named(names, namespace),
    }
    if answer.component is not None and answer.component.example is not None:
        example = answer.component.example.at(microversion)
        name = answer.component.name
        response["content"] = _content(name, example, schemas, answer.media_type)
    elif answer.component is not None:
        response["content"] = {answer.media_type: {"schema": ref(answer.component.name)}}
    if answer.other_media_type:
        response["content"][answer.other_media_type] = _EVENTS
    return response


def _refusal(status: int, namespace: Namespace) -> dict[str, Any]:
    means, component = REFUSALS[status]
    names = ["RequestId"]
    if status in _VERSIONED:
        names = ["ApiVersion", "Vary", "RequestId", *map(_component_of, namespace.headers)]
    if status in (429, 503):
        names.append("RetryAfter")
    if status == 401:
        names.append("Challenge")
    text = {"schema": {"type": "string"}}
    return {
        "description": means,
        "headers": _named(names, namespace),
        "content": {JSON: {"schema": ref(component)}, HTML: text, TEXT: text},
    }


#: For each header: its spelling, its meaning, and whether it is always present.
_HEADERS: Mapping[str, tuple[str, str, bool]] = {
    "ApiVersion": (VERSION_HEADER, "The microversion of the response.", True),
    "Vary": ("Vary", "The request headers that the response depends on.", True),
    "RequestId": (
        "X-Openstack-Request-Id",
        "The ID of the request, which is also in the log.",
        True,
    ),
    "Location": ("Location", "The URL of the object.", True),
    "CacheControl": (
        "Cache-Control",
        "Caches must revalidate the response.",
        True,
    ),
    "LastModified": ("Last-Modified", "When the object last changed.", True),
    "LastModifiedWhereKnown": ("Last-Modified", "When the object last changed, if known.", False),
    "RetryAfter": ("Retry-After", "Seconds to wait before the next attempt.", False),
    "Challenge": ("WWW-Authenticate", "How to authenticate.", False),
    "ETag": ("ETag", "The revision of the response, in quotes.", True),
}
#: Those that only namespaces with a version have.
_HEADERS_OF_VERSIONED: Final = {"ETag"}


def _component_of(header: str) -> str:
    """The component name of a namespace's header."""
    return header.replace("-", "")


def _named(names: Iterable[str], namespace: Namespace) -> dict[str, Any]:
    spelt = {name: header for name, (header, _, _) in _HEADERS.items()}
    spelt |= {_component_of(header): header for header in namespace.headers}
    return {spelt[name]: {"$ref": f"#/components/headers/{name}"} for name in names}


def _headers(namespace: Namespace, microversion: int) -> dict[str, Any]:
    date = r"^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$"
    version: dict[str, Any] = {"enum": [f"{SERVICE_TYPE} 1.{microversion}"]}
    if namespace.version:
        version = {"pattern": rf"^{SERVICE_TYPE} 1\.[0-9]+$"}
    schemas: dict[str, dict[str, Any]] = {
        "ApiVersion": version,
        "Vary": {"pattern": VERSION_HEADER.lower()},
        "RequestId": {"pattern": ecma(REQUEST_ID_PATTERN)},
        "Location": {"pattern": "^https?://", "format": "uri"},
        "CacheControl": {"enum": ["no-cache"]},
        "LastModified": {"pattern": date},
        "LastModifiedWhereKnown": {"pattern": date},
        "RetryAfter": {"pattern": "^[0-9]+$"},
        "Challenge": {},
        "ETag": {"pattern": '^"[^"]+"$'},
    }
    headers = {
        name: _header(means, always, schemas[name])
        for name, (_, means, always) in _HEADERS.items()
        if namespace.version or name not in _HEADERS_OF_VERSIONED
    }
    return headers | {
        _component_of(name): _header(f"The version of {namespace.prefix}.", True, {"enum": [value]})
        for name, value in namespace.headers.items()
    }


def _header(means: str, always: bool, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": means, "required": always, "schema": {"type": "string", **schema}}


def _used(components: Mapping[str, Any], paths: object) -> dict[str, Any]:
    """The schemas that this document's paths use, directly or through others."""
    used: dict[str, Any] = {}
    ahead = [_REFUSED_BY, paths]
    while ahead:
        for name in _references(ahead.pop()):
            if name not in used:
                used[name] = components[name]
                ahead.append(components[name])
    return {name: used[name] for name in sorted(used)}


_REFUSED_BY = [ref(component) for _, component in REFUSALS.values()]


def _references(value: object) -> Iterator[str]:
    """The names of the schemas that a part of the document refers to."""
    if isinstance(value, Mapping):
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith(_SCHEMAS):
            yield reference.removeprefix(_SCHEMAS)
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
