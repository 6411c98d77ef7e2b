# SPDX-License-Identifier: Apache-2.0
"""`GET /berth/v1/changes`: what has changed since a revision. Source: spec/beyond.md 6.2."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Final, Protocol

from berth.api import examples
from berth.api.answers import SENT, LongBody, Sent
from berth.api.berth_v1.fleet import PARTS, PROVIDER_LINE, USAGES, ProviderLines
from berth.api.berth_v1.routes import FLEET
from berth.api.contract import Answer, Contract, Parameter, Query, component, ref
from berth.api.environ import CLIENT_GONE, PLACE, STILL_VALID
from berth.api.errors import Refused
from berth.api.media_types import EVENT_STREAM, JSON_LINES, prefers_events
from berth.api.request import Call, Services
from berth.api.schema import JSONSchema
from berth.api.shapes import COUNT, GENERATION, SUMS, UUID, described, open_object
from berth.api.struct_schema import REVISION, REVISION_EXAMPLE
from berth.api.watchers import Changes, Step, Watchers
from berth.index import Snapshot
from berth.index.snapshot import Location
from berth.model.errors import RevisionGone
from berth.model.ids import ProviderId
from berth.store.changes import BeyondHorizon, Noted, noted_between
from berth.store.engine.database import Database

_WAIT_MAX: Final = 60

_CHANGES_QUERY: Final = Query(
    Parameter(
        name="after",
        means="The revision up to which the client knows the fleet. Required, unless the header "
        "`Last-Event-ID` has it, as a reconnecting reader of server-sent events sends it.",
        example=REVISION_EXAMPLE,
        schema={"type": "string", "minLength": 1},
    ),
    Parameter(
        name="wait",
        means="Seconds for which to wait if nothing has changed, 0 to 60; 0 by default. It has no "
        "effect on server-sent events.",
        example="30",
        schema={"type": "string", "pattern": rf"^([0-9]|[1-5][0-9]|{_WAIT_MAX})\Z"},
        expected=f"a whole number of seconds, 0 to {_WAIT_MAX}",
    ),
)

_COMMITS: JSONSchema = {
    "type": "integer",
    "minimum": 1,
    "description": "How many commits touched it since the last answer.",
}


def _event(change: str, **members: JSONSchema) -> JSONSchema:
    return open_object(
        {
            "change": {"type": "string", "enum": [change], "description": "What has changed."},
            **members,
            "commits": _COMMITS,
        }
    )


_CHANGE_EXAMPLE: Final[dict[str, Any]] = {
    "change": "usage",
    "uuid": examples.PROVIDER,
    "commits": 3,
    "generation": 21,
    "usages": {"VCPU": 18},
}
_CLOSING: JSONSchema = open_object(
    {
        "revision": described(REVISION, "The next `after`."),
        "events": described(COUNT, "How many events came before this line."),
    }
)
_CHANGE: Final = component(
    "Change",
    {
        "anyOf": [
            _event("usage", uuid=UUID, generation=GENERATION, usages=SUMS),
            {"allOf": [_event("provider", uuid=UUID), ref("ProviderLine")]},
            _event("gone", uuid=UUID),
            _event("names"),
            _CLOSING,
        ]
    },
    example=_CHANGE_EXAMPLE,
    parts=(PROVIDER_LINE,),
)

#: Seconds between two comments in a stream of events: proxies close connections that are silent.
_COMMENT_S: Final = 15.0
#: Seconds after which a stream ends; its client comes again.
_STREAM_S: Final = 600.0
#: Seconds after which it is checked again whether a caller that waits may read the fleet.
_CHECK_S: Final = 4.0

_Event = dict[str, Any]


class Place(Protocol):
    """The place of a request among the reads (`berth.edge.admission.Place`)."""

    def leave(self) -> None:
        """Give it up."""


@Contract(
    summary="List what has changed since a revision",
    details="States, not steps: each provider at most once, as it is now, with the number of "
    "commits that touched it since `after`. `usage`: only usage and generation changed; "
    "`provider`: anything did; `gone`: it was deleted; `names`: traits, resource classes, "
    "labels, flavors or drains were changed. The last line has the revision to continue from; "
    "every worker and every node of a cluster can answer the next request. A revision that the "
    "journal has forgotten gets 410: read the fleet again. With `Accept: text/event-stream`, "
    "the changes come as server-sent events for ten minutes.",
    query=_CHANGES_QUERY,
    answers=(
        Answer(
            200,
            _CHANGE,
            means="The changes.",
            media_type=JSON_LINES,
            other_media_type=EVENT_STREAM,
        ),
    ),
    gone="The journal has forgotten what changed after the revision, or the database has gone "
    "back behind it: read the fleet again.",
)
def list_changes(call: Call) -> LongBody | Sent:
    """List what has changed since a revision, or wait for it."""
    # A reader of server-sent events reconnects with the URL of its first request.
    after = call.env.get("HTTP_LAST_EVENT_ID") or call.query.get("after")
    if not after:
        raise Refused(
            400,
            "A revision to begin after is missing.",
            hint="Send ?after= with the revision of GET /berth/v1/fleet, or of the last answer.",
        )
    if prefers_events(call.env.get("HTTP_ACCEPT")):
        return _stream(call, after)
    changes = changes_since(call.services.database, call.services.index.snapshot(), after)
    if not changes.count and (seconds := int(call.query.get("wait", 0))):
        with call.services.watchers.place():
            changes = _awaited(call, after, seconds)
    return LongBody(changes.lines(), media_type=JSON_LINES)


def _awaited(call: Call, after: str, seconds: int) -> Changes:
    """The first changes after a revision; none if there are none in time.

    Raises:
        RevisionForeign, RevisionGone: the database has been replaced meanwhile.
        Unavailable: it cannot be read.
    """
    watchers = call.services.watchers
    step, changes = _joined(call.services, after)
    place: Place = call.env[PLACE]
    place.leave()
    caller = _Caller(call)
    has_gone: Callable[[], bool] = call.env.get(CLIENT_GONE, lambda: False)
    until = watchers.clock() + seconds
    while not changes.count:
        later = watchers.wait(step, until, lambda: caller.may_go_on() and not has_gone())
        if later is None:
            # It may have waited in vain because the database is away.
            is_over = watchers.clock() >= until
            return _joined(call.services, after)[1] if is_over else changes
        step, changes = later, later.changes or _joined(call.services, after)[1]
    return changes


def _joined(services: Services, after: str) -> tuple[Step, Changes]:
    """The present step, and the changes up to it."""
    step, snapshot = services.watchers.join()
    return step, changes_since(services.database, snapshot, after)


class _Caller:
    """Who waits, and whether it may read the fleet: its token may end, and its rights."""

    def __init__(self, call: Call) -> None:
        self._policy = call.services.policy
        self._clock = call.services.watchers.clock
        self._context = call.caller
        self._is_valid: Callable[[], bool] = call.env.get(STILL_VALID, lambda: True)
        self._check_at = self._clock() + _CHECK_S
        self._may = True

    def may_go_on(self) -> bool:
        """Whether it may; checked at most every `_CHECK_S`."""
        now = self._clock()
        if self._may and now >= self._check_at:
            self._check_at = now + _CHECK_S
            self._may = self._is_valid() and self._is_allowed()
        return self._may

    def _is_allowed(self) -> bool:
        try:
            self._policy.check(FLEET.name, self._context)
        except Refused:
            return False
        return True


# --- Server-sent events ---------------------------------------------------------------------------


def _stream(call: Call, after: str) -> Sent:
    with ExitStack() as place:
        place.enter_context(call.services.watchers.place())
        step, changes = _joined(call.services, after)
        call.headers["content-type"] = EVENT_STREAM
        call.headers["cache-control"] = "no-cache"
        # nginx would collect events before it passes them on.
        call.headers["x-accel-buffering"] = "no"
        caller = _Caller(call)
        pieces = _streamed(call.services.watchers, step, changes, caller.may_go_on)
        call.stream = _Stream(pieces, place.pop_all())
    return SENT


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


def _streamed(
    watchers: Watchers, step: Step, changes: Changes, may_go_on: Callable[[], bool]
) -> Iterator[bytes]:
    """The events as they come, until the stream has lasted long enough.

    However it ends, the client comes again with the last revision that it got, and is then told why
    if there is nothing more for it. Whether a client has gone shows when the next piece is sent:
    the server then closes the stream.
    """
    sent_at = watchers.clock()
    end = sent_at + _STREAM_S
    pieces = changes.sent()
    while watchers.clock() < end and may_go_on():
        if (piece := next(pieces, None)) is not None:
            yield piece
            sent_at = watchers.clock()
            continue
        until = min(sent_at + _COMMENT_S, end)
        later = watchers.wait(step, until, may_go_on)
        if later is not None:
            if later.changes is None:
                return
            step, pieces = later, later.changes.sent() if later.changes.count else iter(())
        elif watchers.clock() >= until:
            yield b": nothing has changed\n\n"
            sent_at = watchers.clock()
        else:
            return


# --- Events ---------------------------------------------------------------------------------------


def changes_since(db: Database, snapshot: Snapshot, after: str) -> Changes:
    """What has changed from a revision to a snapshot, each provider once.

    Raises:
        RevisionForeign, RevisionGone: it is not known.
    """
    return Changes(snapshot.revision, events_since(db, snapshot, after))


def events_since(db: Database, snapshot: Snapshot, after: str) -> list[_Event]:
    """The events of `changes_since`.

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
    events: list[_Event] = [
        {"change": "gone", "uuid": uuid, "commits": commits} for uuid, commits in noted.gone
    ]
    if noted.names:
        events.append({"change": "names", "commits": noted.names})
    located = ((snapshot.locate(provider), provider) for provider in noted.providers)
    placed = sorted((place, provider) for place, provider in located if place is not None)
    if len(placed) < len(noted.providers):
        # Deleted without its UUID in the journal, so only the fleet tells which ones are left.
        raise RevisionGone(after)
    return events + _of_providers(snapshot, noted, placed)


def _of_providers(
    snapshot: Snapshot, noted: Noted, placed: Iterable[tuple[Location, ProviderId]]
) -> list[_Event]:
    """The present states of the providers that have changed, parents before children."""
    lines = ProviderLines(snapshot, PARTS)
    events: list[_Event] = []
    for place, provider in placed:
        line = lines.line(snapshot.block(place.block_id), place.node, place.row)
        head = {"uuid": line.pop("uuid"), "commits": noted.providers[provider]}
        if provider in noted.usage_only:
            used = {name: line[name] for name in ("generation", USAGES)}
            events.append({"change": "usage", **head, **used})
        else:
            events.append({"change": "provider", **head, **line})
    return events
