# SPDX-License-Identifier: Apache-2.0
"""A client that waits for each response, for everything that is not measured."""

from __future__ import annotations

from types import TracebackType

from bench.api import Json
from bench.driver import Connection
from bench.http1 import Answer, Requests
from bench.server import RunningServer


class UnexpectedStatus(RuntimeError):
    """A server answered with an unexpected status."""

    def __init__(self, method: str, path: str, status: int, body: bytes) -> None:
        super().__init__(f"{method} {path} was answered {status}: {body[:500].decode()}")
        self.status = status


class Client:
    """Requests to one server, one after the other."""

    def __init__(self, server: RunningServer) -> None:
        self.requests = Requests(server.port)
        self._connection = Connection(server)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def exchange(self, request: bytes) -> Answer:
        """Send a request and wait for its answer."""
        self._connection.send(request)
        while (answer := self._connection.receive()) is None:
            pass
        return answer

    def request(self, method: str, path: str, body: Json = None) -> tuple[int, bytes]:
        """Send a request, with JSON unless `body` is None; status and body of the answer."""
        answer = self.exchange(self.requests.of(method, path, body))
        return answer.status, answer.body

    def demand(self, method: str, path: str, body: Json = None) -> bytes:
        """As `request`, where nothing but success is acceptable.

        Raises:
            UnexpectedStatus: the server did not answer 2xx.
        """
        status, answer = self.request(method, path, body)
        if not 200 <= status < 300:
            raise UnexpectedStatus(method, path, status, answer)
        return answer
