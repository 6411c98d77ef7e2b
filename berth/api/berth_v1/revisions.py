# SPDX-License-Identifier: Apache-2.0
"""Answers that are made from one state of the fleet: its revision, in the body and as `ETag`;
and what a write answers.

Source: spec/beyond.md 1.6.
"""

from __future__ import annotations

from berth.api.answers import STATUS_LINES, encode, holds_if_none_match
from berth.api.contract import Answer, Component
from berth.api.media_types import JSON
from berth.api.request import Call, Services
from berth.index.snapshot import Snapshot
from berth.model.errors import Unavailable
from berth.model.shown import Shown


def lists(component: Component, *, means: str, media_type: str = JSON) -> tuple[Answer, ...]:
    """200 with all that the fleet has of something, or 304: see `is_unchanged`."""
    return (
        Answer(200, component, means=means, media_type=media_type, tagged=True),
        Answer(304, means="Nothing has changed since.", tagged=True),
    )


def at_revision(snapshot: Snapshot, shown: Shown) -> bytes:
    """The JSON of the revision of a snapshot, and of what was made from it."""
    head = encode({"revision": snapshot.revision})
    return b"%b,%b" % (head[:-1], encode(shown)[1:])


def is_unchanged(call: Call, snapshot: Snapshot) -> bool:
    """Set the `ETag` of an answer about the whole fleet; True if `If-None-Match` has it.

    Then the response is 304, and there is nothing to compute. Cost: one look at the clock, which
    took the snapshot.
    """
    return is_tag_known(call, tag_of(snapshot))


def is_tag_known(call: Call, tag: str) -> bool:
    """Set the `ETag` of an answer; True if `If-None-Match` has it, and the response is 304."""
    set_tag(call, tag)
    if holds_if_none_match(call, tag):
        return False
    call.status = STATUS_LINES[304]
    return True


def set_tag(call: Call, tag: str) -> None:
    """Set the `ETag` of an answer."""
    call.headers["etag"] = tag
    call.headers["cache-control"] = "no-cache"


def tag_of(snapshot: Snapshot) -> str:
    """The `ETag` of an answer about the whole fleet."""
    return f'"{snapshot.revision}"'


def answer_put(call: Call, path: str, *, is_new: bool) -> None:
    """Answer a PUT of what is at a path: 201 with its `Location` if it is new, otherwise 200."""
    call.status = STATUS_LINES[201 if is_new else 200]
    if is_new:
        call.headers["location"] = call.location(path)


def after_write(services: Services, before: Snapshot) -> Snapshot:
    """The fleet after this request has written; as it was before, if the database has gone away
    since: the write stands, so the request has not failed."""
    try:
        return services.index.snapshot()
    except Unavailable:
        return before
