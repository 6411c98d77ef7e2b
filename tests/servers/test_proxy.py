# SPDX-License-Identifier: Apache-2.0
"""The proxy does what it says to the chosen connections, and nothing to others."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.e2e.serving import PATIENCE
from tests.servers.proxy import Proxy, sends


class Echo:
    """A server that returns what it receives, and records it."""

    def __init__(self) -> None:
        self.heard = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            while piece := client.recv(1024):
                self.heard += piece
                client.sendall(piece)

    def close(self) -> None:
        """Stop accepting connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    """A server behind the proxy."""
    echo = Echo()
    yield echo
    echo.close()


@pytest.fixture
def proxy(echo: Echo) -> Iterator[Proxy]:
    """A proxy in front of it."""
    proxy = Proxy(echo.host, echo.port)
    yield proxy
    proxy.close()


def dial(proxy: Proxy) -> socket.socket:
    """A client's connection through the proxy."""
    return socket.create_connection((proxy.host, proxy.port), timeout=PATIENCE)


def ask(client: socket.socket, text: bytes) -> bytes:
    """The response to a text; empty if the connection has ended."""
    client.sendall(text)
    return client.recv(1024)


def test_it_refuses_new_connections_and_keeps_the_old(proxy: Proxy) -> None:
    """Until it accepts again, on the same port."""
    with dial(proxy) as old:
        assert ask(old, b"before") == b"before"
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            dial(proxy)
        assert ask(old, b"after") == b"after"
    proxy.accept()
    with dial(proxy) as new:
        assert ask(new, b"new") == b"new"


@pytest.mark.parametrize(
    ("lose", "before", "after"),
    [
        (Proxy.lose_answer, b"begin;COMMIT;", b"begin;COMMIT;"),
        (Proxy.lose_request, b"begin;", b"begin;"),
        (Proxy.deliver_late, b"begin;", b"begin;COMMIT;"),
    ],
)
def test_a_connection_is_lost_around_its_trigger(
    proxy: Proxy, echo: Echo, lose: object, before: bytes, after: bytes
) -> None:
    """Once, and only for who asked: its client cannot tell whether the server got the request, and
    before or after it was gone. A trigger is a word; the first messages of a client have none."""
    assert callable(lose)
    with dial(proxy) as one, dial(proxy) as other:
        fault = lose(proxy, sends(b"commit"))
        for text in (b"SET AUTOCOMMIT = 0", b"BEGIN ISOLATION LEVEL READ COMMITTED"):
            assert ask(other, text) == text
        echo.heard = b""
        assert ask(other, b"begin;") == b"begin;"
        assert ask(one, b"COMMIT;") == b""
        assert echo.heard == before
        fault.wait()
        assert echo.heard == after
        assert ask(other, b"commit;") == b"commit;"


def test_a_silenced_client_waits(proxy: Proxy, echo: Echo) -> None:
    """The server has answered, and the connection stays open."""
    with dial(proxy) as client:
        fault = proxy.silence(sends(b"commit"))
        client.sendall(b"commit;")
        fault.wait()
        assert echo.heard == b"commit;"
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.recv(1, socket.MSG_PEEK)
