# SPDX-License-Identifier: Apache-2.0
"""Receiving: a request is here as a whole, and no larger than it may be, before it is served.

A client may announce a body and take its time to send it, or never send it. Whoever waits for it
therefore has no place among those who are served (`admission`), and only so many may wait at a
time: reads have no bodies, and go on whatever slow writers do. For how long one waits is the
server's business, which alone can end it: it raises TimeoutError from `wsgi.input`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Protocol
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.errors import Refused
from berth.api.in_front import overloaded, refuse
from berth.config import ReceivingSettings

#: Where the bytes of a request's body are found below this layer.
BODY = "berth.body"

#: Where the server may leave a function that says whether the client has gone, and nobody waits for
#: the answer any more; absent where the server cannot tell.
CLIENT_GONE = "berth.client_gone"

#: The methods of which some operation takes a body.
_WITH_BODY = ("PUT", "POST")

#: Bytes that are asked of the server at a time.
_PIECE = 64 * 1024

#: A body of more bytes is large. All but a reshape of thousands of consumers are far smaller.
LARGE = 2**20

#: Large bodies that are in memory at a time, from when they outgrow `LARGE` until their request is
#: answered: anybody may send one, before it is known who that is.
LARGE_AT_A_TIME = 8

#: More digits are no length that anything could have.
_LENGTH_DIGITS_MAX = 18


class Stream(Protocol):
    """What is needed of `wsgi.input`."""

    def read(self, size: int, /) -> bytes:
        """As many bytes, or fewer where it ends."""


def receive(settings: ReceivingSettings) -> Callable[[WSGIApplication], WSGIApplication]:
    """A layer that leaves each body in `environ[BODY]`, and answers what is too large or too slow.

    414 for a path and query over their limit; 413 for a body over its limit, by its announced
    length without reading it, or once it has grown too long; 408 where the server gave up waiting
    for it; 400 where it ended early; 503 where too many are awaited or too many large ones held.
    """
    waiting = threading.Semaphore(settings.bodies_waiting_max)
    large = threading.Semaphore(LARGE_AT_A_TIME)
    uri_length_max = settings.uri_kib_max * 1024

    def wrap(application: WSGIApplication) -> WSGIApplication:
        def layer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            if len(environ.get("QUERY_STRING", "")) + len(environ["PATH_INFO"]) > uri_length_max:
                return refuse(_too_long(settings.uri_kib_max), environ, start_response)
            if environ["REQUEST_METHOD"] not in _WITH_BODY:
                return application(environ, start_response)
            with ExitStack() as held:
                try:
                    environ[BODY] = _read_body(environ, settings, waiting, large, held)
                except Refused as refused:
                    return refuse(refused, environ, start_response)
                return application(environ, start_response)

        return layer

    return wrap


def _read_body(
    environ: WSGIEnvironment,
    settings: ReceivingSettings,
    waiting: threading.Semaphore,
    large: threading.Semaphore,
    held: ExitStack,
) -> bytes:
    """The body; empty where there is none, or its length is no number, which is told later."""
    announced = _announced(environ)
    if announced == 0:
        return b""
    bytes_max = settings.body_mib_max * 2**20
    if announced is not None and announced > bytes_max:
        raise _too_large(settings.body_mib_max)
    if not waiting.acquire(blocking=False):
        raise overloaded()
    try:
        pieces: list[bytes] = []
        size = 0
        for piece in _pieces(environ["wsgi.input"], announced):
            size += len(piece)
            if size > bytes_max:
                raise _too_large(settings.body_mib_max)
            if size > LARGE >= size - len(piece):
                if not large.acquire(blocking=False):
                    raise overloaded()
                held.callback(large.release)
            pieces.append(piece)
    except TimeoutError as error:
        raise Refused(408, f"The body took too long to come: {error}") from error
    except OSError as error:
        raise Refused(400, f"The body could not be read: {error}") from error
    finally:
        waiting.release()
    if announced is not None and size < announced:
        raise Refused(400, f"The body ended after {size} of {announced} bytes.")
    return b"".join(pieces)


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


def _pieces(stream: Stream, announced: int | None) -> Iterable[bytes]:
    """What comes until the announced length is reached, or the stream ends."""
    left = announced
    while left is None or left > 0:
        piece = stream.read(_PIECE if left is None else min(_PIECE, left))
        if not piece:
            return
        yield piece
        if left is not None:
            left -= len(piece)


def _too_large(mib_max: int) -> Refused:
    return Refused(413, f"A body may have {mib_max} MiB at most; send it in parts.")


def _too_long(kib_max: int) -> Refused:
    return Refused(414, f"Path and query may have {kib_max} KiB together; ask in parts.")
