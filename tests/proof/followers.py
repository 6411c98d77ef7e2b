# SPDX-License-Identifier: Apache-2.0
"""Followers of the fleet: copies that are kept over HTTP while services are killed under them.

A follower goes on with the revision that it has, whatever breaks, and asks one service after the
other.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import cycle
from typing import Any, Final
from urllib.parse import quote

from tests.client import ADMIN
from tests.proof.wire import Connection, Lost, NotSent

CHANGES: Final = "/berth/v1/changes"
FLEET: Final = "/berth/v1/fleet"

#: Seconds of a poll.
_WAIT_S: Final = 1

#: Seconds without a byte after which a stream is taken to be broken: it has a comment every 15.
_SILENCE_S_MAX: Final = 40

#: Seconds before a follower comes back after an answer that did not come, or was 503.
_PAUSE_S: Final = 0.05

Address = tuple[str, int]
Lines = dict[str, dict[str, Any]]


def whole_fleet(address: Address) -> tuple[str, Lines]:
    """The revision of the fleet, and its lines by UUID."""
    answer = Connection(*address).ask_raw("GET", FLEET)
    assert answer.status == 200, answer
    return fleet_in(answer.body)


def fleet_in(body: bytes) -> tuple[str, Lines]:
    """The same from the body of an answer."""
    header, *lines, end = map(json.loads, body.splitlines())
    assert end == {"end": True, "lines": len(lines)}
    return header["revision"], {line["uuid"]: line for line in lines}


def changes_after(revision: str, wait_s: int = 0) -> str:
    """The path of a poll."""
    return f"{CHANGES}?after={quote(revision)}&wait={wait_s}"


class Copy:
    """A copy of the fleet that is kept by its changes alone."""

    def __init__(self, revision: str, lines: Lines) -> None:
        self.revision, self.lines = revision, lines
        #: UUID -> commits told; None: those of names.
        self.commits: Counter[str | None] = Counter()
        #: What contradicts the guarantees.
        self.faults: list[str] = []

    def take(self, body: bytes) -> int:
        """Take over an answer with changes; returns the number of events."""
        *events, closing_line = map(json.loads, body.splitlines())
        assert closing_line["events"] == len(events)
        self.apply(events, closing_line["revision"])
        return len(events)

    def apply(self, events: Sequence[dict[str, Any]], revision: str) -> None:
        """Take over some events."""
        gone = [event["uuid"] for event in events if event["change"] == "gone"]
        told = [event["uuid"] for event in events if event.keys() > {"uuid", "change", "commits"}]
        # One that was made again is gone first, and then as it is now.
        if len({*gone}) < len(gone) or len({*told}) < len(told):
            self.faults.append(f"more than one event about a provider: {events}")
        for event in events:
            self._apply(**event)
        self.revision = revision

    def _apply(self, *, change: str, commits: int, uuid: str = "", **state: Any) -> None:
        self.commits[uuid or None] += commits
        before = self.lines.get(uuid)
        if change == "gone":
            # It may have come and gone between two looks.
            self.lines.pop(uuid, None)
        elif uuid:
            if before is not None and state["generation"] < before["generation"]:
                self.faults.append(f"{uuid} went back: {before}, then {state}")
            if before is None and change == "usage":
                self.faults.append(f"usage of {uuid}, which the copy does not have")
            if state.get("parent") not in {None, *self.lines}:
                self.faults.append(f"{uuid} before its parent")
            self.lines[uuid] = {**(before or {}), "uuid": uuid, **state}


class Follower(Copy):
    """A copy with a thread of its own."""

    def __init__(self, addresses: Sequence[Address], how: Callable[[Follower], None]) -> None:
        super().__init__(*whole_fleet(addresses[0]))
        self.addresses = cycle(addresses)
        #: Answers, and those that did not come.
        self.answers: Counter[str] = Counter()
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, args=(how,), daemon=True)
        self._thread.start()

    def state(self) -> tuple[str, Lines, Counter[str | None]]:
        """The revision of the copy, its lines, and the commits told up to it."""
        with self._lock:
            return self.revision, dict(self.lines), Counter(self.commits)

    def stop(self) -> None:
        """End, after what it has begun."""
        self.stopping.set()
        self._thread.join(_SILENCE_S_MAX)

    def apply(self, events: Sequence[dict[str, Any]], revision: str) -> None:
        """Take over what one answer says, or one batch of a stream."""
        with self._lock:
            self.answers["some" if events else "none"] += 1
            super().apply(events, revision)

    def _run(self, how: Callable[[Follower], None]) -> None:
        while not self.stopping.is_set():
            try:
                how(self)
            except (NotSent, Lost, OSError, http.client.HTTPException):
                self.answers["lost"] += 1
                time.sleep(_PAUSE_S)
            except Exception as error:  # noqa: BLE001 - told by the test
                self.faults.append(repr(error))
                return


def poll(follower: Follower) -> None:
    """Ask the next service once, through whichever of its workers accepts the connection."""
    address = next(follower.addresses)
    connection = Connection(*address)
    path = changes_after(follower.revision, _WAIT_S)
    with closing(connection):
        answer = connection.ask_raw("GET", path)
    if answer.status == 503:
        time.sleep(_PAUSE_S)
        return
    assert answer.status == 200, answer
    follower.take(answer.body)


def stream(follower: Follower) -> None:
    """Read events from the next service until the stream breaks."""
    host, port = next(follower.addresses)
    with closing(http.client.HTTPConnection(host, port, timeout=_SILENCE_S_MAX)) as connection:
        headers = {**ADMIN, "Accept": "text/event-stream", "Last-Event-ID": follower.revision}
        connection.request("GET", CHANGES, headers=headers)
        answer = connection.getresponse()
        if answer.status == 503:
            time.sleep(_PAUSE_S)
            return
        assert answer.status == 200, answer.read()
        events: list[dict[str, Any]] = []
        for kind, data in _sent(answer):
            if kind != "revision":
                events.append(data)
                continue
            assert data["events"] == len(events)
            # A batch that breaks off is told again.
            follower.apply(events, data["revision"])
            events = []
            if follower.stopping.is_set():
                return


def _sent(answer: http.client.HTTPResponse) -> Iterator[tuple[str, dict[str, Any]]]:
    """The kinds and the data of the events of a stream."""
    fields: dict[str, str] = {}
    while line := answer.readline():
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name and value:
            fields[name] = value
        elif fields:
            if "event" in fields:
                yield fields["event"], json.loads(fields["data"])
            fields = {}
