# SPDX-License-Identifier: Apache-2.0
"""A minimal HTTP client that never sends a request twice.

`tests/client.py` reconnects and repeats the request, which would falsify a history. Here, a
connection that breaks after sending is `Lost`: the request may have been performed.
"""

from __future__ import annotations

import json
import select
import socket
from contextlib import suppress
from typing import Any, Final, NamedTuple

from tests.client import ADMIN, LATEST

#: Seconds to wait for an answer: far more than any takes, so that a hang becomes a failure.
_PATIENCE: Final = 60.0


class NotSent(Exception):
    """No server listens: the request was not performed."""


class Lost(Exception):
    """The connection broke after sending: the outcome is unknown."""


class Answer(NamedTuple):
    """A status and the parsed body, None without one."""

    status: int
    body: Any
    #: What the header of that name says.
    retry_after: str | None = None
    raw: bytes = b""


class Raw(NamedTuple):
    """The raw response; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    """A connection to a server, opened when it is needed."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._socket: socket.socket | None = None
        headers = {
            **ADMIN,
            "Host": f"{host}:{port}",
            "Accept": "application/json",
        }
        self._head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    def ask(self, method: str, path: str, body: Any = None, *, version: str = LATEST) -> Answer:
        """Send one request, once.

        Raises:
            NotSent: no server listens.
            Lost: there was no response.
        """
        status, headers, rest = self.ask_raw(method, path, body, version=version)
        try:
            parsed = json.loads(rest) if rest else None
            return Answer(status, parsed, headers.get("retry-after"), rest)
        except ValueError as error:
            raise ValueError(f"{error} in {rest!r}") from error

    def ask_raw(self, method: str, path: str, body: Any = None, *, version: str = LATEST) -> Raw:
        """The same, but returns every byte of the response; a body of bytes is sent as it is."""
        text = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        kind = "" if body is None else "Content-Type: application/json\r\n"
        head = (
            f"{method} {path} HTTP/1.1\r\n{self._head}"
            f"OpenStack-API-Version: placement {version}\r\n"
            f"{kind}Content-Length: {len(text)}\r\n\r\n"
        )
        connection = self._opened()
        try:
            connection.sendall(head.encode() + text)
            return self._answer(connection)
        except OSError as error:
            self.close()
            raise Lost(f"{method} {path}: {error}") from error

    def local_port(self) -> int:
        """The local port of the connection, which is opened if necessary.

        Raises:
            NotSent: no server listens.
        """
        return int(self._opened().getsockname()[1])

    def close(self) -> None:
        """Close the connection; the next request opens another, perhaps to another worker."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _opened(self) -> socket.socket:
        if self._socket is not None and select.select([self._socket], [], [], 0)[0]:
            self.close()  # closed by the other end while it was idle
        if self._socket is None:
            try:
                self._socket = socket.create_connection(self._address, _PATIENCE)
            except OSError as error:
                raise NotSent(str(error)) from error
            with suppress(OSError):
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def _answer(self, connection: socket.socket) -> Raw:
        received = b""
        while b"\r\n\r\n" not in received:
            received += _some(connection)
        head, _, rest = received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        status = int(first.split()[1])
        named = (line.partition(":")[::2] for line in lines)
        headers = {name.lower(): value.strip() for name, value in named}
        if headers.get("transfer-encoding") == "chunked":
            rest = _unchunked(connection, rest)
        else:
            length = 0 if status == 204 else int(headers["content-length"])
            while len(rest) < length:
                rest += _some(connection)
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Raw(status, headers, rest)


def _unchunked(connection: socket.socket, received: bytes) -> bytes:
    """A chunked body that was received in parts; it ends with an empty chunk."""
    body = b""
    while True:
        while b"\r\n" not in received:
            received += _some(connection)
        size, _, received = received.partition(b"\r\n")
        length = int(size, 16)
        while len(received) < length + 2:
            received += _some(connection)
        if not length:
            return body
        body, received = body + received[:length], received[length + 2 :]


def _some(connection: socket.socket) -> bytes:
    piece = connection.recv(65536)
    if not piece:
        raise ConnectionError("the connection was closed before the answer")
    return piece
