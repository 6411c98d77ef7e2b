# SPDX-License-Identifier: Apache-2.0
"""`GET /berth/v1/changes`: what has changed since a revision. Source: spec/beyond.md 6.2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final, Protocol

from berth.api.berth_v1.provider_lines import PARTS, USAGES, ProviderLines
from berth.api.berth_v1.query import QueryReader
from berth.api.environ import CLIENT_GONE, PLACE
from berth.api.errors import Refused, overloaded
from berth.api.media_types import EVENT_STREAM, JSON_LINES, prefers_events
from berth.api.operations.berth_v1.changes import QUERY
from berth.api.rendering import LongBody, answer_long, encode
from berth.api.request import Request, Response, Services
from berth.api.watchers import Watchers
from berth.index import Snapshot
from berth.index.snapshot import Location
from berth.model.errors import BerthError, RevisionGone
from berth.model.ids import ProviderId
from berth.store.changes import BeyondHorizon, Noted, noted_between
from berth.store.engine.database import Database

_QUERY: Final = QueryReader(QUERY)

#: Events that are rendered at a time.
_PART: Final = 1000

#: Seconds between two comments in a stream of events: proxies close connections that are silent.
_COMMENT_S: Final = 15.0
#: Seconds after which a stream ends; its client comes again.
_STREAM_S: Final = 600.0

Event = dict[str, Any]


class Place(Protocol):
    """The place of a request among the reads (`berth.edge.admission.Place`)."""

    def leave(self) -> None:
        """Give it up."""

    def enter(self) -> bool:
        """Queue for it again; False if there is none."""


def list_changes(services: Services, request: Request, response: Response) -> None:
    """List what has changed since a revision, or wait for it."""
    query = _QUERY.read(request)
    # A reader of server-sent events reconnects with the URL of its first request.
    after = request.env.get("HTTP_LAST_EVENT_ID") or query.get("after")
    if not after:
        raise Refused(
            400,
            "A revision to begin after is missing.",
            hint="Send ?after= with the revision of GET /berth/v1/fleet, or of the last answer.",
        )
    following = _Following(services, request, after)
    if prefers_events(request.env.get("HTTP_ACCEPT")):
        _stream(services, response, following)
        return
    if not following.events and (seconds := int(query.get("wait", 0))):
        with services.watchers.place():
            following.wait(services.watchers.clock() + seconds)
    answer_long(response, LongBody(_lines([*following.events, following.closing()])))
    response.headers["content-type"] = JSON_LINES


def _lines(values: list[Event]) -> Iterator[bytes]:
    for begin in range(0, len(values), _PART):
        yield b"".join(encode(value) + b"\n" for value in values[begin : begin + _PART])


class _Following:
    """How far one client has come.

    Args:
        after: the revision that it knows.

    Attributes:
        events: what it has not been told.

    Raises:
        RevisionForeign, RevisionGone: its revision is not known.
    """

    def __init__(self, services: Services, request: Request, after: str) -> None:
        self._services = services
        self._place: Place = request.env[PLACE]
        self._has_gone: Callable[[], bool] = request.env.get(CLIENT_GONE, lambda: False)
        self._after = after
        self._snapshot = services.index.snapshot()
        self.events = events_since(services.database, self._snapshot, after)

    def closing(self) -> Event:
        """The line after the events."""
        return {"revision": self._snapshot.revision, "events": len(self.events)}

    def go_on(self) -> None:
        """The client has been told everything."""
        self._after, self.events = self._snapshot.revision, []

    def wait(self, until: float) -> None:
        """Wait for events; there may be none at `until`, or if the client has gone.

        Raises:
            Refused: 503: too many others read.
            Unavailable: the database cannot be read.
        """
        watchers = self._services.watchers
        while not self.events:
            self._place.leave()
            newest = watchers.wait(self._snapshot, until, self._has_gone)
            if not self._place.enter():
                raise overloaded()
            is_over = newest is self._snapshot
            # Those who waited in vain may have done so because the database is away.
            self._snapshot = self._services.index.snapshot() if is_over else newest
            self.events = events_since(self._services.database, self._snapshot, self._after)
            if is_over:
                return

    def rest(self) -> None:
        """Give up the place among the reads, between two pieces of a stream."""
        self._place.leave()


# --- Server-sent events ---------------------------------------------------------------------------


def _stream(services: Services, response: Response, following: _Following) -> None:
    with ExitStack() as place:
        place.enter_context(services.watchers.place())
        response.headers["content-type"] = EVENT_STREAM
        response.headers["cache-control"] = "no-cache"
        # nginx would collect events before it passes them on.
        response.headers["x-accel-buffering"] = "no"
        response.stream = _Stream(_streamed(services.watchers, following), place.pop_all())


class _Stream:
    """A body that gives its place back when the server closes it, also if it was never begun."""

    def __init__(self, pieces: Iterator[bytes], place: ExitStack) -> None:
        self._pieces = pieces
        self._place = place

    def __iter__(self) -> Iterator[bytes]:
        with self._place:
            yield from self._pieces

    def close(self) -> None:
        """Leave the place; the server calls it in any case."""
        self._place.close()


def _streamed(watchers: Watchers, following: _Following) -> Iterator[bytes]:
    """The events as they come, until the stream has lasted long enough."""
    end = watchers.clock() + _STREAM_S
    yield from _sent(following)
    while (now := watchers.clock()) < end and not watchers.are_stopping:
        following.go_on()
        try:
            following.wait(min(now + _COMMENT_S, end))
        except (BerthError, Refused):
            # The client comes again with its last revision, and is told then.
            return
        finally:
            following.rest()
        yield from _sent(following) if following.events else (b": nothing has changed\n\n",)


def _sent(following: _Following) -> Iterator[bytes]:
    events, closing = following.events, following.closing()
    for begin in range(0, len(events), _PART):
        yield b"".join(
            b"event: %s\ndata: %s\n\n" % (event["change"].encode(), encode(event))
            for event in events[begin : begin + _PART]
        )
    id_ = closing["revision"].encode()
    yield b"event: revision\nid: %s\ndata: %s\n\n" % (id_, encode(closing))


# --- Events ---------------------------------------------------------------------------------------


def events_since(db: Database, snapshot: Snapshot, after: str) -> list[Event]:
    """What has changed from a revision to a snapshot, each provider once.

    Raises:
        RevisionForeign, RevisionGone: it is not known.
    """
    heads = snapshot.clock.since(after)
    if snapshot.revision == after:
        return []
    try:
        noted = noted_between(
            db,
            heads,
            snapshot.clock.heads,
            exists=lambda provider: snapshot.locate(provider) is not None,
        )
    except BeyondHorizon:
        raise RevisionGone(after) from None
    events: list[Event] = [
        {"change": "gone", "uuid": uuid, "commits": commits} for uuid, commits in noted.gone
    ]
    if noted.names:
        events.append({"change": "names", "commits": noted.names})
    if any(snapshot.locate(provider) is None for provider in noted.providers):
        # Deleted without its UUID in the journal, so only the fleet tells which ones are left.
        raise RevisionGone(after)
    return events + _of_providers(snapshot, noted)


def _of_providers(snapshot: Snapshot, noted: Noted) -> list[Event]:
    """The present states of the providers that have changed, parents before children."""
    lines = ProviderLines(snapshot, PARTS)
    events: list[Event] = []
    for place, provider in sorted(_placed(snapshot, noted)):
        line = lines.line(snapshot.block(place.block_id), place.node, place.row)
        commits = noted.providers[provider]
        if provider in noted.usage_only:
            events.append(
                {
                    "change": "usage",
                    "uuid": line["uuid"],
                    "commits": commits,
                    "generation": line["generation"],
                    USAGES: line[USAGES],
                }
            )
        else:
            events.append(
                {"change": "provider", "uuid": line.pop("uuid"), "commits": commits, **line}
            )
    return events


def _placed(snapshot: Snapshot, noted: Noted) -> Iterator[tuple[Location, ProviderId]]:
    for provider in noted.providers:
        place = snapshot.locate(provider)
        if place is not None:
            yield place, provider
