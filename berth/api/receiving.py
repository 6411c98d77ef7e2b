# SPDX-License-Identifier: Apache-2.0
"""Receiving: a request is here as a whole, and no larger than it may be, before it is served.

A client may announce a body and take its time to send it, or never send it. A request that waits
for its body therefore has no place among those that run (`admission`), and only so many may wait at
a time: reads have no bodies, and go on whatever slow writers do. For how long one waits is the
server's business, which alone can end it: it raises TimeoutError from `wsgi.input`.

A small body is read at once, whoever sends it. Of a larger one `Receiving.begin` reads no more than
a small one has; the rest is read by `Receiving.rest`, which stands behind the authentication. So a
stranger can make a worker keep `SMALL` bytes with each request, and no more.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Protocol
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.environ import CONTEXT
from berth.api.errors import Refused
from berth.api.in_front import overloaded, refuse
from berth.api.json_form import count_elements
from berth.config import ReceivingSettings

#: Where the bytes of a request's body are found below this layer.
BODY = "berth.body"

#: Where the first layer leaves a body that it has not read to its end.
_BEGUN = "berth.begun_body"
#: Where the server may leave a function that says whether the client has gone, and nobody waits for
#: the answer any more; absent where the server cannot tell.
CLIENT_GONE = "berth.client_gone"

#: The methods of which some operation takes a body.
_WITH_BODY = ("PUT", "POST")

#: Bytes that are asked of the server at a time.
_PIECE = 64 * 1024

#: Bytes of a body that is read before it is known who sends it. Only what names hundreds of
#: consumers or providers is larger.
SMALL = 64 * 1024

#: Elements that a body may have, for each MiB of `body_mib_max`. Requests that mean something have
#: half as many.
ELEMENTS_PER_MIB = 65_536

#: What decoding makes of an element, in bytes.
ELEMENT_BYTES = 64

#: What larger bodies may take at a time, in bytes for each byte of `body_mib_max`, from when they
#: are read until their requests are answered. The largest one takes five.
HELD_PER_BYTE = 16

#: More digits are no length that anything could have.
_LENGTH_DIGITS_MAX = 18


class Stream(Protocol):
    """What is needed of `wsgi.input`."""

    def read(self, size: int, /) -> bytes:
        """As many bytes, or fewer where it ends."""


class Held:
    """How many bytes are held, and may be."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """How many there are now."""
        return self._bytes

    def take(self, size: int) -> bool:
        """Hold so many more; False where there is no room for them."""
        with self._lock:
            if self._bytes + size > self._bytes_max:
                return False
            self._bytes += size
            return True

    def give_back(self, size: int) -> None:
        """Hold so many less."""
        with self._lock:
            self._bytes -= size


class Receiving:
    """The two layers that leave each body in `environ[BODY]`, or answer why they do not.

    414 for a path and query over their limit; 413 for a body over its limit, by its announced
    length without reading it, or once it has grown too long, or has too many elements; 408 where
    the server gave up waiting for it; 400 where it ended early; 503 where too many are awaited or
    too much is held.
    """

    def __init__(self, settings: ReceivingSettings) -> None:
        self._settings = settings
        self._bytes_max = settings.body_mib_max * 2**20
        self._elements_max = settings.body_mib_max * ELEMENTS_PER_MIB
        self._uri_length_max = settings.uri_kib_max * 1024
        self._waiting = threading.Semaphore(settings.bodies_waiting_max)
        #: What is held of bodies that are not small.
        self.held = Held(self._bytes_max * HELD_PER_BYTE)

    def begin(self, application: WSGIApplication) -> WSGIApplication:
        """The layer in front of the authentication: it reads small bodies, and begins others."""

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
        """The layer behind the authentication: it reads the rest of what is not small.

        What nobody stands behind is left unread: no operation that is open to everybody takes a
        body.
        """

        def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            begun: _Begun = environ.pop(_BEGUN)
            if environ[CONTEXT].user_id is None:
                return application(environ, start_response)
            with ExitStack() as held:
                try:
                    environ[BODY] = self._read_rest(begun, held)
                except Refused as refused:
                    return refuse(refused, environ, start_response)
                finally:
                    begun.place.close()
                return application(environ, start_response)

        return layer

    def _read_small(self, stream: Stream, announced: int) -> bytes:
        """A small body. PERF bench, claims: what a claim has, so it goes the shortest way."""
        if not announced:
            return b""
        if not self._waiting.acquire(blocking=False):
            raise overloaded()
        try:
            body = _read(stream, announced)
            if len(body) == announced:
                return body
            # It comes in many pieces, which may be of one byte each.
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
        """Leave a body that turns out to be small, or what is begun of a larger one."""
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

    def _read_rest(self, begun: _Begun, held: ExitStack) -> bytes:
        held_bytes = begun.size if begun.announced is None else begun.announced
        self._hold(held_bytes, held)
        while not begun.is_whole:
            begun.read_piece()
            if begun.size > self._bytes_max:
                raise _too_large(self._settings.body_mib_max)
            if begun.size > held_bytes:
                self._hold(begun.size - held_bytes, held)
                held_bytes = begun.size
        elements = count_elements(begun.buffer)
        if elements > self._elements_max:
            raise _too_many(self._elements_max)
        self._hold(elements * ELEMENT_BYTES, held)
        body = bytes(begun.buffer)
        begun.buffer.clear()  # or there would be two of them while the request is answered
        return body

    def _hold(self, size: int, held: ExitStack) -> None:
        """Hold so many more bytes until `held` ends.

        Raises:
            Refused: 503.
        """
        if not self.held.take(size):
            raise overloaded()
        held.callback(self.held.give_back, size)


class _Begun:
    """A body of which some has been read, or none.

    Args:
        announced: how many bytes it has; None where only the stream's end will tell.
        place: ends its place among those that are awaited.
    """

    def __init__(self, stream: Stream, announced: int | None, place: ExitStack) -> None:
        self._stream = stream
        self.announced = announced
        self.place = place
        self.buffer = bytearray()
        self.is_whole = False

    @property
    def size(self) -> int:
        """How many bytes have been read."""
        return len(self.buffer)

    def read_piece(self) -> None:
        """Read on.

        Raises:
            Refused: 408 where the server gave up waiting; 400 where the body ended early.
        """
        left = _PIECE if self.announced is None else min(_PIECE, self.announced - self.size)
        piece = _read(self._stream, left)
        self.buffer += piece
        if not piece and self.announced is not None:
            raise _ended_early(self.size, self.announced)
        self.is_whole = not piece or self.size == self.announced


def by_size(*, small: WSGIApplication, large: WSGIApplication) -> WSGIApplication:
    """Pass requests of which the body is still to be read to `large`, and all others to `small`."""

    def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return (large if _BEGUN in environ else small)(environ, start_response)

    return layer


def _announced(environ: WSGIEnvironment) -> int | None:
    """How many bytes are to come; None where only the stream's end will tell."""
    length = environ.get("CONTENT_LENGTH")
    if length:
        if not (length.isascii() and length.isdigit()):
            return 0
        return int(length) if len(length) <= _LENGTH_DIGITS_MAX else 10**_LENGTH_DIGITS_MAX
    if environ.get("wsgi.input_terminated") or "HTTP_TRANSFER_ENCODING" in environ:
        return None
    return 0


def _read(stream: Stream, size: int) -> bytes:
    """So many bytes, or fewer; none at the end.

    Raises:
        Refused: 408 where the server gave up waiting; 400 where they cannot be read.
    """
    try:
        return stream.read(size)
    except TimeoutError as error:
        raise Refused(408, f"The body took too long to come: {error}") from error
    except OSError as error:
        raise Refused(400, f"The body could not be read: {error}") from error


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
