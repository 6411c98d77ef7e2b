# SPDX-License-Identifier: Apache-2.0
"""Receiving: reads the whole body of a request, within the size limits, before it is served.

A client may announce a body and send it slowly, or never. So a request that waits for its body
takes no place among the running ones (`admission`), and a limited number may wait at a time: reads
have no bodies and are not affected by slow writers. The timeout is the server's, which alone can
end the wait: it raises TimeoutError from `wsgi.input`.

A small body is read at once. Of a larger one, `Receiving.begin` reads only as much as a small body
may have; `Receiving.rest` reads the rest, after authentication. So an unauthenticated client can
make a worker hold at most `SMALL` bytes per request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Protocol
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.body import count_elements
from berth.api.environ import BODY, CONTEXT
from berth.api.errors import Refused, overloaded
from berth.config import ReceivingSettings
from berth.edge.layers import refuse

#: The environ key of a body that the first layer has read only in part.
_BEGUN = "berth.begun_body"

#: The methods with operations that take a body.
_WITH_BODY = ("PUT", "POST")

#: Bytes to read from the server at a time.
_PIECE = 64 * 1024

#: Bytes of a body that is read before authentication. Only requests that name hundreds of
#: consumers or providers are larger.
SMALL = 64 * 1024

#: Elements that a body may have per MiB of `body_mib_max`. Real requests have half as many.
ELEMENTS_PER_MIB = 65_536

#: Bytes of memory that a decoded element takes.
ELEMENT_BYTES = 64

#: Bytes that all larger bodies together may take, per byte of `body_mib_max`, from when they are
#: read until their requests are answered. The largest one takes five.
MEMORY_PER_BYTE = 16

#: A Content-Length with more digits cannot be real.
_LENGTH_DIGITS_MAX = 18


class Stream(Protocol):
    """The part of `wsgi.input` that is used here."""

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes, or fewer at the end."""


#: Runs an application with a request, once there is a place for it (`admission`).
Run = Callable[[WSGIApplication, WSGIEnvironment, StartResponse], Iterable[bytes]]


class Budget:
    """Counts what is in use, up to a limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._used = 0

    @property
    def used(self) -> int:
        """How much is in use now."""
        return self._used

    def take(self, count: int) -> None:
        """Count this many more.

        Raises:
            Refused: 503, that would exceed the limit.
        """
        with self._lock:
            if self._used + count > self._most:
                raise overloaded()
            self._used += count

    def give_back(self, count: int) -> None:
        """Count this many fewer."""
        with self._lock:
            self._used -= count


class Receiving:
    """The two layers that put each body into `environ[BODY]`, or answer with an error.

    414: path and query exceed their limit. 413: the body's announced length (without reading it),
    its actual length or its number of elements exceeds the limit. 408: the server gave up waiting
    for it. 400: it ended early. 503: too many bodies are awaited, or too many bytes are held.
    """

    def __init__(self, settings: ReceivingSettings) -> None:
        self._settings = settings
        self._bytes_max = settings.body_mib_max * 2**20
        self._elements_max = settings.body_mib_max * ELEMENTS_PER_MIB
        self._uri_length_max = settings.uri_kib_max * 1024
        #: The bodies that are awaited.
        self._waiting = Budget(settings.bodies_waiting_max)
        #: The bytes held for bodies that are not small.
        self.budget = Budget(self._bytes_max * MEMORY_PER_BYTE)

    def begin(self, application: WSGIApplication, run: Run) -> WSGIApplication:
        """The layer before authentication: reads small bodies, and runs the application with their
        requests; begins the others."""

        def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            uri_length = len(environ.get("QUERY_STRING", "")) + len(environ["PATH_INFO"])
            if uri_length > self._uri_length_max:
                refused = _too_long(self._settings.uri_kib_max)
                return refuse(refused, environ, start_response)
            if environ["REQUEST_METHOD"] not in _WITH_BODY:
                return run(application, environ, start_response)
            try:
                begun = self._begin(environ)
            except Refused as refused:
                return refuse(refused, environ, start_response)
            if begun is None:
                return run(application, environ, start_response)
            environ[_BEGUN] = begun
            with closing(begun):
                return application(environ, start_response)

        return layer

    def rest(self, application: WSGIApplication, run: Run) -> WSGIApplication:
        """The layer after authentication: reads the rest of bodies that are not small, and runs the
        application with their requests.

        It leaves an unauthenticated request's body unread: no public operation takes one.
        """

        def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            begun: _Body | None = environ.pop(_BEGUN, None)
            if begun is None:
                return application(environ, start_response)
            if environ[CONTEXT].user_id is not None:
                try:
                    environ[BODY] = self._read_rest(begun)
                except Refused as refused:
                    return refuse(refused, environ, start_response)
            return run(application, environ, start_response)

        return layer

    def _begin(self, environ: WSGIEnvironment) -> _Body | None:
        """Store the body in the environ if it turns out to be small, else return what is read of
        it."""
        announced = _announced(environ)
        if announced == 0:
            environ[BODY] = b""
            return None
        if announced is not None and announced > self._bytes_max:
            raise _too_large(self._settings.body_mib_max)
        body = _Body(environ["wsgi.input"], announced, self._waiting, self.budget)
        try:
            if announced is None or announced <= SMALL:
                while not body.is_whole and len(body.buffer) <= SMALL:
                    body.read_piece()
        except BaseException:
            body.close()
            raise
        if not body.is_whole:
            return body
        environ[BODY] = bytes(body.buffer)
        body.close()
        return None

    def _read_rest(self, body: _Body) -> bytes:
        body.reserve(len(body.buffer) if body.announced is None else body.announced)
        while not body.is_whole:
            body.read_piece()
            if len(body.buffer) > self._bytes_max:
                raise _too_large(self._settings.body_mib_max)
            body.reserve(len(body.buffer) - body.reserved)
        body.leave()
        elements = count_elements(body.buffer)
        if elements > self._elements_max:
            raise _too_many(self._elements_max)
        body.reserve(elements * ELEMENT_BYTES)
        whole = bytes(body.buffer)
        body.buffer.clear()  # do not keep two copies while the request is answered
        return whole


class _Body:
    """A body that has been read in part, or not yet.

    Args:
        announced: its announced length in bytes; None if there is none.
        waiting: the bodies that are awaited, of which it is one until `leave`.
        memory: the bytes that are held for bodies.

    Attributes:
        reserved: the bytes that it has of `memory` until `close`.

    Raises:
        Refused: 503, too many are awaited.
    """

    def __init__(
        self, stream: Stream, announced: int | None, waiting: Budget, memory: Budget
    ) -> None:
        waiting.take(1)
        self._stream = stream
        self.announced = announced
        self._waiting: Budget | None = waiting
        self._memory = memory
        self.reserved = 0
        self.buffer = bytearray()
        self.is_whole = False

    def read_piece(self) -> None:
        """Read the next piece.

        Raises:
            Refused: 408 if the server gave up waiting; 400 if the body cannot be read, or ended
                early.
        """
        size = len(self.buffer)
        left = _PIECE if self.announced is None else min(_PIECE, self.announced - size)
        try:
            piece = self._stream.read(left)
        except TimeoutError as error:
            raise Refused(408, f"The body took too long to arrive: {error}") from error
        except OSError as error:
            raise Refused(400, f"The body cannot be read: {error}") from error
        self.buffer += piece
        if not piece and self.announced is not None:
            raise Refused(400, f"The body ended after {size} of {self.announced} bytes.")
        self.is_whole = not piece or len(self.buffer) == self.announced

    def reserve(self, count: int) -> None:
        """Reserve this many more bytes; none if the number is negative.

        Raises:
            Refused: 503.
        """
        if count > 0:
            self._memory.take(count)
            self.reserved += count

    def leave(self) -> None:
        """Stop counting it as awaited."""
        if self._waiting is not None:
            self._waiting.give_back(1)
            self._waiting = None

    def close(self) -> None:
        """Give back its place and its bytes."""
        self.leave()
        self._memory.give_back(self.reserved)


def _announced(environ: WSGIEnvironment) -> int | None:
    """The announced length in bytes; None if only the end of the stream tells it."""
    length = environ.get("CONTENT_LENGTH")
    if length:
        if not (length.isascii() and length.isdigit()):
            return 0
        return int(length) if len(length) <= _LENGTH_DIGITS_MAX else 10**_LENGTH_DIGITS_MAX
    if environ.get("wsgi.input_terminated") or "HTTP_TRANSFER_ENCODING" in environ:
        return None
    return 0


def _too_large(mib_max: int) -> Refused:
    return Refused(413, f"A body may have {mib_max} MiB at most; send it in parts.")


def _too_many(elements_max: int) -> Refused:
    return Refused(
        413,
        f"A body may have {elements_max} commas and opening brackets at most; send it in parts.",
    )


def _too_long(kib_max: int) -> Refused:
    return Refused(414, f"Path and query may have {kib_max} KiB together; ask in parts.")
