# SPDX-License-Identifier: Apache-2.0
"""What a handler receives: a call, with the services and what the layers added to the request.
Each search of the fleet has a budget, and a place among those that may run at once.

PERF bench.fixed_cost: a call is made for each request, so it has slots and computes the rest when a
handler asks for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from random import Random
from threading import BoundedSemaphore
from time import monotonic, thread_time
from types import MappingProxyType
from typing import Final, NoReturn, Protocol
from urllib.parse import quote
from wsgiref.types import WSGIEnvironment

from msgspec import Struct, field
from oslo_context.context import RequestContext

from berth.api.environ import ARRIVED, CLIENT_GONE, CONTEXT, PLACE, WORKED_LONG
from berth.api.errors import MICROVERSION, overloaded
from berth.api.host_rights import HostRights
from berth.api.http_date import HttpClock
from berth.api.microversion import USUAL_HEADERS, negotiate
from berth.api.paths import Match
from berth.api.policy import Policy
from berth.api.under_way import UnderWay
from berth.api.watchers import Watchers
from berth.candidates.question import Question, SearchSettings
from berth.config import Settings
from berth.index import Index, Snapshot
from berth.model.bounds import QUESTION_BYTES_MAX
from berth.model.budget import Budget
from berth.model.errors import Unavailable
from berth.store.engine.database import Database

#: Needs no quoting in a path (RFC 3986).
_PATH_SAFE = "/~!$&'()*+,;=:@"

_NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})
#: Answers with the whole fleet that a worker makes at a time.
FLEETS_MAX: Final = 2


#: When a question ends, counted from its arrival, in budgets: so much is left of twice its budget
#: for what comes after the search.
END_FACTOR: Final = 1.5
#: Seconds of work for which most searches need less.
QUICK_S: Final = 0.01
#: Seconds of work after which it is worth some milliseconds to return freed memory.
LONG_S: Final = 0.25


class Observer(Protocol):
    """Receives the events of one application. Calls may overlap, and must be short."""

    def claimed(self, consumers: int) -> None:
        """A write gave this many consumers allocations."""

    def released(self, consumers: int) -> None:
        """A write removed this many consumers' allocations."""

    def searched(self, *, trees: int, candidates: int, ended: str | None) -> None:
        """A search for candidates ended.

        Args:
            trees: how many it examined.
            candidates: how many it returned.
            ended: why it ended before it had everything: `time`, `size`, `memory` or `gone`.
        """

    def search_refused(self) -> None:
        """A search was refused a place."""

    def conflicted(self, code: str) -> None:
        """A request was refused with 409 and this error code."""

    def database_failed(self, error: Unavailable, request_id: str | None) -> None:
        """A request was refused because the database is unavailable."""


class SearchLine(Protocol):
    """Limits how many searches run at a time."""

    def enter(self, within: Callable[[], float]) -> bool:
        """Wait for a place; False if there is none, and then do not call `leave`.

        Args:
            within: how many seconds at most; asked for only if it must wait.
        """

    def go_on(self, *, within: float) -> bool:
        """Wait some seconds for a place of those that take long, in exchange for the first one;
        False if there is none, and then do not call `leave`."""

    def leave(self, *, is_long: bool) -> None:
        """Release the place, which is one of those that take long or not."""


class EmptyAnswers(Protocol):
    """Explains answers without candidates."""

    def note(self, snapshot: Snapshot, question: Question, call: Call) -> None:
        """Explain later why a request got no candidates; returns at once and never fails."""


class Services(Struct, frozen=True):
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
    clock: HttpClock = field(default_factory=HttpClock)
    #: Limits how many answers with the whole fleet are made at a time.
    fleet_answers: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(FLEETS_MAX))
    #: Placements whose claims are being written.
    under_way: UnderWay = field(default_factory=UnderWay)


class Call:
    """One request: what is asked, of which services, and what is answered beside the body.

    A handler takes a call and the path's parameters, and returns the body (`berth.api.answers`).

    Attributes:
        env: the WSGI environment.
        query_string: not decoded.
        query: its parameters, once they are checked, in a namespace whose operations declare them
            all.
        microversion: the minor number of the microversion in force.
        status: of the response, with its reason; the handler is called with the first one that its
            operation declares.
        headers: of the response, by their names in lower case, in the order in which they are sent.
        data: the body of the response; None for none.
        stream: the body if there is no data; `content-length` is its length.
    """

    __slots__ = (
        *("content_type", "data", "env", "headers", "match", "method", "microversion", "query"),
        *("query_string", "services", "status", "stream"),
    )

    def __init__(self, env: WSGIEnvironment, match: Match, services: Services) -> None:
        self.env = env
        self.match = match
        self.services = services
        self.method: str = env["REQUEST_METHOD"]
        self.query_string: str = env.get("QUERY_STRING", "")
        self.query: Mapping[str, str] = _NO_QUERY
        self.content_type: str | None = env.get("CONTENT_TYPE")
        self.microversion = 0
        self.status = "200 OK"
        self.headers: dict[str, str] = {}
        self.data: bytes | None = None
        self.stream: Iterable[bytes] | None = None

    @property
    def path(self) -> str:
        """The decoded path."""
        return self.match.path

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
        header = self.env.get("HTTP_OPENSTACK_API_VERSION")
        minor = USUAL_HEADERS.get(header)
        if minor is None:
            minor = negotiate(header)
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


def budget_of(call: Call, seconds: float = math.inf) -> Budget:
    """The budget of a question: the operator's, or some seconds of work if these are less.

    It ends, at the latest, some time after the request arrived in its queue.
    """
    seconds = seconds_within(call.services.search.time_budget_s, seconds)
    arrived: float = call.env.get(ARRIVED) or monotonic()
    return Budget(
        monotonic,
        seconds=seconds,
        processor=thread_time,
        until=arrived + END_FACTOR * seconds if seconds > 0 else math.inf,
        answer_bytes_max=call.services.search.answer_bytes_max,
        bytes_max=QUESTION_BYTES_MAX,
        gone=call.env.get(CLIENT_GONE),
        asked_at=arrived,
    )


def seconds_within(most: float, seconds: float) -> float:
    """Some seconds, or the operator's budget if that is less; 0 for no bound."""
    if most > 0:
        return seconds if seconds < most else most
    return 0.0 if seconds == math.inf else seconds


def wait_seconds_max(most: float, seconds: float) -> float:
    """Seconds that a question may wait in a queue so that it can still spend its budget."""
    return (END_FACTOR - 1) * (seconds_within(most, seconds) or math.inf)


class Searching:
    """The place of a question among the searches, for a `with` block: it waits for one, as long as
    the budget could still be spent then.

    A search that takes longer than most waits once more, for one of fewer places: so those that
    are answered at once do not wait for those that take seconds.

    PERF bench, flat: every search makes one, so it is its own context manager.

    Raises:
        Refused: 503 if there is no place; in the block too, wherever the budget is looked at.
    """

    __slots__ = ("_before", "_budget", "_call", "_is_held", "_is_long", "_is_over", "_span")

    def __init__(self, call: Call, budget: Budget) -> None:
        self._call = call
        self._budget = budget
        self._is_long = self._is_over = False
        self._before = budget.trees, budget.candidates

    def __enter__(self) -> None:
        budget = self._budget
        self._is_held = self._call.services.searching.enter(budget.spare_seconds)
        if not self._is_held:
            self._refuse()
        budget.after(QUICK_S, self._go_on)
        tracer = self._call.services.database.tracer
        self._span = None if tracer is None else tracer("search")
        if self._span is not None:
            self._span.__enter__()

    def __exit__(self, *exception: object) -> None:
        budget = self._budget
        if self._span is not None:
            self._span.__exit__(None, None, None)
        self._is_over = True
        # Or the two would keep each other, and the answer, until the next collection of garbage.
        del self._budget
        if self._is_held:
            self._call.services.searching.leave(is_long=self._is_long)
        if self._is_long and (not self._is_held or budget.has_worked(LONG_S)):
            self._call.env[WORKED_LONG] = True
        self._call.services.observer.searched(
            trees=budget.trees - self._before[0],
            candidates=budget.candidates - self._before[1],
            ended=budget.ended,
        )

    def _go_on(self) -> None:
        """Wait for one of those that take long."""
        if self._is_long or self._is_over:
            return
        self._is_long = True
        if (admitted := self._call.env.get(PLACE)) is not None:
            # Others may come meanwhile.
            admitted.leave()
        self._is_held = self._call.services.searching.go_on(within=self._budget.spare_seconds())
        if not self._is_held:
            self._refuse()

    def _refuse(self) -> NoReturn:
        # Whoever is refused may be the last, when the memory of the others is free.
        self._call.env[WORKED_LONG] = True
        self._call.services.observer.search_refused()
        raise overloaded()
