# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for changes, and answers with the whole fleet: how long, and how many.

Source: spec/beyond.md 6.1 and 6.2.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import quote

import pytest

from berth.api import watchers
from berth.api.berth_v1 import changes, fleet
from berth.api.environ import CLIENT_GONE, STILL_VALID
from berth.api.watchers import Step, Watchers
from berth.config import Settings, load, read_settings
from berth.edge import app
from berth.edge.app import create_app
from berth.index import Index, Snapshot
from berth.index.block import Block
from berth.store.engine.database import Database
from berth.store.identity import renew_identity
from tests.api.berth_v1.test_changes import FLEET, PATH, ask, events_of, noted, revision
from tests.api.claims import consumer
from tests.api.worlds import done, new_name, provider
from tests.candidates.engine import copy_of
from tests.client import ADMIN, Client, Response, WSGITransport, wsgi_environ
from tests.e2e.serving import PATIENCE, wait_until

pytestmark = pytest.mark.engines("sqlite")


@pytest.fixture
def scratch(prepared: Path) -> Iterator[Database]:
    """A database of its own."""
    with copy_of(prepared) as db:
        yield db


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of a service with noauth2, and defaults for the rest."""
    placement_conf = tmp_path / "placement.conf"
    placement_conf.write_text(
        "[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = sqlite:///none\n"
    )
    return read_settings(load([str(placement_conf)]))


def application(settings: Settings, db: Database) -> Client:
    """A client of an application on a database."""
    return Client.of(create_app(settings, db, Index(db)))


def refuses(answer: Response, status: int, words: str, *, code: str) -> None:
    """An answer is a refusal that says something."""
    assert (answer.status, answer.code) == (status, code)
    assert words in answer.detail


class Clock:
    """A clock that only moves when the test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """The time in seconds."""
        return self.now


@contextmanager
def opened(client: Client, after: str, **variables: Any) -> Iterator[Iterator[bytes]]:
    """The pieces of a stream of events."""
    assert isinstance(client.transport, WSGITransport)
    headers = {**ADMIN, "Accept": "text/event-stream"}.items()
    path = f"{PATH}?after={quote(after)}"
    environ = wsgi_environ("GET", path, [*headers], None, script_name="")
    body: Any = client.transport.app({**environ, **variables}, lambda *_: noted)
    try:
        yield iter(body)
    finally:
        body.close()


def polled(client: Client, after: str, **variables: Any) -> Any:
    """The last line of the answer to a poll of a minute."""
    assert isinstance(client.transport, WSGITransport)
    path = f"{PATH}?after={quote(after)}&wait=60"
    environ = wsgi_environ("GET", path, [*ADMIN.items()], None, script_name="")
    body = b"".join(client.transport.app({**environ, **variables}, lambda *_: noted))
    return json.loads(body.splitlines()[-1])


class Alone(Watchers):
    """Without a thread: whoever waits moves the clock on, and looks."""

    def _sleep(self, step: Step, seconds: float) -> None:
        """Until it would wake by itself."""
        assert isinstance(self.clock, Clock)
        self.clock.now += seconds
        self.join()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of applications whose requests wait alone."""
    clock = Clock()
    monkeypatch.setattr(app, "Watchers", functools.partial(Alone, clock=clock))
    return clock


def test_a_quiet_stream_has_a_comment_every_15_seconds_and_ends_after_ten_minutes(
    settings: Settings, scratch: Database, clock: Clock
) -> None:
    """So that no proxy closes it, and no client keeps a worker's thread for ever."""
    client = application(settings, scratch)
    begun = clock.now
    with opened(client, revision(client)) as pieces:
        assert next(pieces).startswith(b"event: revision\n")
        comments = []
        for piece in pieces:
            assert piece.startswith(b": ") and piece.endswith(b"\n\n")
            comments.append(clock.now - begun)
    assert comments == [15.0 * number for number in range(1, 41)]


def test_a_stream_is_as_quiet_after_a_change_as_before(
    settings: Settings, scratch: Database, clock: Clock
) -> None:
    """Also if the server finds no connection that has sent nothing since the request came: this
    one has sent its events."""
    api = create_app(settings, scratch, Index(scratch))
    client = Client.of(api)
    host = provider(client, {"VCPU": 8})
    with opened(client, revision(client), **{CLIENT_GONE: lambda: True}) as pieces:
        assert next(pieces).startswith(b"event: revision\n")
        consumer(client, {host: {"VCPU": 1}})
        assert next(pieces).startswith(b"event: usage\n")
        for _ in range(3):
            before = clock.now
            assert next(pieces).startswith(b": ")
            assert clock.now - before == 15.0


def test_a_stream_with_a_change_at_every_look_ends_too(
    settings: Settings, scratch: Database, clock: Clock
) -> None:
    """After the same ten minutes, with the revision to continue from as its last id."""
    client = application(settings, scratch)
    host = provider(client, {"VCPU": 10_000})
    begun = clock.now
    with opened(client, revision(client)) as pieces:
        last = next(pieces)
        while clock.now - begun < 540:
            consumer(client, {host: {"VCPU": 1}})
            clock.now += 60
            last = next(pieces)
        consumer(client, {host: {"VCPU": 1}})
        clock.now += 60
        assert list(pieces) == []
    (id_,) = re.findall(rb"\nid: (\S+)\n", last)
    events, _ = events_of(ask(client, id_.decode()))
    assert [(event["change"], event["commits"]) for event in events] == [("usage", 1)]


@pytest.mark.parametrize("writes", [False, True])
def test_a_stream_ends_soon_after_its_token(
    settings: Settings, scratch: Database, clock: Clock, writes: bool
) -> None:
    """Within ten seconds, however much changes; and nothing is told after that."""
    client = application(settings, scratch)
    host = provider(client, {"VCPU": 10_000})
    tokens = {"alice"}
    is_valid = {STILL_VALID: lambda: "alice" in tokens}
    with opened(client, revision(client), **is_valid) as pieces:
        next(pieces)
        assert next(pieces).startswith(b": ")
        tokens.clear()
        ended = clock.now
        for _ in pieces:
            assert writes
            consumer(client, {host: {"VCPU": 1}})
            clock.now += 1
        assert clock.now - ended <= 10
    assert clock.now > ended


def test_a_poll_ends_soon_after_its_token(
    settings: Settings, scratch: Database, clock: Clock
) -> None:
    """With nothing new: the next one gets 401."""
    client = application(settings, scratch)
    seen, begun = revision(client), clock.now
    answered = polled(client, seen, **{STILL_VALID: lambda: False})
    assert answered == {"revision": seen, "events": 0}
    assert clock.now - begun <= 10


def test_who_loses_the_right_to_read_is_told_no_more(
    settings: Settings, scratch: Database, clock: Clock, tmp_path: Path
) -> None:
    """The policy is asked again while a client waits; a reconnection gets 403."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("{}")
    settings.conf.set_override("policy_file", str(policy), "oslo_policy")
    client = application(settings, scratch)
    seen = revision(client)
    with opened(client, seen) as pieces:
        next(pieces)
        policy.write_text('"berth:fleet": "!"')
        wait_until(lambda: ask(client, seen).status == 403, "the new policy")
        provider(client, {"VCPU": 8})
        clock.now += 10
        assert list(pieces) == []


def test_a_stream_ends_when_its_database_is_replaced(
    settings: Settings, scratch: Database, clock: Clock
) -> None:
    """Its reader comes again, and is told that its revision is of another database."""
    client = application(settings, scratch)
    seen = revision(client)
    with opened(client, seen) as pieces:
        next(pieces)
        renew_identity(scratch)
        assert list(pieces) == []
    refuses(ask(client, seen), 400, seen, code="berth.revision.foreign")


def test_changes_are_read_once_for_all_streams(
    settings: Settings, scratch: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are; each gets every change, and none twice."""
    client = application(settings, scratch)
    host = provider(client, {"VCPU": 10_000})
    seen = revision(client)
    read: list[str] = []
    events_since = changes.events_since

    def counted(db: Database, snapshot: Snapshot, after: str) -> list[dict[str, Any]]:
        read.append(after)
        return events_since(db, snapshot, after)

    with ExitStack() as stack, ThreadPoolExecutor(16) as threads:
        streams = [stack.enter_context(opened(client, seen)) for _ in range(16)]
        for pieces in streams:
            assert next(pieces).startswith(b"event: revision\n")
        monkeypatch.setattr(changes, "events_since", counted)
        for _ in range(3):
            pending = [threads.submit(next, pieces) for pieces in streams]
            consumer(client, {host: {"VCPU": 1}})
            told = {pending_.result(PATIENCE) for pending_ in pending}
            assert [piece.count(b'"commits":1') for piece in told] == [1]
    assert len(read) == 3


def test_a_client_that_reads_too_slowly_comes_again(
    settings: Settings, scratch: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others have long been told is not kept for it: its stream ends, and the next one begins
    after its last revision."""
    monkeypatch.setattr(watchers, "_STEPS_MAX", 2)
    client = application(settings, scratch)
    host = provider(client, {"VCPU": 10_000})
    seen = revision(client)
    with opened(client, seen) as slow, opened(client, seen) as fast:
        next(slow)
        next(fast)
        for _ in range(3):
            consumer(client, {host: {"VCPU": 1}})
            assert next(fast).startswith(b"event: usage\n")
        assert list(slow) == []
    with opened(client, seen) as pieces:
        assert b'"commits":3' in next(pieces)


class _Staged(Watchers):
    """Tells when a request begins to wait."""

    waits: Event

    def wait(self, step: Step, until: float, goes_on: Callable[[], bool]) -> Step | None:
        """As it is, and noted."""
        self.waits.set()
        return super().wait(step, until, goes_on)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Set when a request begins to wait."""
    event = Event()
    monkeypatch.setattr(_Staged, "waits", event, raising=False)
    monkeypatch.setattr(app, "Watchers", _Staged)
    return event


def test_whoever_waits_takes_no_place_among_the_reads(
    settings: Settings, scratch: Database, waits: Event
) -> None:
    """With place for one read, others are answered while a poll and a stream wait."""
    admission = replace(settings.admission, reads_running_max=1, requests_waiting_max=0)
    client = application(replace(settings, admission=admission), scratch)
    host = provider(client, {"VCPU": 8})
    seen = revision(client)
    with ThreadPoolExecutor() as threads:
        poll = threads.submit(ask, client, seen, 60)
        assert waits.wait(PATIENCE)
        waits.clear()
        assert revision(client) == seen
        with opened(client, seen) as pieces:
            assert next(pieces)
            stream = threads.submit(next, pieces)
            assert waits.wait(PATIENCE)
            assert revision(client) == seen
            consumer(client, {host: {"VCPU": 1}})
            assert stream.result(PATIENCE).startswith(b"event: usage\n")
            events, _ = events_of(poll.result(PATIENCE))
    assert [event["change"] for event in events] == ["usage"]


def test_a_change_wakes_more_than_may_wait_to_read(
    settings: Settings, scratch: Database, waits: Event
) -> None:
    """All of them are told: they come back to the queue, one after another."""
    admission = replace(settings.admission, reads_running_max=1, requests_waiting_max=0)
    client = application(replace(settings, admission=admission), scratch)
    host = provider(client, {"VCPU": 8})
    seen = revision(client)
    with ThreadPoolExecutor(8) as threads:
        polls = []
        for _ in range(8):
            polls.append(threads.submit(ask, client, seen, 60))
            assert waits.wait(PATIENCE)
            waits.clear()
        consumer(client, {host: {"VCPU": 1}})
        told = [events_of(poll.result(PATIENCE))[0] for poll in polls]
    assert [[event["change"] for event in events] for events in told] == [["usage"]] * 8


def test_a_poll_of_a_client_that_has_left_ends(
    settings: Settings, scratch: Database, waits: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And frees its place."""
    monkeypatch.setattr(watchers, "WAKE_S", 0.01)
    client = application(replace(settings, watchers_max=1), scratch)
    seen = revision(client)
    gone = Event()
    with ThreadPoolExecutor() as threads:
        answered = threads.submit(polled, client, seen, **{CLIENT_GONE: gone.is_set})
        assert waits.wait(PATIENCE)
        assert ask(client, seen, wait=1).status == 503
        gone.set()
        assert answered.result(PATIENCE)["events"] == 0
    assert events_of(ask(client, seen, wait=1)) == ([], seen)


def test_an_edit_of_a_tree_is_one_commit_of_each_provider(
    settings: Settings, scratch: Database
) -> None:
    """Those that it leaves as they are have no event."""
    client = application(settings, scratch)
    name = new_name()
    lines = [{"name": name}, *({"name": f"{name}_{n}", "parent": name} for n in range(3))]
    path = f"/berth/v1/trees/{name}"
    seen = revision(client)
    done(client.put(path, json={"providers": lines}), 201)
    events, now = events_of(ask(client, seen))
    told = [(each["change"], each.get("name"), each["commits"]) for each in events]
    assert told == [("provider", line["name"], 1) for line in lines]
    changed = [
        {"name": f"{name}_0", "traits": ["HW_NUMA_ROOT"], "inventories": {"VCPU": {"total": 1}}},
        {"name": f"{name}_1", "parent": f"{name}_0"},
        {"name": name},
    ]
    done(client.put(path, json={"providers": changed, "remove_missing": True}), 200)
    events, _ = events_of(ask(client, now))
    told = [(each["change"], each.get("name"), each["commits"]) for each in events]
    assert told == [
        ("gone", None, 1),
        ("provider", f"{name}_0", 1),
        ("provider", f"{name}_1", 1),
    ]


class _Ticking:
    """Instead of `time`: every look at the clock is some seconds later."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._now = seconds, 0.0

    def monotonic(self) -> float:
        """The time in seconds."""
        self._now += self._seconds
        return self._now


@pytest.mark.parametrize("query", ["", "?include=allocations"])
def test_a_fleet_that_takes_too_long_is_given_up(
    settings: Settings, scratch: Database, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """503 after fleet_seconds_max, between two parts of it; nothing of it is sent, and its place
    is free again."""
    client = application(replace(settings, fleet_seconds_max=60), scratch)
    for _ in range(4):
        provider(client, {"VCPU": 8})
    monkeypatch.setattr(fleet, "_PART", 1)
    monkeypatch.setattr(fleet, "time", _Ticking(seconds=25))
    for _ in range(3):
        refused = client.get(f"{FLEET}{query}")
        refuses(refused, 503, "[berth]fleet_seconds_max", code="placement.overloaded")
        assert refused.headers["retry-after"] == "10"
    monkeypatch.setattr(fleet, "time", _Ticking(seconds=10))
    assert len(done(client.get(f"{FLEET}{query}"), 200).text.splitlines()) == 6


def test_two_fleets_are_read_at_a_time(
    settings: Settings, scratch: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third is refused at once, and a client that has the fleet already is told so."""
    client = application(settings, scratch)
    provider(client, {"VCPU": 8})
    tag = client.get(FLEET).headers["etag"]
    begun, go_on = [Event(), Event()], Event()
    render, pending = fleet._plain, iter(begun)

    def staged(snapshot: Snapshot, parts: Sequence[str]) -> Callable[[Block, range], list[Any]]:
        lines = render(snapshot, parts)

        def blocked(block: Block, rows: range) -> list[Any]:
            next(pending).set()
            assert go_on.wait(PATIENCE)
            return lines(block, rows)

        return blocked

    with monkeypatch.context() as patched, ThreadPoolExecutor() as threads:
        patched.setattr(fleet, "_plain", staged)
        both = [threads.submit(client.get, FLEET) for _ in begun]
        assert all(event.wait(PATIENCE) for event in begun)
        refused = client.get(FLEET)
        refuses(refused, 503, "", code="placement.overloaded")
        assert refused.headers["retry-after"]
        assert client.get(FLEET, headers={"If-None-Match": tag}).status == 304
        go_on.set()
        assert [answer.result(PATIENCE).status for answer in both] == [200, 200]
    done(client.get(FLEET), 200)
