# SPDX-License-Identifier: Apache-2.0
"""A service in this process: one socket for all tests of a worker, with a database for each."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from berth import config
from berth.edge.app import create_app
from berth.index import Index
from tests.e2e.serving import configured
from tests.fresh import opened_at

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class Service:
    """A service without authentication; `url` stays, the application is that of a test."""

    def __init__(self) -> None:
        self.url = ""
        self._application: WSGIApplication | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        assert self._application is not None, "a test serves a database first"
        return self._application(environ, start_response)

    def serve(self, folder: Path) -> None:
        """Serve berth.db in a folder, from now on."""
        url = f"sqlite:///{folder}/berth.db"
        settings = config.read_settings(config.load([str(configured(folder, url))]))
        database = opened_at(url)
        self._application = create_app(settings, database, Index(database))


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def listening() -> Iterator[Service]:
    """A service on a free port, until the block ends."""
    service = Service()
    with make_server("127.0.0.1", 0, service, _Server, _Quiet) as server:
        service.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield service
        server.shutdown()
        thread.join()
