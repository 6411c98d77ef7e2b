# SPDX-License-Identifier: Apache-2.0
"""The proxy does what it says to the chosen connections, and nothing to others."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from sqlalchemy.exc import DBAPIError

from tests.e2e.serving import PATIENCE, wait_until
from tests.servers.proxy import Proxy, proxied, sends
from tests.servers.statements import connected, run


class Echo:
    """A server that returns what it receives, and records it."""

    def __init__(self) -> None:
        self.heard = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Stop accepting connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

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


def is_silent(client: socket.socket) -> bool:
    """Whether there is neither data nor an end to read now."""
    client.setblocking(False)
    try:
        client.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    finally:
        client.settimeout(PATIENCE)
    return False


def test_it_carries_bytes_both_ways(proxy: Proxy) -> None:
    """Without faults it is transparent."""
    with dial(proxy) as one, dial(proxy) as other:
        assert ask(one, b"one") == b"one"
        assert ask(other, b"other") == b"other"
        assert ask(one, b"again") == b"again"


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


def test_it_cuts_every_connection_and_takes_new_ones(proxy: Proxy) -> None:
    """Clients read the end, and no thread of the proxy remains."""
    with dial(proxy) as one, dial(proxy) as other:
        assert ask(one, b"one") + ask(other, b"two") == b"onetwo"
        proxy.cut()
        assert one.recv(1) == other.recv(1) == b""
    wait_until(lambda: proxy.connections() == 0, "the connections to be forgotten")
    with dial(proxy) as new:
        assert ask(new, b"new") == b"new"


def test_held_bytes_arrive_when_it_lets_go(proxy: Proxy, echo: Echo) -> None:
    """A partition loses and closes nothing, neither on old connections nor on new ones."""
    with dial(proxy) as old:
        assert ask(old, b"before;") == b"before;"
        proxy.hold()
        with dial(proxy) as new:
            old.sendall(b"old;")
            new.sendall(b"new;")
            wait_until(lambda: proxy.connections() == 2, "the new connection to be taken")
            assert echo.heard == b"before;"
            assert is_silent(old)
            assert is_silent(new)
            proxy.release()
            assert old.recv(1024) == b"old;"
            assert new.recv(1024) == b"new;"


def test_a_held_connection_can_be_cut(proxy: Proxy, echo: Echo) -> None:
    """The held bytes are lost."""
    with dial(proxy) as client:
        assert ask(client, b"before;") == b"before;"
        proxy.hold()
        client.sendall(b"held;")
        proxy.cut()
        assert client.recv(1) == b""
    wait_until(lambda: proxy.connections() == 0, "the connection to be forgotten")
    proxy.release()
    assert echo.heard == b"before;"


def test_an_answer_is_lost_once_and_only_for_who_asked(proxy: Proxy, echo: Echo) -> None:
    """The server gets the request; the client's connection is closed, and no other."""
    with dial(proxy) as one, dial(proxy) as other:
        fault = proxy.lose_answer(sends(b"commit"))
        assert ask(other, b"begin;") == b"begin;"
        assert ask(one, b"COMMIT;") == b""
        fault.wait()
        assert echo.heard == b"begin;COMMIT;"
        assert ask(other, b"commit;") == b"commit;"


def test_a_lost_request_never_reaches_the_server(proxy: Proxy, echo: Echo) -> None:
    """The client cannot distinguish this from a lost answer."""
    with dial(proxy) as client:
        fault = proxy.lose_request(sends(b"commit"))
        assert ask(client, b"begin;") == b"begin;"
        assert ask(client, b"commit;") == b""
        fault.wait()
    assert echo.heard == b"begin;"


def test_a_late_request_reaches_the_server_when_its_client_is_gone(
    proxy: Proxy, echo: Echo
) -> None:
    """Neither the client nor the server can distinguish this from the others."""
    with dial(proxy) as client:
        fault = proxy.deliver_late(sends(b"commit"))
        assert ask(client, b"begin;") == b"begin;"
        assert ask(client, b"commit;") == b""
        assert echo.heard == b"begin;"
        fault.wait()
        assert echo.heard == b"begin;commit;"


@pytest.mark.parametrize("other", [b"SET AUTOCOMMIT = 0", b"BEGIN ISOLATION LEVEL READ COMMITTED"])
def test_a_trigger_is_a_word(proxy: Proxy, other: bytes) -> None:
    """The first messages of a client contain no commit."""
    with dial(proxy) as client:
        proxy.lose_answer(sends(b"commit"))
        assert ask(client, other) == other
        assert ask(client, b"\x03COMMIT\x00") == b""


def test_a_silenced_client_waits(proxy: Proxy, echo: Echo) -> None:
    """The server has answered, and the connection stays open."""
    with dial(proxy) as client:
        fault = proxy.silence(sends(b"commit"))
        client.sendall(b"commit;")
        fault.wait()
        assert echo.heard == b"commit;"
        assert is_silent(client)
        assert proxy.connections() == 1


def test_a_server_that_is_not_there_ends_the_connection(proxy: Proxy, echo: Echo) -> None:
    """The client is accepted, and then its connection ends."""
    echo.close()
    with dial(proxy) as client:
        assert client.recv(1) == b""


@pytest.mark.engines("postgresql", "mariadb")
def test_a_commit_whose_answer_is_lost_is_done(database_url: str) -> None:
    """The client's connection breaks, and the row exists."""
    run(database_url, "CREATE TABLE kept (number INTEGER)")
    with proxied(database_url) as proxy:
        fault = proxy.lose_answer(sends(b"COMMIT"))
        with pytest.raises(DBAPIError):
            run(proxy.url(database_url), "INSERT INTO kept VALUES (1)")
        fault.wait()
    assert run(database_url, "SELECT number FROM kept") == [(1,)]


@pytest.mark.engines("postgresql", "mariadb")
def test_a_commit_that_is_lost_on_its_way_is_not_done(database_url: str) -> None:
    """The client's connection breaks too, and the row does not exist."""
    run(database_url, "CREATE TABLE kept (number INTEGER)")
    with proxied(database_url) as proxy:
        fault = proxy.lose_request(sends(b"COMMIT"))
        with pytest.raises(DBAPIError), connected(proxy.url(database_url)) as client:
            client.exec_driver_sql("INSERT INTO kept VALUES (1)")
            client.commit()
        fault.wait()
    assert run(database_url, "SELECT number FROM kept") == []
