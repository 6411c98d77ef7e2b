# SPDX-License-Identifier: Apache-2.0
"""Map errors to responses: the only place that knows the HTTP status and code of each failure.

Source: spec/rest-api.md 1.11 and 1.12. The `detail` of an error begins exactly as OpenStack
Placement's, because clients match it: a sentence for the status, an empty line, and the message.
berth's hint follows on the same line, because command line clients show only the last line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, field

from berth.api import media_types
from berth.api.environ import CONTEXT, MATCH
from berth.model import errors as model
from berth.model import own_errors as own
from berth.model.ids import parse_uuid_lax

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
LABEL_TAKEN = "berth.label.taken"
CONSUMER_NAME_TAKEN = "berth.consumer.name_taken"
PRECONDITION_FAILED = "berth.precondition.failed"
REQUEST_TOO_LARGE = "berth.request.too_large"
REVISION_FOREIGN = "berth.revision.foreign"
REVISION_GONE = "berth.revision.gone"

#: From 1.23 on, errors have a `code`.
CODES_SINCE = 23
RETRY_AFTER_S = "1"
#: A longer message is cut in the middle, because it may quote a whole request body.
MESSAGE_LENGTH_MAX = 4000

#: COMPAT spec/rest-api.md 1.3: no body for HEAD, which the client would take for the start of the
#: next response, but the content type that it would have had.
NOTHING_FOR_HEAD = ("text/html; charset=UTF-8", b"")

#: Key in the WSGI environment of the microversion, which error bodies depend on.
MICROVERSION = "berth.microversion"


class ErrorCodes(Struct, frozen=True):
    """The error codes of one namespace of the API, and what else its error objects have."""

    #: The first microversion in which errors have a code.
    since: int
    #: Every code that an error may have.
    all: frozenset[str]
    #: The code of an error that has none of these.
    undefined: str = UNDEFINED_CODE
    #: More precise than `undefined`, by status.
    of_status: Mapping[int, str] = field(default_factory=dict)
    #: Codes that have another name here.
    renamed: Mapping[str, str] = field(default_factory=dict)
    #: Optional members of error objects, with their JSON Schemas.
    members: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Optional members of the body beside its errors, with their JSON Schemas.
    beside: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def spell(self, code: str, status: int) -> str:
        """The code that an error has in this namespace."""
        code = self.renamed.get(code, code)
        return code if code in self.all else self.of_status.get(status, self.undefined)


ANSWERS: Mapping[type[model.BerthError], tuple[int, str]] = {
    model.NotFound: (404, UNDEFINED_CODE),
    model.Invalid: (400, UNDEFINED_CODE),
    own.TooMany: (400, REQUEST_TOO_LARGE),
    own.AlreadyThere: (412, PRECONDITION_FAILED),
    model.ReshapedProviderNotFound: (400, PROVIDER_NOT_FOUND),
    model.RevisionForeign: (400, REVISION_FOREIGN),
    model.RevisionGone: (410, REVISION_GONE),
    model.Conflict: (409, UNDEFINED_CODE),
    own.OutsideHost: (403, UNDEFINED_CODE),
    own.NotOfHost: (403, UNDEFINED_CODE),
    own.AggregateRefused: (403, UNDEFINED_CODE),
    own.LabelTaken: (409, LABEL_TAKEN),
    own.ConsumerNameTaken: (409, CONSUMER_NAME_TAKEN),
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

PLACEMENT_CODES: Final = ErrorCodes(
    CODES_SINCE,
    frozenset(
        {
            *(code for _, code in ANSWERS.values() if code.startswith("placement.")),
            QUERY_DUPLICATE_KEY,
            QUERY_BAD_VALUE,
            QUERY_MISSING_VALUE,
            OVERLOADED,
        }
    ),
)

#: Reason phrases, the same on every version of Python.
PHRASES: Mapping[int, str] = {
    **{status.value: status.phrase for status in HTTPStatus},
    413: "Content Too Large",
    414: "URI Too Long",
}

#: The sentence that starts a `detail`. COMPAT: OpenStack Placement's, where it uses the status.
SENTENCES: Mapping[int, str] = {
    400: (
        "The server could not comply with the request since it is either malformed or otherwise "
        "incorrect."
    ),
    401: (
        "This server could not verify that you are authorized to access the document you "
        "requested. Either you supplied the wrong credentials (e.g., bad password), or your "
        "browser does not understand how to supply the credentials required."
    ),
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    405: "The method {method} is not allowed for this resource. ",
    406: (
        "The resource could not be generated that was acceptable to your browser "
        "(content of type {accept}. "
    ),
    408: "The request did not come in time.",
    409: "There was a conflict when trying to complete your request.",
    410: "The resource is not available any more.",
    412: "What the request expects is not so.",
    413: "The request body is too large.",
    414: "The path and query of the request are too long.",
    415: "The request media type {content_type} is not supported by this server. ",
    429: "The client has sent too many requests.",
    500: "The server has either erred or is incapable of performing the requested operation.",
    503: "The service cannot answer at the moment.",
}

_PROVIDER: Final = "/resource_providers/{uuid}"
_OLD_GENERATION: Final = (
    "Resource provider's generation already changed. Please update the generation and try again."
)
_MALFORMED_RESHAPER_DATA: Final = (
    "malformed reshaper data: No such resource class {error.resource_class}."
)
#: COMPAT: OpenStack Placement's wording where it differs from that of the layers below, by error,
#: and by method and path template.
PLACES: Mapping[tuple[type[model.BerthError], str], str] = {
    (model.ProviderNotFound, f"GET {_PROVIDER}/inventories"): "{error} : {error}",
    (model.ProviderNotFound, f"GET {_PROVIDER}/inventories/{{resource_class}}"): (
        "{error} : {error}"
    ),
    (model.ProviderNotFound, f"GET {_PROVIDER}/usages"): "{error}: {error}",
    (model.ProviderNotFound, f"GET {_PROVIDER}/traits"): "{error}: {error}",
    (model.ProviderNotFound, f"GET {_PROVIDER}/allocations"): (
        "Resource provider '{error.provider}' not found: {error}"
    ),
    (model.ProviderGenerationConflict, f"PUT {_PROVIDER}/aggregates"): _OLD_GENERATION,
    (model.ProviderGenerationConflict, f"PUT {_PROVIDER}/traits"): _OLD_GENERATION,
    (model.ProviderGenerationConflict, "POST /reshaper"): (
        "{error} for provider {error.provider}: actual: {error.actual}, given: {error.seen}"
    ),
    (model.InventoryInUse, f"PUT {_PROVIDER}/inventories"): "update conflict: {error}",
    (model.InventoryInUse, "POST /reshaper"): "update conflict: {error}",
    (model.UnknownTraits, "GET /resource_providers"): (
        'Invalid trait(s) in "required" parameter: {error}'
    ),
    (model.UnknownTraits, f"PUT {_PROVIDER}/traits"): "No such trait {error.all_traits}",
    (model.UnknownClassInAllocation, "POST /allocations"): (
        "Unable to allocate inventory No such resource class {error.resource_class}."
    ),
    (model.UnknownClassInAllocation, "POST /reshaper"): _MALFORMED_RESHAPER_DATA,
    (model.UnknownClassInInventory, "POST /reshaper"): _MALFORMED_RESHAPER_DATA,
}

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
#: An HTML line break, a newline in text.
_BREAK = re.compile(r"<br[^>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")


class Refused(Exception):
    """A refusal by the API itself, before or without calling the layers below."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        hint: str = "",
        code: str = UNDEFINED_CODE,
        headers: Mapping[str, str] = _NO_HEADERS,
        facts: Mapping[str, object] = _NO_HEADERS,
        beside: Mapping[str, object] = _NO_HEADERS,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        #: Sentences that berth adds to the message.
        self.hint = hint
        self.code = code
        #: Additional response headers, such as `Allow`.
        self.headers = headers
        #: Extra members of the error object, such as `max_version` and `pointer`.
        self.facts = facts
        #: Extra members of a JSON body, beside its errors.
        self.beside = beside


def overloaded() -> Refused:
    """503: the server has no capacity now, and did nothing for this request."""
    return Refused(
        503,
        "More requests have come than can be served at the moment; try again.",
        code=OVERLOADED,
        headers={"retry-after": RETRY_AFTER_S},
    )


def refusal_of(error: model.BerthError, place: str, *, more: str = "") -> Refused:
    """The refusal for an error of the layers below.

    Args:
        error: the error.
        place: the method and the path template, separated by a space.
        more: text to add after the error's own hint.
    """
    status, code = answer_for(error)
    headers = {"retry-after": RETRY_AFTER_S} if status == 503 else _NO_HEADERS
    shown = error.public if isinstance(error, model.DatabaseUnavailable) else error
    message = PLACES.get((type(error), place), "{error}").format(error=shown)
    hint = f"{error.hint} {more}".strip()
    return Refused(status, message, hint=hint, code=code, headers=headers)


def answer_for(error: model.BerthError) -> tuple[int, str]:
    """The HTTP status and error code for an error, or for its nearest ancestor in `ANSWERS`."""
    return next(ANSWERS[kind] for kind in type(error).__mro__ if kind in ANSWERS)


def render(refused: Refused, environ: WSGIEnvironment) -> tuple[str, bytes]:
    """The content type and body of an error, in the form that the client prefers."""
    title = PHRASES[refused.status]
    heading = f"{refused.status} {title}"
    media_type = media_types.error_media_type(environ.get("HTTP_ACCEPT"))
    if media_type == media_types.JSON:
        return media_type, _as_json(refused, title, detail_of(refused, environ), environ)
    if media_type == media_types.HTML:
        return f"{media_type}; charset=UTF-8", _as_html(heading, refused, environ)
    return f"{media_type}; charset=UTF-8", f"{heading}\n\n{detail_of(refused, environ)}".encode()


def render_unauthorized(refused: Refused, environ: WSGIEnvironment) -> tuple[str, bytes]:
    """Like `render`, in the form of a response from middleware (noauth2's 401)."""
    if media_types.error_media_type(environ.get("HTTP_ACCEPT")) != media_types.JSON:
        return render(refused, environ)
    title = PHRASES[refused.status]
    body = {
        "message": (
            f"{SENTENCES[refused.status]}<br /><br />\n{refused.message}\n\n{refused.hint}"
        ),
        "code": f"{refused.status} {title}",
        "title": title,
    }
    return media_types.JSON, msgspec.json.encode(body)


def detail_of(refused: Refused, environ: WSGIEnvironment) -> str:
    """The sentence for the status, an empty line, the message, and berth's hint.

    COMPAT: the spaces around the message are OpenStack Placement's. After a sentence that quotes
    the request, the message has no trailing spaces.
    """
    message = _plain(_shortened(_as_in_path(refused.message, environ)))
    before_hint = "  "
    if "{" in SENTENCES[refused.status]:
        before_hint = " " if message and refused.hint else ""
    hint = _plain(_shortened(refused.hint))
    return f"{_plain(_sentence(refused, environ))}\n\n {message}{before_hint}{hint}"


def send(
    refused: Refused,
    environ: WSGIEnvironment,
    start_response: StartResponse,
    *,
    form: Callable[[Refused, WSGIEnvironment], tuple[str, bytes]] = render,
) -> Iterable[bytes]:
    """Send a refusal from a layer in front of the application.

    The response to HEAD has no body: see `NOTHING_FOR_HEAD`.
    """
    is_head = environ["REQUEST_METHOD"] == "HEAD"
    content_type, body = NOTHING_FOR_HEAD if is_head else form(refused, environ)
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
        "request_id": request_id_of(environ),
        **refused.facts,
    }
    codes = _codes_of(environ)
    if environ.get(MICROVERSION, 0) >= codes.since:
        error["code"] = codes.spell(refused.code, refused.status)
    return msgspec.json.encode({"errors": [error], **refused.beside})


def request_id_of(environ: WSGIEnvironment) -> str | None:
    """The id of a request; None if no layer has given it one."""
    return getattr(environ.get(CONTEXT), "request_id", None)


def _codes_of(environ: WSGIEnvironment) -> ErrorCodes:
    """The error codes of the namespace of a request."""
    match = environ.get(MATCH)
    codes: ErrorCodes = PLACEMENT_CODES if match is None else match.route.namespace.codes
    return codes


def _as_html(heading: str, refused: Refused, environ: WSGIEnvironment) -> bytes:
    sentence, message, hint = (
        escape(_encodable(text))
        for text in (
            _sentence(refused, environ),
            _shortened(_as_in_path(refused.message, environ)),
            _shortened(refused.hint),
        )
    )
    page = (
        f"<html>\n <head>\n  <title>{heading}</title>\n </head>\n <body>\n  <h1>{heading}</h1>\n"
        f"  {sentence}<br /><br />\n{message}\n\n{hint}\n </body>\n</html>"
    )
    return page.encode()


def _sentence(refused: Refused, environ: WSGIEnvironment) -> str:
    accept = environ.get("HTTP_ACCEPT")
    return SENTENCES[refused.status].format(
        method=environ.get("REQUEST_METHOD"),
        content_type=environ.get("CONTENT_TYPE") or None,
        accept=accept if accept not in (None, "", "*/*") else media_types.JSON,
    )


def _as_in_path(message: str, environ: WSGIEnvironment) -> str:
    """The message with names from the path spelled as in the path.

    COMPAT: a uuid in the client's spelling, and anything else byte by byte, `é` as `Ã©`. Namespaces
    other than Placement's leave names as they are.
    """
    if _codes_of(environ) is not PLACEMENT_CODES:
        return message
    for sent in environ.get("PATH_INFO", "").split("/"):
        known_as = sent.encode("latin-1").decode("utf-8", "replace")
        known_as = parse_uuid_lax(known_as) or known_as
        if known_as != sent:
            message = message.replace(known_as, sent)
    return message


def _shortened(message: str) -> str:
    if len(message) <= MESSAGE_LENGTH_MAX:
        return message
    half = MESSAGE_LENGTH_MAX // 2
    return f"{message[:half]} ... {message[-half:]}"


def _plain(text: str) -> str:
    """Text without HTML-like parts, on one line except at `<br>`.

    COMPAT: strips tags as WebOb does, which builds OpenStack Placement's details.
    """
    text = text.replace("\n", " ").replace("\r", "")
    text = _replaced(_BREAK, "\n", text)
    text = text.replace("<!--", "").replace("-->", "")
    return _encodable(_replaced(_TAG, "", text))


def _replaced(tag: re.Pattern[str], by: str, text: str) -> str:
    """Replace tags up to the last `>`; a search beyond it is slow with many open tags."""
    end = text.rfind(">") + 1
    return tag.sub(by, text[:end]) + text[end:]


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
