# SPDX-License-Identifier: Apache-2.0
"""What an `Accept` header allows: whether JSON or JSON lines, and which type for an error.

A header that cannot be parsed counts as absent. A media range with parameters (other than `q`)
matches nothing, as in OpenStack Placement: clients that send one expect its 406.
"""

from __future__ import annotations

import re
from wsgiref.types import WSGIEnvironment

JSON = "application/json"
#: A JSON value on each line.
JSON_LINES = "application/jsonl"
#: Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
EVENT_STREAM = "text/event-stream"
HTML = "text/html"
TEXT = "text/plain"

_TOKEN = r"[^\s/;,=\"]+"
_RANGE = re.compile(rf"({_TOKEN}/{_TOKEN})((?:\s*;\s*{_TOKEN}=(?:{_TOKEN}|\"[^\"]*\"))*)\Z")
_QUALITY = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\Z")


def settle(environ: WSGIEnvironment) -> None:
    """Set an absent, empty or `*/*` `Accept` to JSON, so that libraries respond in it too."""
    if environ.get("HTTP_ACCEPT", "*/*") in ("", "*/*"):
        environ["HTTP_ACCEPT"] = JSON


def admits(accept: str | None, media_type: str) -> bool:
    """Whether a media type is acceptable.

    Whoever accepts JSON accepts JSON lines too: some clients always send `application/json`.
    """
    if not accept or accept in (JSON, "*/*"):
        return True
    ranges = _parse(accept)
    return ranges is None or any(_quality(offer, ranges) > 0 for offer in (JSON, media_type))


def prefers_events(accept: str | None) -> bool:
    """Whether server-sent events are preferred to JSON lines: only those who name them get them."""
    ranges = _parse(accept or "") or {}
    asked = ranges.get(EVENT_STREAM, 0.0)
    return asked > 0 and asked >= max(ranges.get(offer, 0.0) for offer in (JSON, JSON_LINES))


def error_media_type(accept: str | None) -> str:
    """The media type of an error: JSON, or HTML if preferred; plain text if neither fits.

    A tie goes to JSON, which every known client reads.
    """
    if not accept or accept in (JSON, "*/*"):
        return JSON
    ranges = _parse(accept)
    if ranges is None:
        return JSON
    json_quality, html_quality = _quality(JSON, ranges), _quality(HTML, ranges)
    if json_quality == html_quality == 0:
        return TEXT
    return JSON if json_quality >= html_quality else HTML


def _parse(accept: str) -> dict[str, float] | None:
    """Quality by lower-case media range, without those that match nothing; None if malformed.

    If a range is repeated, the first one counts.
    """
    ranges: dict[str, float] = {}
    for element in filter(None, map(str.strip, accept.split(","))):
        match = _RANGE.match(element)
        if match is None:
            return None
        parameters = [part.strip() for part in match[2].split(";") if part.strip()]
        quality = 1.0
        if parameters and parameters[0][:2] in ("q=", "Q="):
            if not _QUALITY.match(parameters[0][2:]):
                return None
            quality = float(parameters[0][2:])
        elif parameters:
            continue
        ranges.setdefault(match[1].lower(), quality)
    return ranges


def _quality(offer: str, ranges: dict[str, float]) -> float:
    """The quality of an offered media type, from the most specific matching range."""
    for pattern in (offer, offer.split("/")[0] + "/*", "*/*"):
        if pattern in ranges:
            return ranges[pattern]
    return 0.0
