# SPDX-License-Identifier: Apache-2.0
"""`GET /berth/v1/changes`: polls, long polls and server-sent events; how long and how many wait,
and how many read the whole fleet. Source: spec/beyond.md 6.1 and 6.2.
"""

from __future__ import annotations

import functools
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import quote

import pytest

from berth.api.berth_v1 import fleet
from berth.api.environ import STILL_VALID
from berth.api.watchers import Step
from berth.config import Settings, load, read_settings
from berth.edge import app, watchers
from berth.edge.app import create_app
from berth.edge.watchers import Watchers
from berth.index import Index, Snapshot
from berth.index.block import Block
from berth.model.ids import AggregateUUID
from berth.store.engine import journal
from berth.store.engine.database import Database
from berth.store.identity import renew_identity
from berth.store.labels import replace_labels
from tests.api.answers import assert_refused
from tests.api.berth_v1.test_fleet import lines_of
from tests.api.claims import consumer
from tests.api.configured import serve
from tests.api.worlds import done, new_uuid, provider
from tests.candidates.engine import copy_of
from tests.client import ADMIN, Client, Response, WSGITransport, wsgi_environ
from tests.e2e.serving import PATIENCE, wait_until
from tests.fresh import opened_at

PATH = "/berth/v1/changes"
FLEET = "/berth/v1/fleet"


def revision(api: Client) -> str:
    """That of the present fleet."""
    header, _ = lines_of(api.get(f"{FLEET}?include="))
    return str(header["revision"])


def ask(api: Client, after: str, wait: int = 0, **options: Any) -> Response:
    """The answer to a poll."""
    return api.get(f"{PATH}?after={quote(after)}&wait={wait}", **options)


def events_of(answer: Response) -> tuple[list[dict[str, Any]], str]:
    """The events of a poll, and the revision to continue from."""
    done(answer, 200)
    assert answer.headers["content-type"] == "application/jsonl"
    *events, closing = map(json.loads, answer.text.splitlines())
    assert closing["events"] == len(events)
    return events, closing["revision"]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service of this module; histories on each engine are in test_following.py."""
    return serve(tmp_path_factory.mktemp("changes"))


def test_many_events_are_sent_in_several_pieces(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is there once, and the number of all ends them."""
    monkeypatch.setattr("berth.api.watchers._PART", 2)
    seen = revision(client)
    made = {provider(client) for _ in range(5)}
    events, _ = events_of(ask(client, seen))
    assert len(events) == 5 and {each["uuid"] for each in events} == made


def test_each_provider_is_told_once_as_it_is_now(api: Client) -> None:
    """With the number of commits; of claims, usage and generation alone."""
    host = provider(api, {"VCPU": 8})
    seen = revision(api)
    for _ in range(3):
        consumer(api, {host: {"VCPU": 1}})
    generation = api.get(f"/resource_providers/{host}").json["generation"]
    usage = {
        "change": "usage",
        "uuid": host,
        "commits": 3,
        "generation": generation,
        "usages": {"VCPU": 3},
    }
    events, now = events_of(ask(api, seen))
    assert [each for each in events if each.get("uuid") == host] == [usage]
    assert events_of(ask(api, now)) == ([], now)


def test_a_tree_is_told_from_its_root_on(api: Client) -> None:
    """So that whoever keeps a copy knows each parent."""
    seen = revision(api)
    root = provider(api, {"VCPU": 8})
    tree = [root]
    for _ in range(3):
        tree.append(provider(api, {"VGPU": 1}, parent=tree[-1]))
    events, _ = events_of(ask(api, seen))
    assert [each["uuid"] for each in events if each.get("root") == root] == tree


def test_a_revision_must_be_of_this_database(api: Client) -> None:
    """Others are refused; so is what is none (test_refused.py)."""
    assert_refused(ask(api, "b1.AAAAAAAAAAAB"), 400, code="berth.revision.foreign")


def test_a_revision_of_the_time_after_a_restored_backup(
    client: Client, settings: Settings, tmp_path: Path
) -> None:
    """It is ahead of the clock, so the fleet must be read again; once the operator has given the
    database a new identity, even one of before is of another database."""
    provider(client, {"VCPU": 8})
    before = revision(client)
    with closing(sqlite3.connect(tmp_path / "berth.db")) as connection:
        connection.execute(f"VACUUM INTO '{tmp_path}/backup.db'")
    provider(client, {"VCPU": 8})
    later = revision(client)
    backup = opened_at(f"sqlite:///{tmp_path}/backup.db")
    try:
        restored = Client.of(create_app(settings, backup, Index(backup)))
        assert events_of(ask(restored, before)) == ([], before)
        ahead = ask(restored, later)
        assert (ahead.status, ahead.code) == (410, "berth.revision.gone")
        renew_identity(backup)
        for known in (before, later):
            foreign = ask(restored, known)
            assert (foreign.status, foreign.code) == (400, "berth.revision.foreign")
        assert revision(restored) != before
    finally:
        backup.dispose()


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


def test_names_are_a_change(settings: Settings, scratch: Database) -> None:
    """Labels, flavors, traits and resource classes."""
    db, client = scratch, application(settings, scratch)
    seen = revision(client)
    replace_labels(db, AggregateUUID(new_uuid()), {"zone": "z1"})
    done(client.put("/traits/CUSTOM_WATCHED"), 201)
    events, _ = events_of(ask(client, seen))
    assert events == [{"change": "names", "commits": 2}]


def test_what_the_journal_has_forgotten_is_gone(settings: Settings, scratch: Database) -> None:
    """The client reads the fleet again."""
    db, client = scratch, application(settings, scratch)
    seen = revision(client)
    provider(client, {"VCPU": 1})
    later = datetime.now(UTC).replace(tzinfo=None) + timedelta(minutes=1)
    db.write_unnoted(lambda tx: journal.trim(tx, later))
    forgotten = ask(client, seen)
    assert (forgotten.status, forgotten.code) == (410, "berth.revision.gone")
    now = revision(client)
    assert events_of(ask(client, now)) == ([], now)


def test_events_are_sent_as_they_come(settings: Settings, scratch: Database) -> None:
    """Reconnecting with the last id misses nothing and tells nothing twice: it counts more
    than `after`, which the reader cannot change."""
    client = application(settings, scratch)
    begun = revision(client)
    host = provider(client, {"VCPU": 8})
    with streaming(client, begun) as events:
        kind, told = next(events)
        assert (kind, told["uuid"]) == ("provider", host)
        kind, closing = next(events)
        assert (kind, closing["events"]) == ("revision", 1)
        consumer(client, {host: {"VCPU": 1}})
        kind, told = next(events)
        assert (kind, told["usages"]) == ("usage", {"VCPU": 1})
        _, last = next(events)
    consumer(client, {host: {"VCPU": 2}})
    with streaming(client, begun, last_id=last["revision"]) as events:
        assert next(events)[1]["commits"] == 1
    with streaming(client, begun) as events:
        assert next(events)[1]["commits"] == 4


def test_only_so_many_wait(settings: Settings, scratch: Database) -> None:
    """Others are refused, unless they do not wait; whoever leaves makes room."""
    settings = replace(settings, watchers_max=1)
    client = Client.of(create_app(settings, scratch, Index(scratch)))
    seen = revision(client)
    with streaming(client, seen) as events:
        next(events)
        refused = ask(client, seen, wait=1)
        assert (refused.status, refused.code) == (503, "placement.overloaded")
        assert refused.headers["retry-after"]
        assert events_of(ask(client, seen)) == ([], seen)
    assert events_of(ask(client, seen, wait=1)) == ([], seen)


def test_nobody_waits_when_the_service_stops(settings: Settings, scratch: Database) -> None:
    """Polls are answered and streams end at once."""
    stopping = Event()
    client = Client.of(create_app(settings, scratch, Index(scratch), stopping=stopping))
    seen = revision(client)
    with streaming(client, seen) as events, ThreadPoolExecutor() as threads:
        next(events)
        poll = threads.submit(ask, client, seen, 60)
        stopping.set()
        assert events_of(poll.result(timeout=30)) == ([], seen)
        assert list(events) == []


@contextmanager
def streaming(
    client: Client, after: str, **options: Any
) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
    """The kinds and the data of server-sent events, without comments."""
    with opened(client, after, **options) as pieces:
        yield read_events(pieces)


def read_events(pieces: Iterator[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Parse what a server sends."""
    for piece in pieces:
        for block in piece.decode().removesuffix("\n\n").split("\n\n"):
            if block.startswith(":"):
                continue
            fields = dict(line.split(": ", 1) for line in block.split("\n"))
            assert fields["event"] != "revision" or fields["id"] in fields["data"]
            yield fields["event"], json.loads(fields["data"])


class Clock:
    """A clock that only moves when the test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """The time in seconds."""
        return self.now


def noted(_piece: bytes) -> None:
    """Take what is written instead of returned: nothing."""


@contextmanager
def opened(
    client: Client, after: str, last_id: str | None = None, **variables: Any
) -> Iterator[Iterator[bytes]]:
    """The pieces of a stream of events."""
    assert isinstance(client.transport, WSGITransport)
    headers = {**ADMIN, "Accept": "text/event-stream"}
    if last_id is not None:
        headers["Last-Event-ID"] = last_id
    path = f"{PATH}?after={quote(after)}"
    environ = wsgi_environ("GET", path, [*headers.items()], None, script_name="")
    body: Any = client.transport.app({**environ, **variables}, lambda *_: noted)
    try:
        yield iter(body)
    finally:
        body.close()


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


@pytest.mark.parametrize("writes", [False, True])
def test_a_stream_ends_soon_after_its_token(
    settings: Settings, scratch: Database, clock: Clock, writes: bool
) -> None:
    """Within ten seconds, however much changes; and nothing is told after that."""
    client = application(settings, scratch)
    host = provider(client, {"VCPU": 10_000})
    tokens = {"alice"}
    is_valid: dict[str, Any] = {STILL_VALID: lambda: "alice" in tokens}
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
