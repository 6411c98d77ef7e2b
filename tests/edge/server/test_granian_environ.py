# SPDX-License-Identifier: Apache-2.0
"""When a request has ended, for the deadlines of clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import Any

import pytest

from berth.edge.server.granian_environ import for_granian
from berth.edge.server.slow_clients import SlowClients


def call(
    slow_clients: SlowClients, application: Callable[..., Iterable[bytes]], **environ: Any
) -> Any:
    """Call an application as Granian does."""
    usual = {"REMOTE_ADDR": "192.0.2.1", "HTTP_HOST": "", "REQUEST_METHOD": "GET"}
    called = {**usual, "PATH_INFO": "/resource_providers", "wsgi.input": BytesIO(), **environ}
    return for_granian(application, slow_clients, {})(called, lambda *_: lambda piece: None)


def test_a_streamed_request_ends_when_the_server_closes_it() -> None:
    """Not when the application returns, nor with the last piece, which may not have been sent."""
    slow_clients = SlowClients(30.0)
    closed: list[bool] = []

    def pieces() -> Iterator[bytes]:
        try:
            yield b"a"
            yield b"b"
        finally:
            closed.append(True)

    answer = call(slow_clients, lambda *_: pieces())
    (request,) = slow_clients.requests
    assert request.is_streamed
    assert next(iter(answer)) == b"a"
    assert slow_clients.requests and not closed
    answer.close()
    assert closed and not slow_clients.requests


def test_a_whole_answer_ends_its_request_at_once() -> None:
    """It is in memory; the kernel says what has been sent of it."""
    slow_clients = SlowClients(30.0)
    assert call(slow_clients, lambda *_: [b"a"]) == [b"a"]
    assert not slow_clients.requests


@pytest.mark.parametrize("length", ["0", "many"])
def test_a_request_ends_whatever_fails(length: str) -> None:
    """Otherwise it would protect slow clients from the same address for ever."""

    def failing(*_: object) -> Iterable[bytes]:
        raise ValueError

    slow_clients = SlowClients(30.0)
    with pytest.raises(ValueError):
        call(slow_clients, failing, CONTENT_LENGTH=length)
    assert not slow_clients.requests
