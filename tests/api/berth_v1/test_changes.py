# SPDX-License-Identifier: Apache-2.0
"""`GET /berth/v1/changes`: polls, long polls and server-sent events.

Source: spec/beyond.md 6.2. What the events say of random histories is in `test_following`.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any, cast
from urllib.parse import quote

import pytest

from berth.config import Settings, load, read_settings
from berth.edge.app import create_app
from berth.index import Index
from berth.model.errors import DatabaseUnavailable
from berth.model.ids import AggregateUUID
from berth.store.engine import journal
from berth.store.engine.database import Database
from berth.store.identity import renew_identity
from berth.store.named import replace_labels
from tests.api.answers import assert_refused
from tests.api.berth_v1.test_fleet import lines_of
from tests.api.claims import consumer
from tests.api.configured import serve
from tests.api.worlds import done, new_name, new_uuid, provider
from tests.candidates.engine import copy_of
from tests.client import ADMIN, Client, Response, WSGITransport, wsgi_environ
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


def test_a_provider_that_is_made_again_was_gone(api: Client) -> None:
    """Its UUID is told twice: what others have of it is of the one before."""
    host = provider(api, {"VCPU": 8})
    seen = revision(api)
    done(api.delete(f"/resource_providers/{host}"), 204)
    body = {"uuid": host, "name": new_name("again")}
    done(api.post("/resource_providers", json=body), 200)
    events, _ = events_of(ask(api, seen))
    told = [each for each in events if each.get("uuid") == host]
    assert [each["change"] for each in told] == ["gone", "provider"]
    assert (told[1]["name"], told[1]["inventories"]) == (body["name"], {})


def test_a_tree_is_told_from_its_root_on(api: Client) -> None:
    """So that whoever keeps a copy knows each parent."""
    seen = revision(api)
    root = provider(api, {"VCPU": 8})
    tree = [root]
    for _ in range(3):
        tree.append(provider(api, {"VGPU": 1}, parent=tree[-1]))
    events, _ = events_of(ask(api, seen))
    assert [each["uuid"] for each in events if each.get("root") == root] == tree


def test_a_renamed_class_is_a_change_of_who_has_it(api: Client) -> None:
    """Its name is a part of what a line shows."""
    old, new = (new_name("CUSTOM_C").upper().replace("-", "_") for _ in range(2))
    done(api.put(f"/resource_classes/{old}"), 201)
    host, other = provider(api, {old: 1}), provider(api, {"VCPU": 1})
    seen = revision(api)
    done(api.put(f"/resource_classes/{old}", json={"name": new}, version="1.6"), 200)
    events, _ = events_of(ask(api, seen))
    told = {each.get("uuid"): each for each in events}
    assert told[host]["inventories"].keys() == {new}
    assert other not in told


def test_a_revision_must_be_of_this_database(api: Client) -> None:
    """Others are refused; so is what is none (test_refused.py)."""
    assert_refused(ask(api, "b1.AAAAAAAAAAAB"), 400, code="berth.revision.foreign")


def test_a_poll_waits_for_a_change(api: Client) -> None:
    """It is answered with the change, long before its time is over."""
    host = provider(api, {"VCPU": 10_000})
    seen = revision(api)
    with ThreadPoolExecutor() as threads:
        poll = threads.submit(ask, api, seen, 30)
        while not poll.done():
            consumer(api, {host: {"VCPU": 1}})
            time.sleep(0.05)
    events, _ = events_of(poll.result())
    assert [each["change"] for each in events if each.get("uuid") == host] == ["usage"]


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


@pytest.fixture(scope="module")
def scratch(prepared: Path) -> Iterator[Database]:
    """A database of their own."""
    with copy_of(prepared) as db:
        yield db


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The settings of a service with noauth2, and defaults for the rest."""
    placement_conf = tmp_path_factory.mktemp("configured") / "placement.conf"
    placement_conf.write_text(
        "[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = sqlite:///none\n"
    )
    return read_settings(load([str(placement_conf)]))


@pytest.fixture
def served(scratch: Database, configured: Settings) -> tuple[Database, Client]:
    """An application on a database of its own."""
    return scratch, Client.of(create_app(configured, scratch, Index(scratch)))


class TestAlone:
    """Nobody else writes."""

    def test_a_quiet_fleet_has_no_events(self, served: tuple[Database, Client]) -> None:
        """After the time the closing line comes alone."""
        _, client = served
        seen = revision(client)
        assert events_of(ask(client, seen, wait=1)) == ([], seen)

    def test_names_are_a_change(self, served: tuple[Database, Client]) -> None:
        """Labels, flavors, traits and resource classes."""
        db, client = served
        seen = revision(client)
        replace_labels(db, AggregateUUID(new_uuid()), {"zone": "z1"})
        done(client.put("/traits/CUSTOM_WATCHED"), 201)
        events, _ = events_of(ask(client, seen))
        assert events == [{"change": "names", "commits": 2}]

    def test_what_the_journal_has_forgotten_is_gone(self, served: tuple[Database, Client]) -> None:
        """The client reads the fleet again."""
        db, client = served
        seen = revision(client)
        provider(client, {"VCPU": 1})
        later = datetime.now(UTC).replace(tzinfo=None) + timedelta(minutes=1)
        db.write_unnoted(lambda tx: journal.trim(tx, later))
        forgotten = ask(client, seen)
        assert (forgotten.status, forgotten.code) == (410, "berth.revision.gone")
        now = revision(client)
        assert events_of(ask(client, now)) == ([], now)

    def test_events_are_sent_as_they_come(self, served: tuple[Database, Client]) -> None:
        """Reconnecting with the last id misses nothing and tells nothing twice: it counts more
        than `after`, which the reader cannot change."""
        _, client = served
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

    def test_only_so_many_wait(self, configured: Settings, scratch: Database) -> None:
        """Others are refused, unless they do not wait; whoever leaves makes room."""
        settings = replace(configured, watchers_max=1)
        client = Client.of(create_app(settings, scratch, Index(scratch)))
        seen = revision(client)
        with streaming(client, seen) as events:
            next(events)
            refused = ask(client, seen, wait=1)
            assert (refused.status, refused.code) == (503, "placement.overloaded")
            assert refused.headers["retry-after"]
            assert events_of(ask(client, seen)) == ([], seen)
        assert events_of(ask(client, seen, wait=1)) == ([], seen)

    def test_nobody_waits_when_the_service_stops(
        self, configured: Settings, scratch: Database
    ) -> None:
        """Polls are answered and streams end at once."""
        stopping = Event()
        client = Client.of(create_app(configured, scratch, Index(scratch), stopping=stopping))
        seen = revision(client)
        with streaming(client, seen) as events, ThreadPoolExecutor() as threads:
            next(events)
            poll = threads.submit(ask, client, seen, 60)
            stopping.set()
            assert events_of(poll.result(timeout=30)) == ([], seen)
            assert list(events) == []

    def test_a_database_that_is_away_is_no_quiet_fleet(
        self, served: tuple[Database, Client], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whoever has waited in vain is told."""
        db, client = served
        seen = revision(client)
        with ThreadPoolExecutor() as threads:
            poll = threads.submit(ask, client, seen, 4)
            time.sleep(0.5)
            with monkeypatch.context() as broken:
                broken.setattr(db, "commit_stamp", unavailable)
                assert poll.result().status == 503


def unavailable() -> None:
    """Fail like a database that does not answer."""
    raise DatabaseUnavailable("away")


@contextmanager
def streaming(
    client: Client, after: str, *, last_id: str | None = None
) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
    """The kinds and the data of server-sent events, without comments."""
    headers = {**ADMIN, "Accept": "text/event-stream"}
    if last_id is not None:
        headers["Last-Event-ID"] = last_id
    assert isinstance(client.transport, WSGITransport)
    environ = wsgi_environ(
        "GET", f"{PATH}?after={quote(after)}", [*headers.items()], None, script_name=""
    )
    started: list[str] = []

    def start(status: str, *_: object) -> Callable[[bytes], object]:
        started.append(status)
        return noted

    body = client.transport.app(environ, start)
    assert started == ["200 OK"]
    try:
        yield read_events(iter(body))
    finally:
        cast("Generator[bytes]", body).close()


def noted(_piece: bytes) -> None:
    """Take what is written instead of returned: nothing."""


def read_events(pieces: Iterator[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Parse what a server sends."""
    for piece in pieces:
        for block in piece.decode().removesuffix("\n\n").split("\n\n"):
            if block.startswith(":"):
                continue
            fields = dict(line.split(": ", 1) for line in block.split("\n"))
            assert fields["event"] != "revision" or fields["id"] in fields["data"]
            yield fields["event"], json.loads(fields["data"])
