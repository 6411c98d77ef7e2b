# SPDX-License-Identifier: Apache-2.0
"""Revisions in headers: `ETag`, and 304 for a client that has the newest answer already.

Source: spec/beyond.md 1.6.
"""

from __future__ import annotations

from berth.api.entity_tags import holds_if_none_match
from berth.api.rendering import STATUS_LINES
from berth.api.request import Request, Response, Services
from berth.index.snapshot import Snapshot
from berth.model.errors import Unavailable


def is_unchanged(request: Request, response: Response, snapshot: Snapshot) -> bool:
    """Set the `ETag` of an answer about the whole fleet; True if `If-None-Match` has it.

    Then the response is 304, and there is nothing to compute. Cost: one look at the clock, which
    took the snapshot.
    """
    tag = set_tag(response, snapshot)
    if holds_if_none_match(request, tag):
        return False
    response.status = STATUS_LINES[304]
    return True


def set_tag(response: Response, snapshot: Snapshot) -> str:
    """Set the `ETag` of an answer about the whole fleet, and return it."""
    tag = f'"{snapshot.revision}"'
    response.set_header("etag", tag)
    response.set_header("cache-control", "no-cache")
    return tag


def after_write(services: Services, before: Snapshot) -> Snapshot:
    """The fleet after this request has written; as it was before, if the database has gone away
    since: the write stands, so the request has not failed."""
    try:
        return services.index.snapshot()
    except Unavailable:
        return before
