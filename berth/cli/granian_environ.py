# SPDX-License-Identifier: Apache-2.0
"""Four places where Granian calls a WSGI application otherwise than other servers do, set right.

Checked and found faithful (tests/e2e/test_serve.py): methods of any spelling, doubled slashes,
percent-decoding, repeated headers, absent and empty Content-Type, chunked bodies. Left to Granian,
which answers with an empty body before any application is asked: a Content-Length that is no
number (400), bytes in the request line that are not ASCII (400), a request line over 64 KiB (414),
more than 100 headers or more bytes of them than `serve.HEADER_BYTES_MAX` (431).
A header value that is not ASCII reaches the application empty.
"""

import functools
import os
import time
from collections.abc import Iterable, Mapping
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from berth.api.paths import CANDIDATES
from berth.api.receiving import CLIENT_GONE
from berth.cli.slow_clients import SlowClients


def for_granian(
    application: WSGIApplication,
    slow_clients: SlowClients,
    environment: Mapping[str, str] = os.environ,
) -> WSGIApplication:
    """Wrap an application so that Granian calls it the way other WSGI servers do.

    Granian lays each request over a copy of the process's environment, where HTTP_PROXY and its
    like then pass for request headers, and it gives a request without a Host header an empty one
    (elsewhere it has none, so that the server's own name is used for links). And it waits for ever
    for a body that is announced, and does not say that a client has gone.
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
            environ["wsgi.input"] = slow_clients.watched(
                environ["wsgi.input"], environ["REMOTE_ADDR"]
            )
        return application(environ, start_response)

    return faithful
