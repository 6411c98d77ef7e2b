# SPDX-License-Identifier: Apache-2.0
"""From errors to answers: the one place that knows which failure is which HTTP status and code.

Source: spec/rest-api.md 1.11 and 1.12. The `detail` of an error is a sentence for the status, an
empty line, and the message proper alone on the last line, which is what command line clients show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from berth.api import media_types
from berth.model import errors as model

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

UNDEFINED_CODE = "placement.undefined_code"
CONCURRENT_UPDATE = "placement.concurrent_update"
INVENTORY_IN_USE = "placement.inventory.inuse"
DUPLICATE_NAME = "placement.duplicate_name"
PROVIDER_IN_USE = "placement.resource_provider.inuse"
CANNOT_DELETE_PARENT = "placement.resource_provider.cannot_delete_parent"
PROVIDER_NOT_FOUND = "placement.resource_provider.not_found"
QUERY_DUPLICATE_KEY = "placement.query.duplicate_key"
QUERY_BAD_VALUE = "placement.query.bad_value"
QUERY_MISSING_VALUE = "placement.query.missing_value"
SEARCH_GAVE_UP = "placement.search_gave_up"
OVERLOADED = "placement.overloaded"

#: From 1.23 every error has a `code`.
CODES_SINCE = 23
RETRY_AFTER_S = "1"
#: A message longer than this is shortened in its middle: it may quote a whole request body.
MESSAGE_LENGTH_MAX = 4000

#: COMPAT spec/rest-api.md 1.3: to HEAD no body, which the client would take for the begin of the
#: next answer, and the type of what would have been in it.
NOTHING_FOR_HEAD = ("text/html; charset=UTF-8", b"")

#: Where the layers leave what an error body tells of them.
REQUEST_ID = "berth.request_id"
MICROVERSION = "berth.microversion"

ANSWERS: Mapping[type[model.BerthError], tuple[int, str]] = {
    model.NotFound: (404, UNDEFINED_CODE),
    model.Invalid: (400, UNDEFINED_CODE),
    model.ReshapedProviderNotFound: (400, PROVIDER_NOT_FOUND),
    model.Conflict: (409, UNDEFINED_CODE),
    model.ConcurrentUpdate: (409, CONCURRENT_UPDATE),
    model.InventoryInUse: (409, INVENTORY_IN_USE),
    model.DuplicateProviderName: (409, DUPLICATE_NAME),
    model.DuplicateProviderUUID: (409, DUPLICATE_NAME),
    model.ProviderInUse: (409, PROVIDER_IN_USE),
    model.ProviderHasChildren: (409, CANNOT_DELETE_PARENT),
    model.Unavailable: (503, UNDEFINED_CODE),
    model.SearchGaveUp: (503, SEARCH_GAVE_UP),
    model.BerthError: (500, UNDEFINED_CODE),
}

#: Reason phrases, the same on every version of Python.
PHRASES: Mapping[int, str] = {
    **{status.value: status.phrase for status in HTTPStatus},
    413: "Content Too Large",
    414: "URI Too Long",
}

SENTENCES: Mapping[int, str] = {
    400: "The request is malformed, or asks for something that cannot be.",
    401: "The request carries no valid identity.",
    403: "The caller is known, but not allowed to do this.",
    404: "The resource could not be found.",
    405: "The method is not served on this path.",
    406: "No answer is available in a form that the request accepts.",
    408: "The request did not come in time.",
    409: "The request conflicts with the present state, or with another request.",
    413: "The request body is too large.",
    414: "The path and query of the request are too long.",
    415: "The media type of the request body is not supported here.",
    429: "The client has sent too many requests.",
    500: "The service failed while handling the request.",
    503: "The service cannot answer at the moment.",
}

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_TAG = re.compile(r"</?[A-Za-z!][^<>]*>")


class Refused(Exception):
    """An answer that the API decides by itself, before or without asking the layers below."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str = UNDEFINED_CODE,
        headers: Mapping[str, str] = _NO_HEADERS,
        facts: Mapping[str, str] = _NO_HEADERS,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        #: Response headers that belong to the answer, such as `Allow`.
        self.headers = headers
        #: More members of the error object, such as `max_version`.
        self.facts = facts


def refusal_of(error: model.BerthError) -> Refused:
    """The answer for an error of the layers below."""
    status, code = answer_for(error)
    headers = {"retry-after": RETRY_AFTER_S} if status == 503 else _NO_HEADERS
    message = error.public if isinstance(error, model.DatabaseUnavailable) else str(error)
    return Refused(status, message, code=code, headers=headers)


def answer_for(error: model.BerthError) -> tuple[int, str]:
    """The HTTP status and error code for an error, or for its nearest ancestor in `ANSWERS`."""
    return next(ANSWERS[kind] for kind in type(error).__mro__ if kind in ANSWERS)


def render(refused: Refused, environ: WSGIEnvironment) -> tuple[str, bytes]:
    """The content type and body of an error, in the form that the request prefers."""
    title = PHRASES[refused.status]
    detail = f"{SENTENCES[refused.status]}\n\n{_one_line(refused.message)}"
    media_type = media_types.error_media_type(environ.get("HTTP_ACCEPT"))
    if media_type == media_types.JSON:
        return media_type, _as_json(refused, title, detail, environ)
    if media_type == media_types.HTML:
        return f"{media_type}; charset=UTF-8", _as_html(f"{refused.status} {title}", detail)
    return f"{media_type}; charset=UTF-8", f"{refused.status} {title}\n\n{detail}\n".encode()


def render_unauthorized(refused: Refused, environ: WSGIEnvironment) -> tuple[str, bytes]:
    """As `render`, in the shape of the answers from in front of the application (noauth2's 401)."""
    if media_types.error_media_type(environ.get("HTTP_ACCEPT")) != media_types.JSON:
        return render(refused, environ)
    title = PHRASES[refused.status]
    body = {
        "message": f"{SENTENCES[refused.status]} {_one_line(refused.message)}",
        "code": f"{refused.status} {title}",
        "title": title,
    }
    return media_types.JSON, msgspec.json.encode(body)


def send(
    refused: Refused,
    rendered: tuple[str, bytes],
    environ: WSGIEnvironment,
    start_response: StartResponse,
) -> Iterable[bytes]:
    """Answer, from a layer in front of the application, with a content type and a body.

    To HEAD a refusal has no body: see `NOTHING_FOR_HEAD`.
    """
    content_type, body = NOTHING_FOR_HEAD if environ["REQUEST_METHOD"] == "HEAD" else rendered
    headers = [
        ("content-type", content_type),
        ("content-length", str(len(body))),
        *refused.headers.items(),
    ]
    start_response(f"{refused.status} {PHRASES[refused.status]}", headers)
    return [body]


def _as_json(refused: Refused, title: str, detail: str, environ: WSGIEnvironment) -> bytes:
    error = {
        "status": refused.status,
        "title": title,
        "detail": detail,
        "request_id": environ.get(REQUEST_ID),
        **refused.facts,
    }
    if environ.get(MICROVERSION, 0) >= CODES_SINCE:
        error["code"] = refused.code
    return msgspec.json.encode({"errors": [error]})


def _as_html(heading: str, detail: str) -> bytes:
    paragraphs = "".join(f"<p>{escape(text)}</p>" for text in detail.split("\n\n"))
    page = (
        f"<!DOCTYPE html><html><head><title>{heading}</title></head>"
        f"<body><h1>{heading}</h1>{paragraphs}</body></html>"
    )
    return page.encode()


def _one_line(message: str) -> str:
    if len(message) > MESSAGE_LENGTH_MAX:
        half = MESSAGE_LENGTH_MAX // 2
        message = f"{message[:half]} ... {message[-half:]}"
    line = " ".join(_TAG.sub("", message).split())
    return line.encode("utf-8", "replace").decode()
