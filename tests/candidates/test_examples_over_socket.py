# SPDX-License-Identifier: Apache-2.0
"""One recorded example of some worlds over a socket, with the server of the standard library."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from tests.candidates.examples import ask, assert_recorded, recorded_examples
from tests.client import Client
from tests.e2e.serving import PATIENCE
from tests.effort import some_of
from tests.world_over_http import built_over_http

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

FIRST_OF_EACH_WORLD = [
    *{example.world_key: example for example in reversed(recorded_examples())}.values()
]


@pytest.fixture(scope="module")
def remote(server_app: WSGIApplication) -> Iterator[Client]:
    """A client of the application on a free port of the loopback interface."""

    class Quiet(WSGIRequestHandler):
        timeout = PATIENCE  # one that connects and is silent would hold all others up

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing: the test reports failures."""

    with make_server("127.0.0.1", 0, server_app, handler_class=Quiet) as http_server:
        thread = Thread(target=http_server.serve_forever)
        thread.start()
        try:
            yield Client.at(f"http://127.0.0.1:{http_server.server_port}")
        finally:
            http_server.shutdown()
            thread.join()


@pytest.mark.in_process
def test_the_recorded_answers_come_through_a_socket(remote: Client) -> None:
    """A server in front of the application does not change the responses; others in each run."""
    for example in some_of(FIRST_OF_EACH_WORLD, "socket"):
        with built_over_http(example.world, remote):
            assert_recorded(example, ask(remote, example))
