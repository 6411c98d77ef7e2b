# SPDX-License-Identifier: Apache-2.0
"""A network between a client and a server that can fail as networks do.

The proxy forwards the bytes of TCP connections between its own port and a server's. A test switches
faults on and off from any thread. Two threads forward each connection, one per direction, so that a
stuck direction does not block the other.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit, urlunsplit

from tests.e2e.serving import PATIENCE
from tests.servers.ports import HOST, free_port

#: Bytes carried at once.
_PIECE = 65536

#: For how long a piece is under way that comes late, in seconds.
_LATE_S = 0.3

#: Says of a piece that a client sent whether it is the one that a fault waits for.
Trigger = Callable[[bytes], bool]


class _Loss(Enum):
    """What happens to a connection whose client sends what a fault waits for."""

    REQUEST = "the piece never reaches the server, and the connection is cut"
    ANSWER = "the server answers, the answer never reaches the client, and the connection is cut"
    SILENCE = "the server answers, and the client hears nothing any more"
    LATE = "the client is cut off, and the piece reaches the server a while later"


@dataclass
class Fault:
    """A fault that waits for its moment; it happens once."""

    trigger: Trigger
    loss: _Loss
    happened: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        """Wait until it has happened; fail if it does not."""
        assert self.happened.wait(PATIENCE), f"gave up waiting: {self.loss.value}"


class _Connection:
    """A client's connection, and the proxy's connection to the server for it."""

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.server: socket.socket | None = None
        #: The loss that this connection suffers, from the piece on that a fault waited for.
        self.fault: Fault | None = None
        self.is_cut = False

    def cut(self) -> None:
        """Close it on both sides; reads on it end."""
        self.is_cut = True
        for side in (self.client, self.server):
            if side is not None:
                with suppress(OSError):
                    side.shutdown(socket.SHUT_RDWR)


class Proxy:
    """A port that leads to a server, until a fault is switched on.

    Args:
        host: the server's.
        port: the server's.
    """

    def __init__(self, host: str, port: int) -> None:
        self.host = HOST
        self.port = free_port()
        self._target = (host, port)
        self._connections: set[_Connection] = set()
        self._faults: list[Fault] = []
        self._changing = threading.Lock()
        self._listener: socket.socket | None = None
        self.accept()

    def accept(self) -> None:
        """Accept connections, as at the start."""
        if self._listener is None:
            self._listener = socket.create_server((self.host, self.port), backlog=128)
            self._start(self._take_connections, self._listener)

    def refuse(self) -> None:
        """Refuse new connections, as a machine without a listener does."""
        if self._listener is not None:
            # `close` alone would leave the thread in `accept`, and the port open with it.
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None

    def lose_request(self, trigger: Trigger) -> Fault:
        """Close the next connection whose client sends such a piece, before the server gets it."""
        return self._order(trigger, _Loss.REQUEST)

    def lose_answer(self, trigger: Trigger) -> Fault:
        """Close the next connection whose client sends such a piece, when the server has answered.

        The server has then done what was requested, but the client sees only a broken connection.
        """
        return self._order(trigger, _Loss.ANSWER)

    def silence(self, trigger: Trigger) -> Fault:
        """As `lose_answer`, but the connection stays open, and the client waits."""
        return self._order(trigger, _Loss.SILENCE)

    def deliver_late(self, trigger: Trigger) -> Fault:
        """Close the next connection whose client sends such a piece, and forward the piece to the
        server later.

        So it is done long after the client saw a broken connection.
        """
        return self._order(trigger, _Loss.LATE)

    def url(self, url: str) -> str:
        """A database URL, changed to lead through the proxy."""
        parts = urlsplit(url)
        account = parts.netloc.rpartition("@")[0]
        return urlunsplit(parts._replace(netloc=f"{account}@{self.host}:{self.port}"))

    def close(self) -> None:
        """Stop accepting connections, and close the open ones."""
        self.refuse()
        with self._changing:
            for connection in self._connections:
                connection.cut()

    def _order(self, trigger: Trigger, loss: _Loss) -> Fault:
        fault = Fault(trigger, loss)
        with self._changing:
            self._faults.append(fault)
        return fault

    def _take_connections(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self._start(self._carry, _Connection(client))

    def _carry(self, connection: _Connection) -> None:
        """Connect to the server for a client, forward what it sends, and close both sides
        together."""
        with self._changing:
            self._connections.add(connection)
        answers = None
        try:
            if not connection.is_cut:
                connection.server = socket.create_connection(self._target)
                answers = self._start(self._carry_answers, connection, connection.server)
                self._carry_requests(connection, connection.server)
        except OSError:
            pass  # The server cannot be reached: the client is told by the end of its connection.
        finally:
            connection.cut()
            if answers is not None:
                answers.join()
            self._forget(connection)

    def _carry_requests(self, connection: _Connection, server: socket.socket) -> None:
        with suppress(OSError):
            while piece := connection.client.recv(_PIECE):
                if connection.is_cut:
                    return
                fault = self._fault_for(connection, piece)
                if fault is not None and fault.loss is _Loss.REQUEST:
                    fault.happened.set()
                    return
                is_late = fault is not None and fault.loss is _Loss.LATE
                if is_late:
                    connection.client.shutdown(socket.SHUT_RDWR)
                    time.sleep(_LATE_S)
                server.sendall(piece)
                if fault is not None and is_late:
                    fault.wait()
                    return

    def _carry_answers(self, connection: _Connection, server: socket.socket) -> None:
        with suppress(OSError):
            while piece := server.recv(_PIECE):
                if connection.is_cut:
                    break
                fault = connection.fault
                if fault is None:
                    connection.client.sendall(piece)
                    continue
                fault.happened.set()
                if fault.loss is not _Loss.SILENCE:
                    break
        connection.cut()

    def _fault_for(self, connection: _Connection, piece: bytes) -> Fault | None:
        """The fault that a client's piece triggers; only its connection is affected."""
        with self._changing:
            if connection.fault is None:
                fault = next((fault for fault in self._faults if fault.trigger(piece)), None)
                if fault is not None:
                    self._faults.remove(fault)
                    connection.fault = fault
            return connection.fault

    def _forget(self, connection: _Connection) -> None:
        connection.client.close()
        if connection.server is not None:
            connection.server.close()
        with self._changing:
            self._connections.discard(connection)

    def _start(self, target: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        thread.start()
        return thread


@contextmanager
def proxied(url: str) -> Iterator[Proxy]:
    """A proxy before the server that a database's URL names; see `Proxy.url`."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    proxy = Proxy(parts.hostname, parts.port)
    try:
        yield proxy
    finally:
        proxy.close()


def sends(text: bytes) -> Trigger:
    """A trigger for pieces that contain a word, in any letter case, but not as a part of
    another."""
    word = re.compile(rb"(?<![a-z_])" + re.escape(text) + rb"(?![a-z_])", re.IGNORECASE)
    return lambda piece: word.search(piece) is not None
