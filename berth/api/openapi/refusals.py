# SPDX-License-Identifier: Apache-2.0
"""The refusals: what each status means, and the schemas of error bodies.

Source: spec/rest-api.md 1.11 and 1.12.
"""

from __future__ import annotations

from collections.abc import Mapping

from berth.api import errors
from berth.api.errors import ErrorCodes
from berth.api.operation import Component, component, ref
from berth.api.operations.examples import REQUEST_ID
from berth.api.operations.fragments import TEXT, closed_object, exact_object, list_of
from berth.api.schema import JSONSchema

REQUEST_ID_PATTERN = r"^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z"

#: What each status means, and the component of its body.
REFUSALS: Mapping[int, tuple[str, str]] = {
    400: ("The request is malformed, or refers to something that does not exist.", "EarlyErrors"),
    401: ("The request has no valid credentials.", "Unauthorized"),
    403: ("The caller is not allowed to do this.", "Errors"),
    404: ("The object in the path does not exist.", "Errors"),
    406: ("The microversion is not supported, or `Accept` excludes JSON.", "EarlyErrors"),
    408: ("The request body did not arrive in time.", "EarlyErrors"),
    409: ("The request conflicts with the current state.", "Errors"),
    410: ("The journal no longer has the revision.", "Errors"),
    412: ("A precondition in the headers does not hold.", "Errors"),
    413: ("The request body is too large.", "EarlyErrors"),
    414: ("The path and query are too long.", "EarlyErrors"),
    415: ("The request body is not `application/json`.", "Errors"),
    429: ("Too many failed attempts to authenticate.", "EarlyErrors"),
    500: ("The service failed.", "EarlyErrors"),
    503: (
        "The service cannot answer now; try again after the seconds in `Retry-After`.",
        "Unavailable",
    ),
}

_VERSION: JSONSchema = {"type": "string", "pattern": r"^1\.[0-9]+\Z"}

#: An error from a layer in front of the application; `code` is the status as text.
_FRONT_ERROR = exact_object({"message": TEXT, "code": TEXT, "title": TEXT})
_KEYSTONE_ERROR = exact_object(
    {"error": exact_object({"code": {"type": "integer"}, "title": TEXT, "message": TEXT})}
)


def error_components(codes: ErrorCodes) -> tuple[Component, ...]:
    """The error bodies of a namespace."""
    return (
        component(
            "Errors",
            *((minor, _errors(minor, codes, early=False)) for minor in {0, codes.since}),
            example={
                "errors": [
                    {
                        "status": 409,
                        "title": "Conflict",
                        "detail": "The request conflicts with the present state, or with another "
                        "request.\n\nresource provider generation conflict",
                        "code": codes.spell(errors.CONCURRENT_UPDATE, 409),
                        "request_id": REQUEST_ID,
                    }
                ]
            },
        ),
        component(
            "EarlyErrors",
            *((minor, _errors(minor, codes, early=True)) for minor in {0, codes.since}),
        ),
        component("FrontError", (0, _FRONT_ERROR)),
        component("Unauthorized", (0, {"anyOf": [_FRONT_ERROR, _KEYSTONE_ERROR]})),
        component("Unavailable", (0, {"anyOf": [ref("EarlyErrors"), ref("FrontError")]})),
    )


def _errors(microversion: int, codes: ErrorCodes, *, early: bool) -> JSONSchema:
    """A list of one error.

    Args:
        early: it may come before the microversion is negotiated, and then has no code.
    """
    always: dict[str, JSONSchema] = {
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "title": TEXT,
        "detail": TEXT,
        "request_id": {"type": "string", "pattern": REQUEST_ID_PATTERN},
    }
    code: dict[str, JSONSchema] = {"code": {"type": "string", "enum": sorted(codes.all)}}
    versions: dict[str, JSONSchema] = {"max_version": _VERSION, "min_version": _VERSION}
    has_code = microversion >= codes.since
    sometimes = (versions if early else {}) | dict(codes.members)
    fields = always | (code if has_code else {}) | sometimes
    # Until the microversion is negotiated, it counts as 0.
    is_certain = has_code and not (early and codes.since > 0)
    required = always | code if is_certain else always
    error = closed_object(fields, required=tuple(required))
    several = {**list_of(error), "minItems": 1, "maxItems": 1}
    return closed_object({"errors": several, **codes.beside}, required=("errors",))
