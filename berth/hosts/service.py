# SPDX-License-Identifier: Apache-2.0
"""Requests to the placement service, and its refusals as errors.

All that this package asks for is in microversion 1.30, the first that can reshape, so everything is
asked at it; only candidates with all of today's questions need 1.36, and moving a provider to
another parent 1.37. The transport is a keystoneauth
Adapter: of a Keystone session, of a fixed endpoint and token, or of `berth.direct`.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any, Final, Protocol
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

VERSION: Final = "1.30"
CANDIDATES_VERSION: Final = "1.36"
MOVING_VERSION: Final = "1.37"

#: What the codes of a refusal mean; others are told by their status.
_BY_CODE: Final[Mapping[str, type[Refused]]] = {
    "placement.concurrent_update": Conflict,
    "placement.inventory.inuse": InventoryInUse,
    "placement.duplicate_name": NameTaken,
    # Said with 400 where a body names one that has gone meanwhile.
    "placement.resource_provider.not_found": NotThere,
}

_NOT_FOUND: Final = 404
_NOT_ACCEPTABLE: Final = 406

#: What to look at, by status.
_NEXT_STEPS: Final[Mapping[int, str]] = {
    401: "the service does not know this caller: see whether the token or the password is right",
    403: "the roles service and admin may do all that a host needs",
}
_WRONG_PLACE: Final = "no placement service is here: see whether the service's URL is right"

#: So much is told of an answer that no placement service has written.
_FOREIGN_TEXT_MAX: Final = 200

#: What else a status means.
_BY_STATUS: Final[Mapping[int, type[Refused]]] = {_NOT_FOUND: NotThere, _NOT_ACCEPTABLE: TooOld}

#: Statuses that say nothing of the request: the service cannot answer at the moment. With 500 a
#: service answers a deadlock in its database; whatever this package sends can be sent again.
_PASSING: Final = (429, 500, 502, 503, 504)

#: A busy service's code: nothing was done.
_OVERLOADED: Final = "placement.overloaded"
_RETRY_AFTER_S_MAX: Final = 60
#: For up to how much longer than it asks for a busy service is left alone, each time.
_PAUSES_S: Final = (2, 4, 8, 16, 16, 16, 16)


#: A provider, as a list of them names it.
Listed = Mapping[str, Any]


class Answer(Protocol):
    """Of requests' Response, what is looked at."""

    @property
    def status_code(self) -> int:
        """The status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, whatever the letter case of their names."""

    @property
    def text(self) -> str:
        """The body."""

    def json(self) -> Any:
        """The decoded body."""


class Transport(Protocol):
    """Of keystoneauth's Adapter, what is used."""

    def request(self, url: str, method: str, **options: Any) -> Answer:
        """Send a request, and wait for its answer."""


class Service:
    """The placement service, as this package speaks to it.

    Where it is too busy for a request, it does nothing and says when to come back: the request is
    sent again then. A whole fleet that starts at once is served so, one after another.

    Args:
        pause: waits so many seconds.
        rng: spreads the pauses, so that those who were put off together come back apart.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        pause: Callable[[float], None] = time.sleep,
        rng: Random | None = None,
    ) -> None:
        self._transport = transport
        self._pause = pause
        self._rng = rng or Random()
        #: Requests sent so far, by method.
        self.requests: Counter[str] = Counter()
        #: How many of them the service was too busy for.
        self.put_off = 0

    def get(self, path: str, *, version: str = VERSION, **query: str) -> Any:
        """The decoded body of a GET.

        Raises:
            NotThere, Refused, Unreachable: there is none.
        """
        asked = f"{path}?{urlencode(query)}" if query else path
        return _decoded(f"GET {path}", self._send("GET", asked, version=version))

    def list_providers(self, *, version: str = VERSION, **query: str) -> list[Listed]:
        """Providers as the service lists them: those that answer a query, or all.

        Raises:
            Refused, Unreachable: there is no list.
        """
        listed: list[Listed] = self.get("/resource_providers", version=version, **query)[
            "resource_providers"
        ]
        return listed

    def put(self, path: str, body: object = None, *, version: str = VERSION) -> Any:
        """Send a PUT; its decoded body, None where there is none.

        Raises:
            Conflict, InventoryInUse, NameTaken, NotThere, Refused: nothing was changed.
            Unreachable: it may or may not have been done.
        """
        return _body_of(f"PUT {path}", self._send("PUT", path, body, version=version))

    def post(self, path: str, body: object) -> Any:
        """Send a POST; as `put`."""
        return _body_of(f"POST {path}", self._send("POST", path, body))

    def delete(self, path: str) -> None:
        """Send a DELETE; as `put`."""
        self._send("DELETE", path)

    def _send(
        self, method: str, path: str, body: object = None, *, version: str = VERSION
    ) -> Answer:
        request = f"{method} {path}"
        options = {} if body is None else {"json": body}
        answer = self._send_once(method, path, version, options)
        for longest in _PAUSES_S:
            if (retry_after_s := _retry_after_s(answer)) is None:
                break
            self.put_off += 1
            self._pause(retry_after_s + self._rng.uniform(0, longest))
            answer = self._send_once(method, path, version, options)
        if answer.status_code in _PASSING:
            raise Unreachable(
                f"{request} was answered {answer.status_code}: "
                f"{' '.join(_error_in(answer)[1].split())}"
            )
        if answer.status_code >= 400:
            raise _refusal(request, answer, version)
        return answer

    def _send_once(
        self, method: str, path: str, version: str, options: Mapping[str, object]
    ) -> Answer:
        self.requests[method] += 1
        try:
            return self._transport.request(
                path, method, microversion=version, raise_exc=False, **options
            )
        except (exceptions.Unauthorized, exceptions.Forbidden, exceptions.NotFound) as error:
            # The service's own are answers: this is Keystone, which does not let the caller in.
            raise Refused(
                f"{method} {path}",
                status=error.http_status,
                code="",
                detail=f"by Keystone: {error}",
            ) from error
        except exceptions.ClientException as error:
            raise Unreachable(f"{method} {path} got no answer{_cause_of(error)}") from error


def provider_path(uuid: str, *rest: str) -> str:
    """The path of a provider, or of something of it."""
    return "/".join(["/resource_providers", quote(uuid, safe=""), *rest])


def named_path(collection: str, name: str) -> str:
    """The path of a trait, a resource class or a consumer."""
    return f"{collection}/{quote(name, safe='')}"


def with_all_below(uuid: str, listed: Iterable[Mapping[str, Any]]) -> list[str]:
    """A provider and all below it, parents first, of those that the service has listed."""
    children: dict[str | None, list[str]] = {}
    for provider in listed:
        children.setdefault(provider["parent_provider_uuid"], []).append(provider["uuid"])
    found = [uuid]
    for above in found:
        found += children.get(above, ())
    return found


def _refusal(request: str, answer: Answer, version: str) -> Refused:
    code, detail = _error_in(answer)
    status = answer.status_code
    kind = _BY_CODE.get(code, _BY_STATUS.get(status, Refused))
    if status == _NOT_ACCEPTABLE:
        detail = f"it does not speak microversion {version}{_newest_of(answer)}; upgrade it"
    elif status == _NOT_FOUND and _is_of_a_collection(request):
        kind, detail = Refused, f"{detail}; {_WRONG_PLACE}"
    elif status in _NEXT_STEPS:
        detail = f"{detail}; {_NEXT_STEPS[status]}"
    return kind(request, status=status, code=code, detail=detail)


def _is_of_a_collection(request: str) -> bool:
    """Whether it is about all of something, which every placement service has."""
    path = request.partition(" ")[2].partition("?")[0]
    return path.count("/") == 1


def _cause_of(error: exceptions.ClientException) -> str:
    """Who did not answer, and why, in as few words as the libraries below have for it."""
    said = list(_chain(error))
    asked = next((at for one in said if (at := getattr(one, "request", None)) is not None), None)
    words = next(
        (one.strerror for one in reversed(said) if isinstance(one, OSError) and one.strerror), None
    )
    if asked is None or words is None:
        return f": {error}"
    at = urlsplit(asked.url)
    return f" from {at.scheme}://{at.netloc}: {words}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _retry_after_s(answer: Answer) -> int | None:
    """For how long a busy service asks to be left alone; None: it has said something else."""
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
    """The code and the text of an error body; whatever stands between may answer otherwise."""
    try:
        body = answer.json()
        # Who asks for a token speaks for himself.
        if "message" in body:
            return "", str(body["message"])
        error = body["errors"][0]
        return str(error.get("code", "")), str(error["detail"])
    except (ValueError, LookupError, TypeError, AttributeError):
        return "", _foreign_text(answer)


def _foreign_text(answer: Answer) -> str:
    """The beginning of a body that no placement service has written, such as a proxy's page."""
    return " ".join(re.sub(r"<[^>]*>", " ", answer.text).split())[:_FOREIGN_TEXT_MAX]


def _body_of(request: str, answer: Answer) -> Any:
    return _decoded(request, answer) if answer.text else None


def _decoded(request: str, answer: Answer) -> Any:
    try:
        return answer.json()
    except ValueError as error:
        raise Unreachable(
            f"{request} was answered {answer.status_code} with what is no JSON; see whether the "
            f"url is that of the placement service"
        ) from error
