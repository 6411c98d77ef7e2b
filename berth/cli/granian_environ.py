# SPDX-License-Identifier: Apache-2.0
"""Places where Granian calls a WSGI application otherwise than other servers do, set right.

Checked and found faithful (tests/e2e/test_serve.py): methods of any spelling, doubled slashes,
percent-decoding, repeated headers, absent and empty Content-Type, chunked bodies. Left to Granian,
which answers with an empty body before any application is asked: a Content-Length that is no
number (400), bytes in the request line that are not ASCII (400), a request line over 64 KiB (414),
more than 100 headers or more bytes of them than `serve.HEADER_BYTES_MAX` (431).
A header value that is not ASCII reaches the application empty.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.paths import CANDIDATES
from berth.api.receiving import CLIENT_GONE
from berth.cli.slow_clients import SlowClients, WatchedBody

if TYPE_CHECKING:
    from _typeshed import OptExcInfo


def for_granian(
    application: WSGIApplication,
    slow_clients: SlowClients,
    environment: Mapping[str, str] = os.environ,
) -> WSGIApplication:
    """Wrap an application so that Granian calls it the way other WSGI servers do.

    Granian lays each request over a copy of the process's environment, where HTTP_PROXY and its
    like then pass for request headers, and it gives a request without a Host header an empty one
    (elsewhere it has none, so that the server's own name is used for links). It waits for ever for
    a body that is announced, and does not say that a client has gone. And it keeps a connection on
    which the rest of a body is still to come, unless the answer says that it ends.
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
        if environ["PATH_INFO"] == CANDIDATES:
            # Nothing else takes so long that it would be worth to know.
            environ[CLIENT_GONE] = functools.partial(
                slow_clients.has_gone, environ["REMOTE_ADDR"], time.monotonic()
            )
        if "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ:
            body = slow_clients.watched(environ["wsgi.input"], environ["REMOTE_ADDR"])
            environ["wsgi.input"] = body
            start_response = _ending_unless_read(start_response, body, _announced(environ))
        return application(environ, start_response)

    return faithful


def _announced(environ: WSGIEnvironment) -> int | None:
    """The length of the body; None where only its end will tell."""
    length: str | None = environ.get("CONTENT_LENGTH")
    return int(length) if length else None


def _ending_unless_read(
    start_response: StartResponse, body: WatchedBody, announced: int | None
) -> StartResponse:
    """An answer ends its connection where the body has not been read: what is left of it would be
    taken for the next request, or would have to be read by the server, however long it is."""

    def start(
        status: str, headers: list[tuple[str, str]], exc_info: OptExcInfo | None = None
    ) -> Callable[[bytes], object]:
        if not body.is_read(announced):
            headers = [*headers, ("connection", "close")]
        return start_response(status, headers, exc_info)

    return start
