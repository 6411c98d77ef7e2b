# SPDX-License-Identifier: Apache-2.0
"""Revisions in headers: `ETag`, and 304 for a client that has the newest answer already.

Source: spec/beyond.md 1.6.
"""

from __future__ import annotations

from berth.api.rendering import STATUS_LINES
from berth.api.request import Request, Response
from berth.index.snapshot import Snapshot


def is_unchanged(request: Request, response: Response, snapshot: Snapshot) -> bool:
    """Set the `ETag` of an answer about the whole fleet; True if `If-None-Match` has it.

    Then the response is 304, and there is nothing to compute. Cost: one look at the clock, which
    took the snapshot.
    """
    tag = f'"{snapshot.revision}"'
    response.set_header("etag", tag)
    response.set_header("cache-control", "no-cache")
    if not _matches(request.env.get("HTTP_IF_NONE_MATCH"), tag):
        return False
    response.status = STATUS_LINES[304]
    return True


def _matches(header: str | None, tag: str) -> bool:
    """Whether an `If-None-Match` header names an entity tag (RFC 9110, 13.1.2); weak ones count."""
    if not header:
        return False
    tags = [item.strip() for item in header.split(",")]
    return "*" in tags or any(item.removeprefix("W/") == tag for item in tags)
