# SPDX-License-Identifier: Apache-2.0
"""Admission control: how many requests run and wait, and how the others are refused."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest

from berth import config
from berth.api.environ import WORKED_LONG
from berth.config import AdmissionSettings, ConfigurationError
from berth.edge import admission
from berth.edge.admission import REFUSAL_S, Admission, Line, Observer, Place, Searches
from berth.edge.layers import front
from tests.client import Client, Response
from tests.e2e.serving import PATIENCE, wait_until
from tests.routes import SEARCHES

#: Longer than any test lasts.
FOR_EVER = 2 * PATIENCE


@dataclass
class Service:
    """An application behind admission control; its requests run until the test ends them."""

    settings: AdmissionSettings
    #: The paths of the requests that run, in the order in which they began.
    begun: list[str] = field(default_factory=list)
    answers: dict[str, Response] = field(default_factory=dict)
    #: How long each refusal would have taken.
    pauses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._may_end = threading.Semaphore(0)
        self.client = Client.of(
            front(partial(Admission(self.settings, pause=self.pauses.append).run, self._answer))
        )
        self._threads: list[threading.Thread] = []

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        self.begun.append(path)
        if path != "/":
            assert self._may_end.acquire(timeout=PATIENCE)
        if path == "/fault":
            raise RuntimeError("this one cannot be answered")
        start_response("200 OK", [("content-length", "0")])
        return [b""]

    def ask(self, path: str, method: str = "GET") -> None:
        """Send a request without waiting for the response."""

        def run() -> None:
            self.answers[path] = self.client.request(method, path)

        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()

    def end_one(self) -> None:
        """End one of the running requests."""
        self._may_end.release()

    def end_all(self) -> None:
        """End all requests, including those that wait."""
        for _ in self._threads:
            self._may_end.release()
        for thread in self._threads:
            thread.join(PATIENCE)


def no_time(seconds: float) -> None:
    """Return at once instead of sleeping."""


@contextmanager
def service(
    *,
    reads: int = 1,
    writes: int = 1,
    searches: int = 1,
    waiting: int = 0,
    wait: float = FOR_EVER,
) -> Iterator[Service]:
    """A service with these limits."""
    made = Service(AdmissionSettings(reads, writes, searches, waiting, wait))
    try:
        yield made
    finally:
        made.end_all()


@pytest.mark.parametrize(
    ("version", "code"), [("1.23", "placement.overloaded"), ("1.22", None), ("7.7", None)]
)
def test_one_too_many_is_told_to_come_back(version: str, code: str | None) -> None:
    """503 with Retry-After, and a code to those who know codes; the application is not called. An
    unsupported version is not checked here."""
    with service() as busy:
        busy.ask("/first")
        wait_until(lambda: bool(busy.begun), "the first request to run")
        answer = busy.client.get("/second", version=version)
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.headers["x-openstack-request-id"] == answer.error["request_id"]
        assert answer.error.get("code") == code
        assert busy.begun == ["/first"]
    assert busy.answers["/first"].status == 200


def test_who_asks_again_at_once_does_not_take_the_time_of_others() -> None:
    """The refusal is delayed on purpose, unless the request has waited already."""
    with service() as busy:
        busy.ask("/first")
        wait_until(lambda: bool(busy.begun), "the first request to run")
        for _ in range(3):
            assert busy.client.get("/again").status == 503
        assert busy.pauses == [REFUSAL_S] * 3
    with service(waiting=1, wait=0.01) as busy:
        busy.ask("/first")
        wait_until(lambda: bool(busy.begun), "the first request to run")
        assert busy.client.get("/patient").status == 503
        assert busy.pauses == []


def test_the_observer_sees_who_gives_up_leave_the_line() -> None:
    """Otherwise the metrics would show a waiting request until the next one comes."""
    seen: list[tuple[int, int]] = []

    class Seen(Observer):
        def changed(self, running: int, waiting: int) -> None:
            seen.append((running, waiting))

    line = Line(running_max=1, waiting_max=1, wait_seconds_max=0.01, pause=no_time, observer=Seen())
    assert line.enter()
    assert not line.enter()
    assert seen == [(1, 0), (1, 1), (1, 0)]


def has_begun(busy: Service, count: int) -> bool:
    """Whether this many requests have begun."""
    return len(busy.begun) == count


def has_waiting(line: Line, count: int) -> bool:
    """Whether this many wait in a queue."""
    return line.waiting == count


def test_who_waits_is_served_in_turn() -> None:
    """First come, first served, as many at a time as may run."""
    line = Line(running_max=2, waiting_max=3, wait_seconds_max=FOR_EVER, pause=no_time)
    running: list[int] = []

    def enter(number: int) -> None:
        if line.enter():
            running.append(number)

    assert line.enter() and line.enter()
    threads = [threading.Thread(target=enter, args=(number,)) for number in range(3)]
    for count, thread in enumerate(threads, start=1):
        thread.start()
        wait_until(partial(has_waiting, line, count), "the next one to wait")
    assert not line.enter(), "the line is full"
    for thread in threads:
        line.leave()
        thread.join(PATIENCE)
        assert line.running == 2
    assert running == [0, 1, 2]
    line.leave()
    line.leave()
    assert (line.running, line.waiting) == (0, 0)


def test_nobody_waits_longer_than_agreed() -> None:
    """A request whose turn does not come in time is refused, and the queue continues without it."""
    with service(waiting=1, wait=0.01) as busy:
        busy.ask("/first")
        wait_until(lambda: bool(busy.begun), "the first request to run")
        assert busy.client.get("/impatient").status == 503
        assert busy.client.get("/another").status == 503
        busy.end_one()
        wait_until(lambda: "/first" in busy.answers, "the first request to end")
        busy.ask("/later")
        wait_until(lambda: busy.begun == ["/first", "/later"], "the place to be free again")


#: Requests that run, and one more: whether it is let in beside them. Of reads two may run here, of
#: writes three.
ROOM: Final = [
    (["GET /a", "GET /a"], "GET /b", False),
    (["GET /a", "GET /a"], "HEAD /b", False),
    # Load balancers request the version document, and must not take a busy service out of use.
    (["GET /a", "GET /a"], "GET /", True),
    # Writes may wait seconds for a locked database.
    (["PUT /a"] * 3, "GET /b", True),
    *((["PUT /a"] * 3, f"{method} /b", False) for method in ("POST", "DELETE", "PUT", "PONY")),
    (["GET /berth/v1/aggregates"] * 2, "GET /berth/v1/aggregates", False),
    (["PUT /berth/v1/aggregates/x"] * 3, "PUT /berth/v1/aggregates/x", False),
    # The route decides: a POST that changes nothing is no write. As many searches as reads are let
    # in: until they may search, they authenticate and refresh the index.
    *(
        (
            [*["GET /a"] * 2, *["PUT /b"] * 3, *[f"{method} {path}"] * count],
            f"{method} {path}",
            is_in,
        )
        for method, path in sorted(SEARCHES)
        for count, is_in in ((1, True), (2, False))
    ),
    # A placement that writes nothing waits with the searches.
    *(
        (["PUT /a"] * 3, f"POST /berth/v1/place{query}", is_search)
        for query, is_search in (
            ("", False),
            ("?dry_run=true", True),
            ("?dry_run=false", False),
            ("?dry_run=true;x=1", True),
            ("?dry%5Frun=%74rue", True),
            ("?dry_run=%ff", False),
        )
    ),
]


@pytest.mark.parametrize(("running", "asked", "is_let_in"), ROOM)
def test_each_line_has_its_own_bound(running: list[str], asked: str, is_let_in: bool) -> None:
    """Reads, writes and searches do not keep each other out."""
    with service(reads=2, writes=3) as busy:
        for count, request in enumerate(running, start=1):
            method, path = request.split()
            busy.ask(path, method)
            wait_until(partial(has_begun, busy, count), "the next request to be let in")
        method, path = asked.split()
        if is_let_in:
            busy.ask(path, method)
            wait_until(partial(has_begun, busy, len(running) + 1), "the last one to be let in")
        else:
            assert busy.client.request(method, path).status == 503


def test_a_full_line_of_searches_keeps_no_reader_out() -> None:
    """A search may take seconds: it has a queue of its own."""
    with service(reads=1, waiting=1) as busy:
        busy.ask("/allocation_candidates")
        wait_until(lambda: bool(busy.begun), "the search to run")
        busy.ask("/allocation_candidates", "HEAD")
        busy.ask("/traits")
        wait_until(lambda: len(busy.begun) == 2, "the reader to run")
        assert busy.begun == ["/allocation_candidates", "/traits"]


def test_a_fault_gives_its_place_back() -> None:
    """Whatever its result, the next request can run."""
    with service() as busy:
        busy.end_one()
        with pytest.raises(RuntimeError):
            busy.client.get("/fault")
        busy.end_one()
        assert busy.client.get("/next").status == 200


class LastMoment(Line):
    """A queue in which a request ends just after the next one in line has waited too long."""

    def _gives_up(self, turn: threading.Lock) -> bool:
        self.leave()
        return super()._gives_up(turn)


def test_a_place_is_given_up_once() -> None:
    """Who waits for changes gives it up at the beginning, and has none to give up at the end."""
    line = Line(running_max=1, waiting_max=0, wait_seconds_max=0, pause=no_time)
    assert line.enter()
    place = Place(line)
    place.leave()
    place.leave()
    assert line.enter()
    assert not line.enter()


@pytest.mark.parametrize("is_long", [False, True])
def test_memory_is_given_back_after_a_long_search(is_long: bool) -> None:
    """And after nothing else, because it takes its time."""
    given_back: list[bool] = []

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if is_long:
            environ[WORKED_LONG] = True
        start_response("200 OK", [("content-length", "0")])
        return [b""]

    admission = Admission(
        AdmissionSettings(1, 1, 1, 0, 0), give_back=lambda: given_back.append(True)
    )
    client = Client.of(front(partial(admission.run, application)))
    assert client.get("/allocation_candidates").status == 200
    assert given_back == [True] * is_long


def test_a_turn_that_comes_at_the_last_moment_is_not_lost() -> None:
    """The place was given to it while it gave up waiting: it uses it."""
    line = LastMoment(running_max=1, waiting_max=1, wait_seconds_max=0.001, pause=no_time)
    assert line.enter()
    assert line.enter()
    assert (line.running, line.waiting) == (1, 0)
    line.leave()
    assert line.running == 0


def test_who_fails_while_waiting_takes_no_place_along() -> None:
    """An exception during the wait would leave a place that no request uses."""
    line = Line(running_max=1, waiting_max=1, wait_seconds_max=float("inf"), pause=no_time)
    assert line.enter()
    with pytest.raises(OverflowError):
        line.enter()
    assert line.waiting == 0
    line.leave()
    assert line.running == 0


class Interrupted(Exception):
    """Raised where a signal arrives."""


@contextmanager
def interrupted_in(line: Line, then: Callable[[], None]) -> Iterator[None]:
    """Interrupt this thread when it waits in a queue, after another action, as a stopping server or
    a library with timeouts does."""

    def interrupt(*_: object) -> None:
        then()
        raise Interrupted

    def when_it_waits() -> None:
        wait_until(lambda: line.waiting == 1, "somebody to wait")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    other = threading.Thread(target=when_it_waits)
    other.start()
    try:
        with pytest.raises(Interrupted):
            yield
    finally:
        other.join(PATIENCE)
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("has_turn", [False, True])
def test_who_is_interrupted_while_waiting_keeps_no_place_in_the_line(has_turn: bool) -> None:
    """The next request gets its place in the queue, and no free place is given to it; just when its
    turn comes, it already had the place, and hands it on."""
    line = Line(running_max=1, waiting_max=1, wait_seconds_max=FOR_EVER, pause=no_time)
    assert line.enter()
    with interrupted_in(line, then=line.leave if has_turn else lambda: None):
        line.enter()
    assert (line.running, line.waiting) == (int(not has_turn), 0)
    if not has_turn:
        line.leave()
    assert line.running == 0
    assert line.enter()


@pytest.mark.parametrize("words", ["inf", "-1"])
def test_a_wait_that_is_no_wait_is_refused_at_the_start(words: str, tmp_path: Path) -> None:
    """Not when the first request would have to wait."""
    path = tmp_path / "placement.conf"
    path.write_text(
        "[placement_database]\nconnection = sqlite:////srv/berth.db\n"
        f"[berth]\nwait_seconds_max = {words}\n"
    )
    with pytest.raises(ConfigurationError):
        config.read_settings(config.load([str(path)]))


def test_a_search_that_would_wait_for_too_long_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Long searches have taken about eight seconds: one more would wait for four. One that may
    wait for longer gets into the queue."""
    entered: list[float] = []

    def enter(line: Line, within: Callable[[], float]) -> bool:
        entered.append(within())
        return Line.enter(line, lambda: 0)

    monkeypatch.setattr(admission, "Line", type("Noting", (Line,), {"enter": enter}))
    now = 0.0
    searches = Searches(AdmissionSettings(1, 1, 1, 1, FOR_EVER), clock=lambda: now)
    for _ in range(20):
        assert searches.enter(lambda: 0)
        assert searches.go_on(within=0)
        now += 8
        searches.leave(is_long=True)
    assert searches.enter(lambda: 0)
    assert searches.go_on(within=0)
    entered.clear()
    assert searches.enter(lambda: 0)
    assert not searches.go_on(within=3)
    assert entered == [0]
    assert searches.enter(lambda: 0)
    assert not searches.go_on(within=5)
    assert entered == [0, 0, 5]


def test_a_search_that_is_late_goes_on_where_nobody_else_does() -> None:
    """The processor or the database kept it; no request has come too many."""
    searches = Searches(AdmissionSettings(1, 1, 1, 1, FOR_EVER))
    assert searches.enter(lambda: -1)
    assert searches.go_on(within=-1)
    assert searches.enter(lambda: 0)
    assert not searches.go_on(within=-1)


def test_a_search_that_takes_long_leaves_its_place_to_one_that_begins() -> None:
    """It has one of as many other places then; one that finds no such place has none at all."""
    told: list[tuple[int, int]] = []

    class OfLong(Observer):
        def changed(self, running: int, waiting: int) -> None:
            told.append((running, waiting))

    searches = Searches(AdmissionSettings(1, 1, 1, 1, 0.0), of_long=OfLong())
    assert searches.enter(lambda: 0)
    assert not searches.enter(lambda: 0)
    assert told == []
    assert searches.go_on(within=0)
    assert told == [(1, 0)]
    assert searches.enter(lambda: 0)
    assert not searches.go_on(within=0)
    searches.leave(is_long=True)
    assert searches.enter(lambda: 0)
    assert searches.go_on(within=0)
