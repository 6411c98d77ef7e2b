# SPDX-License-Identifier: Apache-2.0
"""Requests to the placement service, and its refusals as errors.

All that this package asks for is in microversion 1.30, the first that can reshape, so everything is
asked at it; only candidates with all of today's questions need 1.36, and moving a provider to
another parent 1.37. The transport is a keystoneauth
Adapter: of a Keystone session, of a fixed endpoint and token, or of `berth.direct`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode

from keystoneauth1 import exceptions

from berth.compute.errors import (
    Conflict,
    InventoryInUse,
    NameTaken,
    NotThere,
    Refused,
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
}

#: Statuses that say nothing of the request: the service cannot answer at the moment.
_PASSING: Final = (429, 502, 503, 504)


class Answer(Protocol):
    """Of requests' Response, what is looked at."""

    @property
    def status_code(self) -> int:
        """The status."""

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
    """The placement service, as this package speaks to it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        #: Requests sent so far, by method.
        self.requests: Counter[str] = Counter()

    def get(self, path: str, *, version: str = VERSION, **query: str) -> Any:
        """The decoded body of a GET.

        Raises:
            NotThere, Refused, Unreachable: there is none.
        """
        asked = f"{path}?{urlencode(query)}" if query else path
        return self._send("GET", asked, version=version).json()

    def put(self, path: str, body: object = None, *, version: str = VERSION) -> Any:
        """Send a PUT; its decoded body, None where there is none.

        Raises:
            Conflict, InventoryInUse, NameTaken, NotThere, Refused: nothing was changed.
            Unreachable: it may or may not have been done.
        """
        return _body_of(self._send("PUT", path, body, version=version))

    def post(self, path: str, body: object) -> Any:
        """Send a POST; as `put`."""
        return _body_of(self._send("POST", path, body))

    def delete(self, path: str) -> None:
        """Send a DELETE; as `put`."""
        self._send("DELETE", path)

    def _send(
        self, method: str, path: str, body: object = None, *, version: str = VERSION
    ) -> Answer:
        request = f"{method} {path}"
        options = {} if body is None else {"json": body}
        self.requests[method] += 1
        try:
            answer = self._transport.request(
                path, method, microversion=version, raise_exc=False, **options
            )
        except exceptions.ClientException as error:
            raise Unreachable(f"{request} got no answer: {error}") from error
        if answer.status_code in _PASSING:
            raise Unreachable(
                f"{request} was answered {answer.status_code}: {' '.join(answer.text.split())}"
            )
        if answer.status_code >= 400:
            raise _refusal(request, answer)
        return answer


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


def _refusal(request: str, answer: Answer) -> Refused:
    code, detail = _error_in(answer)
    kind = _BY_CODE.get(code, NotThere if answer.status_code == 404 else Refused)
    return kind(request, status=answer.status_code, code=code, detail=detail)


def _error_in(answer: Answer) -> tuple[str, str]:
    """The code and the text of an error body; whatever stands between may answer otherwise."""
    try:
        error = answer.json()["errors"][0]
        return str(error.get("code", "")), str(error["detail"])
    except (ValueError, LookupError, TypeError, AttributeError):
        return "", answer.text[:1000]


def _body_of(answer: Answer) -> Any:
    return answer.json() if answer.text else None
