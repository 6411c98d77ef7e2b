# SPDX-License-Identifier: Apache-2.0
"""Corrects the differences between Granian's WSGI environ and that of other servers.

Tested and correct (tests/e2e/test_serve.py): methods in any spelling, doubled slashes,
percent-decoding, repeated headers, absent and empty Content-Type, chunked bodies. Granian itself
answers these with an empty body, without calling the application: a Content-Length that is not a
number (400), non-ASCII bytes in the request line (400), a request line over 64 KiB (414), more than
100 headers or more bytes of headers than `workers.HEADER_BYTES_MAX` (431).
A header value that is not ASCII reaches the application empty.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.environ import CLIENT_GONE
from berth.api.paths import match_of
from berth.edge.server.slow_clients import SlowClients, WatchedBody

if TYPE_CHECKING:
    from _typeshed import OptExcInfo


def for_granian(
    application: WSGIApplication,
    slow_clients: SlowClients,
    environment: Mapping[str, str] = os.environ,
) -> WSGIApplication:
    """Wrap an application so that Granian calls it the way other WSGI servers do.

    Granian merges each request into a copy of the process's environment, so that HTTP_PROXY and
    the like pass for request headers. It gives a request without a Host header an empty one (other
    servers give none, so that links use the server's own name). It waits for ever for an announced
    body, and does not report that a client has gone. It keeps a connection open even if the body is
    not fully read, unless the response says `Connection: close`.
    """
    leaked = {
        name: value
        for name, value in environment.items()
        if name.startswith("HTTP_") or name in ("CONTENT_TYPE", "CONTENT_LENGTH")
    }

    def faithful(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not environ["HTTP_HOST"]:
            del environ["HTTP_HOST"]
        for name, value in leaked.items():
            if environ.get(name) == value:
                del environ[name]
        request = slow_clients.begin(environ["REMOTE_ADDR"])
        try:
            kind = match_of(environ).kind
            if kind.search_seconds is not None or kind.is_watch:
                # No other request takes long enough for this to matter.
                environ[CLIENT_GONE] = functools.partial(
                    slow_clients.has_gone, request.address, request.since
                )
            if "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ:
                body = WatchedBody(environ["wsgi.input"], request, slow_clients)
                environ["wsgi.input"] = body
                start_response = _ending_unless_read(start_response, body, _announced(environ))
            answer = application(environ, start_response)
        except BaseException:
            slow_clients.end(request)
            raise
        if type(answer) is not list:
            request.is_streamed = True
            return _Streamed(answer, functools.partial(slow_clients.end, request))
        slow_clients.end(request)
        return answer

    return faithful


class _Streamed:
    """An answer that is made in pieces; its request ends when the server closes it."""

    def __init__(self, pieces: Iterable[bytes], end: Callable[[], None]) -> None:
        self._pieces = pieces
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)

    def close(self) -> None:
        """End the request, and close the pieces if they can be closed."""
        self._end()
        getattr(self._pieces, "close", lambda: None)()


def _announced(environ: WSGIEnvironment) -> int | None:
    """The announced length of the body; None if there is none."""
    length: str | None = environ.get("CONTENT_LENGTH")
    return int(length) if length else None


def _ending_unless_read(
    start_response: StartResponse, body: WatchedBody, announced: int | None
) -> StartResponse:
    """Close the connection after the response if the body has not been read: the server would
    take the rest for the next request, or would have to read it, however long it is."""

    def start(
        status: str, headers: list[tuple[str, str]], exc_info: OptExcInfo | None = None
    ) -> Callable[[bytes], object]:
        if not body.is_read(announced):
            headers = [*headers, ("connection", "close")]
        return start_response(status, headers, exc_info)

    return start
