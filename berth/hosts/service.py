# SPDX-License-Identifier: Apache-2.0
"""Sends requests to the placement service, and turns its refusals into errors.

Everything that this package needs is in microversion 1.30, the first with reshapes, so requests use
it. Only candidates need 1.36, and moving a provider to another parent 1.37. The transport is a
keystoneauth Adapter: for a Keystone session, for a fixed endpoint and token, or for `berth.direct`.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from random import Random
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from keystoneauth1 import exceptions

from berth.hosts.errors import (
    Conflict,
    InventoryInUse,
    NameTaken,
    NotThere,
    Refused,
    TooOld,
    Unreachable,
)
from berth.model.printable import without_passwords

VERSION: Final = "1.30"
CANDIDATES_VERSION: Final = "1.36"
MOVING_VERSION: Final = "1.37"

#: The errors for the codes of a refusal; others follow from the status.
_BY_CODE: Final[Mapping[str, type[Refused]]] = {
    "placement.concurrent_update": Conflict,
    "placement.inventory.inuse": InventoryInUse,
    "placement.duplicate_name": NameTaken,
    # Sent with 400 if a body names a provider that was deleted meanwhile.
    "placement.resource_provider.not_found": NotThere,
}

_NOT_FOUND: Final = 404
_NOT_ACCEPTABLE: Final = 406
_PRECONDITION_FAILED: Final = 412

#: What to check, by status.
_NEXT_STEPS: Final[Mapping[int, str]] = {
    401: "authentication failed: check the token or the password",
    403: "a host needs a token with the role agent that is bound to it, or the role service",
}
_WRONG_PLACE: Final = "there is no placement service here: check the URL of the service"

#: How much of a response is quoted that no placement service has written.
_FOREIGN_TEXT_MAX: Final = 200

#: The errors for other statuses.
_BY_STATUS: Final[Mapping[int, type[Refused]]] = {
    _NOT_FOUND: NotThere,
    _NOT_ACCEPTABLE: TooOld,
    _PRECONDITION_FAILED: Conflict,
}

#: Statuses that say nothing about the request: the service cannot answer at the moment. A service
#: answers 500 after a deadlock in its database; every request of this package can be repeated.
_PASSING: Final = (429, 500, 502, 503, 504)

#: The code of a busy service: nothing was done.
_OVERLOADED: Final = "placement.overloaded"
_RETRY_AFTER_S_MAX: Final = 60
#: The longest extra pause, in multiples of the time for which a busy service asks.
_PAUSES_S: Final = (2, 4, 8, 16, 16, 16, 16)


Made = TypeVar("Made")
#: A provider, as the service lists it.
Listed = Mapping[str, Any]


class Answer(Protocol):
    """The part of requests' Response that is used."""

    @property
    def status_code(self) -> int:
        """The status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are case-insensitive."""

    @property
    def text(self) -> str:
        """The body."""

    def json(self) -> Any:
        """The decoded body."""


class Transport(Protocol):
    """The part of keystoneauth's Adapter that is used."""

    def request(self, url: str, method: str, **options: Any) -> Answer:
        """Send a request, and wait for the response."""


@dataclass(eq=False)
class Service:
    """The placement service.

    A service that is too busy for a request says when to come back; the request is sent again then.
    A whole fleet that starts at once is served this way, one host after another.

    Attributes:
        pause: waits for a number of seconds.
        rng: spreads the pauses, so that clients that were rejected together come back separately.
        next_steps: what to check after a refusal, by status.
    """

    transport: Transport
    _: KW_ONLY
    pause: Callable[[float], None] = time.sleep
    rng: Random = field(default_factory=Random)
    next_steps: Mapping[int, str] = field(default_factory=lambda: _NEXT_STEPS)
    #: Requests sent so far, by method.
    requests: Counter[str] = field(default_factory=Counter, init=False)
    #: The number of requests that the busy service rejected.
    put_off: int = field(default=0, init=False)

    def get(self, path: str, *, version: str = VERSION, **query: str) -> Any:
        """Send a GET; return the decoded body.

        Raises:
            NotThere, Refused, Unreachable: the request failed.
        """
        asked = f"{path}?{urlencode(query)}" if query else path
        return decoded(f"GET {path}", self.send("GET", asked, version=version))

    def list_providers(self, *, version: str = VERSION, **query: str) -> list[Listed]:
        """List the providers that match a query, or all.

        Raises:
            Refused, Unreachable: the request failed.
        """
        body = self.get("/resource_providers", version=version, **query)
        listed: list[Listed] = body["resource_providers"]
        return listed

    def get_part(self, uuid: str, part: str) -> Any:
        """Read a part of a provider, such as its `allocations` or `traits`, without its generation.

        Raises:
            NotThere, Refused, Unreachable: the request failed.
        """
        return self.get(provider_path(uuid, part))[part]

    def put_part(self, uuid: str, part: str, value: object, generation: int | None) -> Any:
        """Replace a part of a provider that is at a generation; return the decoded body.

        Raises:
            Conflict and others: see `put`.
        """
        body = {part: value, "resource_provider_generation": generation}
        return self.put(provider_path(uuid, part), body)

    def create_provider(self, uuid: str, name: str, parent: str | None) -> Listed:
        """Create a provider; return it as the service lists it.

        Args:
            parent: the UUID of its parent; None for a root.

        Raises:
            NameTaken: another provider has the UUID or the name; see `put` for others.
        """
        body = {"uuid": uuid, "name": name}
        if parent is not None:
            body["parent_provider_uuid"] = parent
        created: Listed = self.post("/resource_providers", body)
        return created

    def put(self, path: str, body: object = None, *, version: str = VERSION) -> Any:
        """Send a PUT; return the decoded body, None if it is empty.

        Raises:
            Conflict, InventoryInUse, NameTaken, NotThere, Refused: nothing was changed.
            Unreachable: the request may or may not have been carried out.
        """
        return self._write("PUT", path, body, version)

    def post(self, path: str, body: object) -> Any:
        """Send a POST; see `put`."""
        return self._write("POST", path, body, VERSION)

    def delete(self, path: str) -> None:
        """Send a DELETE; see `put`."""
        self.send("DELETE", path)

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        version: str = VERSION,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """Send a request with any method; return its response.

        Raises:
            Conflict, InventoryInUse, NameTaken, NotThere, Refused: nothing was changed.
            Unreachable: the request may or may not have been carried out.
        """
        request = f"{method} {path}"
        options: dict[str, object] = {} if body is None else {"json": body}
        if sent := {**headers, **_trace_headers()}:
            options["headers"] = sent
        answer = self._send_once(method, path, version, options)
        for longest in _PAUSES_S:
            if (retry_after_s := _retry_after_s(answer)) is None:
                break
            self.put_off += 1
            self.pause(retry_after_s + self.rng.uniform(0, longest))
            answer = self._send_once(method, path, version, options)
        if answer.status_code in _PASSING:
            raise Unreachable(
                f"{request} was answered {answer.status_code}: "
                f"{' '.join(_error_in(answer)[1].split())}"
            )
        if answer.status_code >= 400:
            raise _refusal(request, answer, version, self.next_steps)
        return answer

    def _write(self, method: str, path: str, body: object, version: str) -> Any:
        """Send a request; return the decoded body, None if it is empty."""
        answer = self.send(method, path, body, version=version)
        return decoded(f"{method} {path}", answer) if answer.text else None

    def _send_once(
        self, method: str, path: str, version: str, options: Mapping[str, object]
    ) -> Answer:
        self.requests[method] += 1
        try:
            return self.transport.request(
                path, method, microversion=version, raise_exc=False, **options
            )
        except (exceptions.Unauthorized, exceptions.Forbidden, exceptions.NotFound) as error:
            # The service's own refusals are responses; this one is Keystone's, which rejects the
            # caller.
            raise Refused(
                f"{method} {path}", status=error.http_status, detail=f"by Keystone: {error}"
            ) from error
        except exceptions.ClientException as error:
            cause = without_passwords(_cause_of(error))
            raise Unreachable(f"{method} {path} got no answer{cause}") from error


def _trace_headers() -> dict[str, str]:
    """The headers that pass on the trace of the calling program; empty if it has none."""
    headers: dict[str, str] = {}
    if "opentelemetry.trace" in sys.modules:
        # Deferred: only where the program itself uses OpenTelemetry.
        from opentelemetry import propagate

        propagate.inject(headers)
    return headers


def provider_path(uuid: str, *rest: str) -> str:
    """The path of a provider, or of a part of it."""
    return "/".join(["/resource_providers", quote(uuid, safe=""), *rest])


def named_path(collection: str, name: str) -> str:
    """The path of a trait, a resource class or a consumer."""
    return f"{collection}/{quote(name, safe='')}"


def repeated(attempt: Callable[[], Made], most: int, passing: type[Refused]) -> Made:
    """Make an attempt, and again, up to `most` times in all, after errors that may go away.

    Raises:
        Refused: the last attempt failed too.
    """
    for _ in range(most - 1):
        with suppress(passing):
            return attempt()
    return attempt()


def with_all_below(uuid: str, listed: Iterable[Mapping[str, Any]]) -> list[str]:
    """A provider and everything below it, parents first, from a list of the service."""
    children: dict[str | None, list[str]] = {}
    for provider in listed:
        children.setdefault(provider["parent_provider_uuid"], []).append(provider["uuid"])
    uuids = [uuid]
    for above in uuids:
        uuids += children.get(above, ())
    return uuids


def _refusal(request: str, answer: Answer, version: str, next_steps: Mapping[int, str]) -> Refused:
    code, detail = _error_in(answer)
    status = answer.status_code
    kind = _BY_CODE.get(code, _BY_STATUS.get(status, Refused))
    if status == _NOT_ACCEPTABLE:
        detail = f"it does not speak microversion {version}{_newest_of(answer)}; upgrade it"
    elif status == _NOT_FOUND and _is_of_a_collection(request):
        kind, detail = Refused, f"{detail}; {_WRONG_PLACE}"
    elif status in next_steps:
        detail = f"{detail.rstrip(' .')}; {next_steps[status]}"
    return kind(request, status=status, code=code, detail=detail, body=_errors_of(answer))


def _is_of_a_collection(request: str) -> bool:
    """Whether a path is that of a collection, which every placement service has."""
    path = request.partition(" ")[2].partition("?")[0]
    return path.count("/") == 1


def _cause_of(error: exceptions.ClientException) -> str:
    """The address that did not answer, and the reason, as briefly as possible."""
    chain = list(_chain(error))
    asked = next(
        (at for cause in chain if (at := getattr(cause, "request", None)) is not None), None
    )
    words = next(
        (
            cause.strerror
            for cause in reversed(chain)
            if isinstance(cause, OSError) and cause.strerror
        ),
        None,
    )
    if asked is None or words is None:
        return f": {error}"
    at = urlsplit(asked.url)
    return f" from {at.scheme}://{at.netloc}: {words}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _retry_after_s(answer: Answer) -> int | None:
    """The number of seconds that a busy service asks for; None if it does not."""
    if answer.status_code != 503 or _error_in(answer)[0] != _OVERLOADED:
        return None
    wanted = answer.headers.get("retry-after", "")
    is_number = wanted.isascii() and wanted.isdigit()
    return min(int(wanted), _RETRY_AFTER_S_MAX) if is_number else 1


def _newest_of(answer: Answer) -> str:
    try:
        return f", only up to {answer.json()['errors'][0]['max_version']}"
    except (ValueError, LookupError, TypeError):
        return ""


def _error_in(answer: Answer) -> tuple[str, str]:
    """The code and the text of an error body; a proxy may send something else."""
    try:
        body = answer.json()
        # A request for a token is not one to the service.
        if "message" in body:
            return "", _without_preamble(str(body["message"]))
        error = body["errors"][0]
        return str(error.get("code", "")), str(error["detail"])
    except (ValueError, LookupError, TypeError, AttributeError):
        return "", _foreign_text(answer)


def _without_preamble(message: str) -> str:
    """A message of keystonemiddleware's form, without what repeats its status and without HTML."""
    _, _, own = message.partition("<br /><br />")
    return _text_of(own) or _text_of(message)


def _errors_of(answer: Answer) -> Mapping[str, Any]:
    """The body of a refusal; empty if it is not the placement service's."""
    try:
        body = answer.json()
    except ValueError:
        return {}
    is_ours = isinstance(body, dict) and isinstance(body.get("errors"), list)
    return body if is_ours else {}


def _foreign_text(answer: Answer) -> str:
    """The beginning of a body that is not the placement service's, such as a proxy's page."""
    return _text_of(answer.text)[:_FOREIGN_TEXT_MAX]


def _text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def decoded(request: str, answer: Answer) -> Any:
    """The decoded body of a response.

    Raises:
        Unreachable: it is not JSON.
    """
    try:
        return answer.json()
    except ValueError as error:
        raise Unreachable(
            f"{request} was answered {answer.status_code} with something that is not JSON; check "
            f"that the URL is that of the placement service"
        ) from error
