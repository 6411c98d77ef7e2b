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
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Protocol
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.environ import BODY, CONTEXT
from berth.api.errors import Refused, overloaded
from berth.api.json_form import count_elements
from berth.config import ReceivingSettings
from berth.edge.in_front import refuse

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


class ByteBudget:
    """Counts the bytes held in memory, up to a limit."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """The bytes held now."""
        return self._bytes

    def take(self, size: int) -> bool:
        """Count this many more; False if that exceeds the limit."""
        with self._lock:
            if self._bytes + size > self._bytes_max:
                return False
            self._bytes += size
            return True

    def give_back(self, size: int) -> None:
        """Count this many fewer."""
        with self._lock:
            self._bytes -= size


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
        self._waiting = threading.Semaphore(settings.bodies_waiting_max)
        #: The bytes held for bodies that are not small.
        self.budget = ByteBudget(self._bytes_max * MEMORY_PER_BYTE)

    def begin(self, application: WSGIApplication) -> WSGIApplication:
        """The layer before authentication: reads small bodies and begins the others."""

        def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            uri_length = len(environ.get("QUERY_STRING", "")) + len(environ["PATH_INFO"])
            if uri_length > self._uri_length_max:
                refused = _too_long(self._settings.uri_kib_max)
                return refuse(refused, environ, start_response)
            if environ["REQUEST_METHOD"] not in _WITH_BODY:
                return application(environ, start_response)
            announced = _announced(environ)
            if announced is not None and announced <= SMALL:
                try:
                    environ[BODY] = self._read_small(environ["wsgi.input"], announced)
                except Refused as refused:
                    return refuse(refused, environ, start_response)
                return application(environ, start_response)
            with ExitStack() as place:
                try:
                    self._begin(environ, announced, place)
                except Refused as refused:
                    return refuse(refused, environ, start_response)
                return application(environ, start_response)

        return layer

    def rest(self, application: WSGIApplication) -> WSGIApplication:
        """The layer after authentication: reads the rest of bodies that are not small.

        It leaves an unauthenticated request's body unread: no public operation takes one.
        """

        def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            begun: _Begun = environ.pop(_BEGUN)
            if environ[CONTEXT].user_id is None:
                return application(environ, start_response)
            with ExitStack() as reservation:
                try:
                    environ[BODY] = self._read_rest(begun, reservation)
                except Refused as refused:
                    return refuse(refused, environ, start_response)
                finally:
                    begun.place.close()
                return application(environ, start_response)

        return layer

    def _read_small(self, stream: Stream, announced: int) -> bytes:
        """Read a small body. PERF bench, claims: claims have these, so the path is short."""
        if not announced:
            return b""
        if not self._waiting.acquire(blocking=False):
            raise overloaded()
        try:
            body = _read(stream, announced)
            if len(body) == announced:
                return body
            # It comes in many pieces, perhaps of one byte each.
            buffer = bytearray(body)
            while len(buffer) < announced:
                piece = _read(stream, announced - len(buffer))
                if not piece:
                    raise _ended_early(len(buffer), announced)
                buffer += piece
            return bytes(buffer)
        finally:
            self._waiting.release()

    def _begin(self, environ: WSGIEnvironment, announced: int | None, place: ExitStack) -> None:
        """Store the body in the environ if it turns out to be small, else its beginning."""
        if announced is not None and announced > self._bytes_max:
            raise _too_large(self._settings.body_mib_max)
        if not self._waiting.acquire(blocking=False):
            raise overloaded()
        place.callback(self._waiting.release)
        begun = _Begun(environ["wsgi.input"], announced, place)
        if announced is None:
            while not begun.is_whole and begun.size <= SMALL:
                begun.read_piece()
        if begun.is_whole:
            environ[BODY] = bytes(begun.buffer)
            place.close()
        else:
            environ[_BEGUN] = begun

    def _read_rest(self, begun: _Begun, reservation: ExitStack) -> bytes:
        reserved_bytes = begun.size if begun.announced is None else begun.announced
        self._reserve(reserved_bytes, reservation)
        while not begun.is_whole:
            begun.read_piece()
            if begun.size > self._bytes_max:
                raise _too_large(self._settings.body_mib_max)
            if begun.size > reserved_bytes:
                self._reserve(begun.size - reserved_bytes, reservation)
                reserved_bytes = begun.size
        elements = count_elements(begun.buffer)
        if elements > self._elements_max:
            raise _too_many(self._elements_max)
        self._reserve(elements * ELEMENT_BYTES, reservation)
        body = bytes(begun.buffer)
        begun.buffer.clear()  # do not keep two copies while the request is answered
        return body

    def _reserve(self, size: int, reservation: ExitStack) -> None:
        """Reserve `size` more bytes until `reservation` closes.

        Raises:
            Refused: 503.
        """
        if not self.budget.take(size):
            raise overloaded()
        reservation.callback(self.budget.give_back, size)


class _Begun:
    """A body that has been read in part, or not yet.

    Args:
        announced: its announced length in bytes; None if there is none.
        place: closing it frees the body's place among those awaited.
    """

    def __init__(self, stream: Stream, announced: int | None, place: ExitStack) -> None:
        self._stream = stream
        self.announced = announced
        self.place = place
        self.buffer = bytearray()
        self.is_whole = False

    @property
    def size(self) -> int:
        """The number of bytes read."""
        return len(self.buffer)

    def read_piece(self) -> None:
        """Read the next piece.

        Raises:
            Refused: 408 if the server gave up waiting; 400 if the body ended early.
        """
        left = _PIECE if self.announced is None else min(_PIECE, self.announced - self.size)
        piece = _read(self._stream, left)
        self.buffer += piece
        if not piece and self.announced is not None:
            raise _ended_early(self.size, self.announced)
        self.is_whole = not piece or self.size == self.announced


def by_size(*, small: WSGIApplication, large: WSGIApplication) -> WSGIApplication:
    """Pass requests whose body is not fully read to `large`, and all others to `small`."""

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return (large if _BEGUN in environ else small)(environ, start_response)

    return layer


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


def _read(stream: Stream, size: int) -> bytes:
    """Up to `size` bytes; none at the end.

    Raises:
        Refused: 408 if the server gave up waiting; 400 if they cannot be read.
    """
    try:
        return stream.read(size)
    except TimeoutError as error:
        raise Refused(408, f"The body took too long to arrive: {error}") from error
    except OSError as error:
        raise Refused(400, f"The body cannot be read: {error}") from error


def _ended_early(size: int, announced: int) -> Refused:
    return Refused(400, f"The body ended after {size} of {announced} bytes.")


def _too_large(mib_max: int) -> Refused:
    return Refused(413, f"A body may have {mib_max} MiB at most; send it in parts.")


def _too_many(elements_max: int) -> Refused:
    return Refused(
        413,
        f"A body may have {elements_max} commas and opening brackets at most; send it in parts.",
    )


def _too_long(kib_max: int) -> Refused:
    return Refused(414, f"Path and query may have {kib_max} KiB together; ask in parts.")
