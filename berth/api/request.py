# SPDX-License-Identifier: Apache-2.0
"""What a handler receives: the services, the request with what the layers added, and the response
to fill in.

PERF bench.fixed_cost: both are made for every request, so they have slots and compute the rest when
a handler asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from threading import BoundedSemaphore
from types import MappingProxyType
from typing import Final, Protocol
from urllib.parse import quote
from wsgiref.types import WSGIEnvironment

from oslo_context.context import RequestContext

from berth.api.environ import CONTEXT
from berth.api.errors import MICROVERSION
from berth.api.host_rights import HostRights
from berth.api.http_date import HttpClock
from berth.api.microversion import negotiate
from berth.api.namespaces import NAMESPACES
from berth.api.observer import Observer
from berth.api.operation import Namespace
from berth.api.policy import Policy
from berth.api.under_way import UnderWay
from berth.api.watchers import Watchers
from berth.candidates.request import CandidatesRequest, SearchSettings
from berth.config import Settings
from berth.index import Index, Snapshot
from berth.store.engine.database import Database

#: Needs no quoting in a path (RFC 3986).
_PATH_SAFE = "/~!$&'()*+,;=:@"


_NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})
#: Answers with the whole fleet that a worker makes at a time.
FLEETS_MAX: Final = 2


class SearchLine(Protocol):
    """Limits how many searches run at a time."""

    def enter(self, within: Callable[[], float]) -> bool:
        """Wait for a place, for so many seconds at most, which are asked for where it must; False
        if there is none, and then do not call `leave`."""

    def go_on(self, *, within: float) -> bool:
        """Wait some seconds for a place of those that take long, in exchange for the first one;
        False if there is none, and then do not call `leave`."""

    def leave(self, *, is_long: bool) -> None:
        """Release the place, which is one of those that take long or not."""


class EmptyAnswers(Protocol):
    """Explains answers without candidates."""

    def note(self, snapshot: Snapshot, wanted: CandidatesRequest, request: Request) -> None:
        """Explain later why a request got no candidates; returns at once and never fails."""


@dataclass(frozen=True, slots=True)
class Services:
    """The layers below, and the few options that handlers pass to them."""

    settings: Settings
    database: Database
    index: Index
    #: Guards every operation that has a rule.
    policy: Policy
    observer: Observer
    search: SearchSettings
    #: For `randomize_allocation_candidates`.
    rng: Random
    #: Limits concurrent searches.
    searching: SearchLine
    #: Requests that wait for changes.
    watchers: Watchers
    #: None if answers without candidates are not explained.
    empty_answers: EmptyAnswers | None = None
    #: Whether writes leave a trail for the audit log (`berth.api.audit`).
    is_audited: bool = False
    #: What the caller of this request may read and name; None if that does not depend on a host.
    rights: HostRights | None = None
    namespaces: Sequence[Namespace] = NAMESPACES
    clock: HttpClock = field(default_factory=HttpClock)
    #: Limits how many answers with the whole fleet are made at a time.
    fleet_answers: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(FLEETS_MAX))
    #: Placements whose claims are being written.
    under_way: UnderWay = field(default_factory=UnderWay)


class Request:
    """A request."""

    __slots__ = ("content_type", "env", "method", "microversion", "path", "query", "query_string")

    def __init__(self, env: WSGIEnvironment) -> None:
        self.env = env
        self.method: str = env["REQUEST_METHOD"]
        path: str = env["PATH_INFO"] or "/"
        #: Decoded; WSGI passes each byte as a character.
        self.path = path if path.isascii() else path.encode("latin-1").decode("utf-8", "replace")
        #: Not decoded.
        self.query_string: str = env.get("QUERY_STRING", "")
        #: Its parameters, once they are checked, in a namespace whose operations declare them all.
        self.query: Mapping[str, str] = _NO_QUERY
        self.content_type: str | None = env.get("CONTENT_TYPE")
        #: The minor number of the microversion in force.
        self.microversion = 0

    @property
    def caller(self) -> RequestContext:
        """Who sent the request, as the authentication layer determined."""
        context: RequestContext = self.env[CONTEXT]
        return context

    @property
    def mount(self) -> str:
        """The URL path prefix under which the application is mounted, or "" if it is not."""
        prefix: str = self.env.get("SCRIPT_NAME", "")
        return quote(prefix.encode("latin-1", "replace"), safe=_PATH_SAFE) if prefix else ""

    def negotiate(self) -> None:
        """Set the microversion from the request's header.

        Raises:
            Refused: 400 or 406.
        """
        minor = negotiate(self.env.get("HTTP_OPENSTACK_API_VERSION"))
        self.env[MICROVERSION] = self.microversion = minor

    def location(self, path: str) -> str:
        """The absolute URL of a path in this application."""
        env = self.env
        scheme = env["wsgi.url_scheme"]
        host = env.get("HTTP_HOST")
        if host is None:
            port = env["SERVER_PORT"]
            is_usual = port == ("443" if scheme == "https" else "80")
            host = env["SERVER_NAME"] if is_usual else f"{env['SERVER_NAME']}:{port}"
        return f"{scheme}://{host}{self.mount}{path}"


class Response:
    """A response; without data or a stream it has no body."""

    __slots__ = ("data", "headers", "status", "stream")

    def __init__(self) -> None:
        self.status = "200 OK"
        #: By their names in lower case, in the order in which they are sent.
        self.headers: dict[str, str] = {}
        self.data: bytes | None = None
        #: Sent if there is no data; `content-length` is its length.
        self.stream: Iterable[bytes] | None = None

    def set_header(self, name: str, value: str) -> None:
        """Set a header, by its name in lower case."""
        self.headers[name] = value
