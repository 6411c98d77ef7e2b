# SPDX-License-Identifier: Apache-2.0
"""How responses are sent: bodies, and the headers about their age.

`Last-Modified` and `Cache-Control` are on responses from 1.15 on. Source: spec/rest-api.md 1.8.
Entity tags are the preconditions `If-Match` and `If-None-Match` (RFC 9110, 13.1).
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from itertools import chain, islice
from typing import Final, NamedTuple, TypeVar

import msgspec

from berth.api.errors import PHRASES
from berth.api.http_date import http_date
from berth.api.media_types import JSON, JSON_LINES
from berth.api.request import Call

T = TypeVar("T")

encode = msgspec.json.Encoder().encode
STATUS_LINES = {status: f"{status} {phrase}" for status, phrase in PHRASES.items()}

#: From 1.15 on, responses have `Last-Modified` and `Cache-Control`.
DATED_SINCE: Final = 15

#: A body longer than this, in bytes, is not kept in memory as it is.
LONG: Final = 2**20


class Sent:
    """What a handler returns that has filled in the response itself."""


SENT: Final = Sent()


class Pieces(NamedTuple):
    """A body in pieces that are made as they are sent; nothing may fail while they are made.

    Attributes:
        length: of all, in bytes.
    """

    parts: Iterator[bytes]
    length: int
    media_type: str = JSON


def send(call: Call, body: object) -> None:
    """Fill in the response with what a handler has returned: None for no body, JSON as bytes, a
    body in pieces, or a value that becomes JSON."""
    if type(body) is bytes:
        call.headers["content-type"] = JSON
        call.data = body
    elif body is None:
        call.headers["content-length"] = "0"
    elif isinstance(body, LongBody):
        _send_pieces(call, Pieces(iter(body), body.length, body.media_type))
    elif isinstance(body, Pieces):
        _send_pieces(call, body)
    elif body is not SENT:
        call.headers["content-type"] = JSON
        call.data = encode(body)


def _send_pieces(call: Call, body: Pieces) -> None:
    call.headers["content-type"] = body.media_type
    if body.length > LONG:
        call.headers["content-length"] = str(body.length)
        call.stream = body.parts
    else:
        call.data = b"".join(body.parts)


def lines(
    parts: Iterable[Iterable[object]],
    *,
    header: Mapping[str, object] | None = None,
    end: Mapping[str, object] | None = None,
) -> LongBody:
    """JSON lines: one for each value, and a last one, by which a client knows that it has all of
    them. Source: spec/beyond.md 6.1.

    Args:
        parts: the values, of which as many are in memory at a time as one part has; `msgspec.Raw`
            is JSON already.
        header: a line before them, which does not count.
        end: more members of the last line.
    """
    return LongBody(_lines(parts, header, end or {}), media_type=JSON_LINES)


def listed(
    pages: Generator[list[T]],
    shown: Callable[[T], object] = lambda value: value,
    *,
    limit: str | None,
    end: Mapping[str, object] | None = None,
) -> LongBody:
    """JSON lines, one for each item of some pages: all, or the first few.

    Args:
        pages: read as far as they are shown.
        end: as for `lines`, which gets `more` if the limit left items out.
    """
    parts = (map(shown, page) for page in pages)
    if limit is None:
        return lines(parts, end=end)
    with closing(pages):
        first = list(islice(chain.from_iterable(parts), int(limit) + 1))
    more = {"more": True} if len(first) > int(limit) else {}
    return lines([first[: int(limit)]], end={**(end or {}), **more})


def _lines(
    parts: Iterable[Iterable[object]],
    header: Mapping[str, object] | None,
    end: Mapping[str, object],
) -> Iterator[bytes]:
    count = 0
    if header is not None:
        yield encode(header) + b"\n"
    for part in parts:
        encoded = [encode(value) for value in part]
        count += len(encoded)
        yield b"\n".join([*encoded, b""])
    yield encode({"end": True, "lines": count, **end}) + b"\n"


class LongBody:
    """A body that is built in pieces, and kept compressed until it is sent.

    By then everything that can fail is done, and the length is known: the client gets the whole
    body, or fewer bytes than announced. Our lists are mostly links, which compress to a twelfth
    of their length; a slow client takes no more memory than that.

    Args:
        pieces: read at once, one after another.
        long: compress a body of more bytes than this.
    """

    def __init__(
        self, pieces: Iterable[bytes], *, long: int = LONG, media_type: str = JSON
    ) -> None:
        self.media_type = media_type
        self.length = 0
        self.is_packed = False
        self._pieces: deque[bytes] = deque()
        for piece in pieces:
            self.length += len(piece)
            self._pieces.append(_packed(piece) if self.is_packed else piece)
            if not self.is_packed and self.length > long:
                self.is_packed = True
                self._pieces = deque(map(_packed, self._pieces))

    def __iter__(self) -> Iterator[bytes]:
        """The pieces, uncompressed; each is freed as it is sent, so iterate only once."""
        while self._pieces:
            piece = self._pieces.popleft()
            yield zlib.decompress(piece) if self.is_packed else piece


def _packed(piece: bytes) -> bytes:
    return zlib.compress(piece, level=1)


def stamp(call: Call, modified: datetime | None) -> None:
    """Set both headers; `modified` is in UTC, and None omits `Last-Modified`."""
    if call.microversion >= DATED_SINCE:
        call.headers["cache-control"] = "no-cache"
        if modified is not None:
            call.headers["last-modified"] = http_date(modified)


def stamp_now(call: Call) -> None:
    """Like `stamp`, with the current time."""
    if call.microversion >= DATED_SINCE:
        call.headers["cache-control"] = "no-cache"
        call.headers["last-modified"] = call.services.clock.read()


def stamp_or_now(call: Call, modified: datetime | None) -> None:
    """Like `stamp`, with the current time instead of None."""
    if modified is None:
        stamp_now(call)
    else:
        stamp(call, modified)


def holds_if_none_match(call: Call, tag: str | None) -> bool:
    """Whether the client has not this one already; weak tags count.

    Args:
        tag: of what the path names; None if it does not exist.
    """
    header = call.env.get("HTTP_IF_NONE_MATCH")
    return not header or tag is None or not matches(header, tag, is_weak_equal=True)


def holds_if_match(call: Call, tag: str | None) -> bool:
    """Whether this is the one that the client has seen, if it says; weak tags do not count."""
    header = call.env.get("HTTP_IF_MATCH")
    if header is None:
        return True
    return tag is not None and matches(header, tag, is_weak_equal=False)


def matches(header: str, tag: str, *, is_weak_equal: bool) -> bool:
    """Whether a list of entity tags has one, or is `*`."""
    tags = [item.strip() for item in header.split(",")]
    if is_weak_equal:
        tags = [item.removeprefix("W/") for item in tags]
    return "*" in tags or tag in tags


def insists_on_new(call: Call) -> bool:
    """Whether the client wants to create, and to replace nothing: `If-None-Match: *`."""
    return not holds_if_none_match(call, "*")
