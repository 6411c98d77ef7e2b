# SPDX-License-Identifier: Apache-2.0
"""How answers are put on the wire."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from berth.api.errors import PHRASES
from berth.api.media_types import JSON
from berth.api.request import Response

encode = msgspec.json.Encoder().encode
STATUS_LINES = {status: f"{status} {phrase}" for status, phrase in PHRASES.items()}


#: Bytes of a body that is not kept in memory as it is.
LONG: Final = 2**20


def answer(response: Response, body: object, *, status: int = 200) -> None:
    """Answer with a value as JSON."""
    answer_bytes(response, encode(body), status=status)


def answer_bytes(response: Response, body: bytes, *, status: int = 200) -> None:
    """Answer with JSON that is encoded already."""
    response.status = STATUS_LINES[status]
    response.content_type = JSON
    response.data = body


def answer_long(response: Response, body: LongBody) -> None:
    """Answer with JSON of any length: what is long is unpacked as the client takes it."""
    if body.is_packed:
        response.status = STATUS_LINES[200]
        response.content_type = JSON
        response.set_stream(iter(body), body.length)
    else:
        answer_bytes(response, b"".join(body))


def answer_empty(response: Response, *, status: int = 204) -> None:
    """Answer without a body."""
    response.status = STATUS_LINES[status]
    response.set_header("content-length", "0")


class LongBody:
    """A body that is made piece by piece, and kept compressed until it is sent.

    Whatever can fail has been done by then, and its length is known: so what a client gets is
    whole, or shorter than announced. Lists of ours are mostly links, and take a twelfth of their
    length; a client that takes its answer slowly costs no more than that.

    Args:
        pieces: are asked for at once, one after another.
        long: from how many bytes on a body is compressed.
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

    @property
    def held_bytes(self) -> int:
        """How much memory is taken by what has not been sent."""
        return sum(map(len, self._pieces))

    def __iter__(self) -> Iterator[bytes]:
        """The pieces as they were made; each is let go of, so this can be done once."""
        while self._pieces:
            piece = self._pieces.popleft()
            yield zlib.decompress(piece) if self.is_packed else piece


def _packed(piece: bytes) -> bytes:
    return zlib.compress(piece, level=1)
