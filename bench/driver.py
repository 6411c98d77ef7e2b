# SPDX-License-Identifier: Apache-2.0
"""Many clients in one process: each is a generator that yields requests and is sent the answers.

One thread and one epoll drive all of them, which costs some 30 microseconds a request; threads or
processes would take far more from the servers that share the machine.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Generator, Iterable
from itertools import cycle
from typing import Final

from bench.http1 import NO_ANSWER, Answer, AnswerReader, BadAnswer
from bench.server import RunningServer

#: What a client does: it yields the bytes of a request and is sent the answer.
Script = Generator[bytes, Answer, None]

_BUFFER_BYTES: Final = 1 << 20
_SECONDS_MAX: Final = 600.0


class TimedOut(RuntimeError):
    """A server did not answer a request in time."""

    def __init__(self, server: str, seconds: float) -> None:
        super().__init__(f"{server} has not answered in {seconds:g} s")
        self.server = server
        self.seconds = seconds


class Connection:
    """A client's connection, reopened if the server closes it after each response."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        self._socket: socket.socket | None = None
        self._reader = AnswerReader()

    @property
    def descriptor(self) -> int:
        """The connection's file descriptor; -1 if it is closed."""
        return -1 if self._socket is None else self._socket.fileno()

    def send(self, request: bytes) -> bool:
        """Send a request; whether it was on a new connection.

        Raises:
            OSError: no server listens, or the connection is lost.
        """
        is_new = self._socket is None
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._server.port))
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(request)
        return is_new

    def receive(self) -> Answer | None:
        """Read what is there, waiting for at least something; the answer, once it is whole.

        A lost connection gives `NO_ANSWER`.
        """
        assert self._socket is not None
        try:
            answer = self._reader.feed(self._socket.recv(_BUFFER_BYTES))
        except (OSError, BadAnswer):
            answer = NO_ANSWER
        if answer is not None and (answer.closes or not self._server.keeps_connections):
            self.close()
        return answer

    def close(self) -> None:
        """Close it; the next request opens a new one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._reader = AnswerReader()


class _Client:
    """A script under way on its connection."""

    def __init__(self, server: RunningServer, script: Script) -> None:
        self.server = server
        self.connection = Connection(server)
        self.script = script
        self.sent_at = 0.0


def drive(
    server: RunningServer, scripts: Iterable[Script], *, seconds_max: float = _SECONDS_MAX
) -> None:
    """Run the scripts side by side, each on a connection of its own, until all have ended.

    Args:
        server: with its others: the scripts are dealt out to all of them in turn.
        seconds_max: how long one request may take.

    Raises:
        TimedOut: a request took longer.
    """
    drive_each(zip(cycle((server, *server.others)), scripts, strict=False), seconds_max=seconds_max)


def drive_each(
    pairs: Iterable[tuple[RunningServer, Script]], *, seconds_max: float = _SECONDS_MAX
) -> None:
    """As `drive`, with a server named for each script.

    Raises:
        TimedOut: a request took longer.
    """
    clients = [_Client(server, script) for server, script in pairs]
    waiting: dict[int, _Client] = {}
    with select.epoll() as poll:
        try:
            for client in clients:
                _proceed(client, None, waiting, poll)
            while waiting:
                for descriptor, _ in poll.poll(1.0):
                    client = waiting[descriptor]
                    answer = client.connection.receive()
                    if answer is not None:
                        if client.connection.descriptor != descriptor:
                            # Closed, and so gone from the poll already.
                            del waiting[descriptor]
                        _proceed(client, answer, waiting, poll)
                oldest = min(waiting.values(), key=lambda client: client.sent_at, default=None)
                if oldest is not None and time.perf_counter() - oldest.sent_at > seconds_max:
                    raise TimedOut(oldest.server.name, seconds_max)
        finally:
            for client in clients:
                client.connection.close()


def _proceed(
    client: _Client, answer: Answer | None, waiting: dict[int, _Client], poll: select.epoll
) -> None:
    """Pass a response to a client, and send its next request; None starts the client."""
    while True:
        try:
            request = next(client.script) if answer is None else client.script.send(answer)
        except StopIteration:
            waiting.pop(client.connection.descriptor, None)
            client.connection.close()
            return
        client.sent_at = time.perf_counter()
        try:
            is_new = client.connection.send(request)
        except OSError:
            waiting.pop(client.connection.descriptor, None)
            client.connection.close()
            answer = NO_ANSWER
            continue
        if is_new:
            waiting[client.connection.descriptor] = client
            poll.register(client.connection.descriptor, select.EPOLLIN)
        return
