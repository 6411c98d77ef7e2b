# SPDX-License-Identifier: Apache-2.0
"""How responses are sent."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from berth.api.errors import PHRASES
from berth.api.media_types import JSON, JSON_LINES

if TYPE_CHECKING:
    from berth.api.request import Response

T = TypeVar("T")

encode = msgspec.json.Encoder().encode
STATUS_LINES = {status: f"{status} {phrase}" for status, phrase in PHRASES.items()}


#: A body longer than this, in bytes, is not kept in memory as it is.
LONG: Final = 2**20


def answer(response: Response, body: object, *, status: int = 200) -> None:
    """Respond with JSON."""
    answer_bytes(response, encode(body), status=status)


def answer_bytes(response: Response, body: bytes, *, status: int = 200) -> None:
    """Respond with encoded JSON."""
    response.status = STATUS_LINES[status]
    response.headers["content-type"] = JSON
    response.data = body


def answer_long(response: Response, body: LongBody) -> None:
    """Respond with JSON of any length; a long body is decompressed as it is sent."""
    if body.is_packed:
        answer_pieces(response, iter(body), body.length)
    else:
        answer_bytes(response, b"".join(body))


def answer_lines(
    response: Response,
    parts: Iterable[Iterable[object]],
    *,
    header: Mapping[str, object] | None = None,
    end: Mapping[str, object] | None = None,
) -> None:
    """Respond with JSON lines: one for each value, and a last one, by which a client knows that
    it has all of them. Source: spec/beyond.md 6.1.

    Args:
        parts: the values, of which as many are in memory at a time as one part has; `msgspec.Raw`
            is JSON already.
        header: a line before them, which does not count.
        end: more members of the last line.
    """
    answer_long(response, LongBody(_lines(parts, header, end or {})))
    response.headers["content-type"] = JSON_LINES


def answer_listed(
    response: Response,
    pages: Generator[list[T]],
    shown: Callable[[T], object],
    *,
    limit: str | None,
    end: Mapping[str, object] | None = None,
) -> None:
    """Respond with JSON lines, one for each item of some pages: all, or the first few.

    Args:
        pages: read as far as they are shown.
        end: as for `answer_lines`, which gets `more` if the limit left items out.
    """
    parts = (map(shown, page) for page in pages)
    if limit is None:
        return answer_lines(response, parts, end=end)
    with closing(pages):
        first = list(islice(chain.from_iterable(parts), int(limit) + 1))
    more = {"more": True} if len(first) > int(limit) else {}
    answer_lines(response, [first[: int(limit)]], end={**(end or {}), **more})


def _lines(
    parts: Iterable[Iterable[object]],
    header: Mapping[str, object] | None,
    end: Mapping[str, object],
) -> Iterator[bytes]:
    count = 0
    if header is not None:
        yield encode(header) + b"\n"
    for part in parts:
        lines = [encode(value) for value in part]
        count += len(lines)
        yield b"\n".join([*lines, b""])
    yield encode({"end": True, "lines": count, **end}) + b"\n"


def answer_pieces(response: Response, pieces: Iterator[bytes], length: int) -> None:
    """Respond with JSON of any length; the pieces of a long body are made as they are sent.

    Nothing may fail while they are made.
    """
    if length > LONG:
        response.status = STATUS_LINES[200]
        response.headers["content-type"] = JSON
        response.headers["content-length"] = str(length)
        response.stream = pieces
    else:
        answer_bytes(response, b"".join(pieces))


def answer_empty(response: Response, *, status: int = 204) -> None:
    """Respond with no body."""
    response.status = STATUS_LINES[status]
    response.set_header("content-length", "0")


class LongBody:
    """A body that is built in pieces, and kept compressed until it is sent.

    By then everything that can fail is done, and the length is known: the client gets the whole
    body, or fewer bytes than announced. Our lists are mostly links, which compress to a twelfth
    of their length; a slow client takes no more memory than that.

    Args:
        pieces: read at once, one after another.
        long: compress a body of more bytes than this.
    """

    def __init__(self, pieces: Iterable[bytes], *, long: int = LONG) -> None:
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
