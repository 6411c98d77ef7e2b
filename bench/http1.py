# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 as bytes: requests made once and sent many times, and the least reading of answers.

The load generator shares its cores with the servers that it measures, so it must hardly cost
anything: a request is a `bytes` object that is sent as it is, and of an answer only the status, the
length and the body are looked at.
"""

from __future__ import annotations

import json
import platform
from typing import Final, NamedTuple

from bench.api import LATEST, Json

_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = b"\r\ncontent-length:"
_CHUNKED: Final = b"\r\ntransfer-encoding: chunked"
_CLOSE: Final = b"\r\nconnection: close"
_TAG: Final = b'\r\netag: "'

#: What a service of OpenStack sends with every request, by way of keystoneauth and requests.
_HEADERS: Final = (
    "User-Agent: nova-scheduler keystoneauth1/5.18.1 python-requests/2.34.2 "
    f"CPython/{platform.python_version()}\r\n"
    "Accept-Encoding: gzip, deflate\r\n"
    "Accept: application/json\r\n"
    f"OpenStack-API-Version: placement {LATEST}\r\n"
    "X-Auth-Token: admin\r\n"
    # Where nobody authenticates, this stands for what Keystone knows of the token.
    "X-Roles: admin,service\r\n"
    "X-Openstack-Request-Id: req-5d1c5b0e-6c0e-4a53-9d2c-6a7a1c1f6a54\r\n"
)


class Answer(NamedTuple):
    """The relevant parts of a response. Status 0: no response, the connection was lost."""

    status: int
    body: bytes
    #: Whether the server closes the connection after it.
    closes: bool
    #: Its entity tag, without quotes.
    tag: str = ""


NO_ANSWER: Final = Answer(0, b"", True)


class BadAnswer(RuntimeError):
    """A server sent something other than a complete HTTP/1.1 response."""


class Requests:
    """Encodes requests to a server on loopback.

    Args:
        answer_bytes: how long an answer the floor is to give; 0 for every other server.
        closes: whether the server is to close the connection after each response.
    """

    def __init__(self, port: int, *, answer_bytes: int = 0, closes: bool = False) -> None:
        wanted = f"X-Answer-Bytes: {answer_bytes}\r\n" if answer_bytes else ""
        connection = f"Connection: {'close' if closes else 'keep-alive'}\r\n"
        self._headers = (
            f" HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{connection}{_HEADERS}{wanted}".encode()
        )

    def get(self, path: str, *, if_none_match: str | None = None) -> bytes:
        """A GET of a path, with its query string.

        Args:
            if_none_match: an entity tag, without its quotes.
        """
        tag = "" if if_none_match is None else f'If-None-Match: "{if_none_match}"\r\n'
        return b"GET " + path.encode() + self._headers + tag.encode() + b"\r\n"

    def delete(self, path: str) -> bytes:
        """A DELETE of a path."""
        return b"DELETE " + path.encode() + self._headers + b"Content-Length: 0\r\n\r\n"

    def put(self, path: str, body: bytes) -> bytes:
        """A PUT of encoded JSON."""
        return self._with_body(b"PUT ", path, body)

    def post(self, path: str, body: bytes) -> bytes:
        """A POST of encoded JSON."""
        return self._with_body(b"POST ", path, body)

    def of(self, method: str, path: str, body: Json = None) -> bytes:
        """Any request; a body, unless None, is sent as JSON."""
        if body is not None:
            return self._with_body(f"{method} ".encode(), path, json.dumps(body).encode())
        return self.delete(path) if method == "DELETE" else self.get(path)

    def _with_body(self, method: bytes, path: str, body: bytes) -> bytes:
        length = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        return method + path.encode() + self._headers + length + body


class AnswerReader:
    """Assembles a response from the data of a socket, then starts with the next."""

    __slots__ = ("_closes", "_is_chunked", "_missing", "_parts", "_status", "_tag")

    def __init__(self) -> None:
        self._begin_anew()

    @property
    def is_amid_answer(self) -> bool:
        """Whether a part of a response has arrived."""
        return bool(self._parts) or self._status != 0

    def feed(self, data: bytes) -> Answer | None:
        """Take what came next, b"" for the end of the stream; the answer, once it is whole.

        Raises:
            BadAnswer: it is not HTTP, it ended too early, or there is more than one answer.
        """
        if not data:
            return self._ended()
        if self._status == 0:
            if self._parts:
                data = self._parts.pop() + data
            end = data.find(_END_OF_HEAD)
            if end < 0:
                self._parts.append(data)
                return None
            self._read_head(data[:end])
            data = data[end + 4 :]
        self._parts.append(data)
        if self._is_chunked:
            return self._whole_if_last_chunk()
        if self._missing is None:
            return None
        self._missing -= len(data)
        if self._missing < 0:
            raise BadAnswer(f"{-self._missing} bytes too many after an answer")
        return self._finish(b"".join(self._parts)) if self._missing == 0 else None

    def _begin_anew(self) -> None:
        self._parts: list[bytes] = []
        self._status = 0
        #: Bytes of the body that have not come; None where only the end of the stream tells.
        self._missing: int | None = None
        self._is_chunked = False
        self._closes = False
        self._tag = ""

    def _read_head(self, head: bytes) -> None:
        if not head.startswith(b"HTTP/1.") or not head[9:12].isdigit():
            raise BadAnswer(f"not an answer: {head[:60]!r}")
        self._status = int(head[9:12])
        folded = head.lower()
        self._closes = _CLOSE in folded or folded.startswith(b"http/1.0")
        if (tag := folded.find(_TAG)) >= 0:
            self._tag = head[tag + len(_TAG) :].split(b'"', 1)[0].decode()
        at = folded.find(_LENGTH)
        if self._status in (204, 304):
            self._missing = 0
        elif at >= 0:
            self._missing = int(folded[at + len(_LENGTH) :].split(b"\r\n", 1)[0])
        elif _CHUNKED in folded:
            self._is_chunked = True
        else:
            self._closes = True

    def _whole_if_last_chunk(self) -> Answer | None:
        """The response if all chunks are there. Scans all each time; they are rare."""
        raw = b"".join(self._parts)
        self._parts = [raw]
        chunks: list[bytes] = []
        at = 0
        while (line_end := raw.find(b"\r\n", at)) >= 0:
            size = int(raw[at:line_end].split(b";")[0], 16)
            start = line_end + 2
            if len(raw) < start + size + 2:
                return None
            if size == 0:
                return self._finish(b"".join(chunks))
            chunks.append(raw[start : start + size])
            at = start + size + 2
        return None

    def _ended(self) -> Answer:
        if self._status == 0 or self._is_chunked or self._missing:
            raise BadAnswer("the connection was closed in the middle of an answer")
        return self._finish(b"".join(self._parts))

    def _finish(self, body: bytes) -> Answer:
        answer = Answer(self._status, body, self._closes, self._tag)
        self._begin_anew()
        return answer
