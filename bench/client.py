# SPDX-License-Identifier: Apache-2.0
"""A client on one connection, as light as the standard library allows."""

from __future__ import annotations

import http.client
import json
from types import TracebackType

from bench.script.step import CALLER, LATEST, Json
from bench.server import RunningServer

_TIMEOUT_SECONDS = 600.0


class UnexpectedStatus(RuntimeError):
    """A server answered a request of the measurement with another status than it must."""

    def __init__(self, method: str, path: str, status: int, body: bytes) -> None:
        super().__init__(f"{method} {path} was answered {status}: {body[:500].decode()}")
        self.status = status


class Client:
    """Requests to one server, one after the other."""

    def __init__(self, server: RunningServer) -> None:
        self._connection = http.client.HTTPConnection(
            "127.0.0.1", server.port, timeout=_TIMEOUT_SECONDS
        )
        self._keeps_connection = server.keeps_connections
        self._headers = {**CALLER, "openstack-api-version": f"placement {LATEST}"}
        self._json_headers = {**self._headers, "content-type": "application/json"}

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def request(self, method: str, path: str, body: Json = None) -> tuple[int, bytes]:
        """Send a request, with JSON unless `body` is None; status and body of the answer."""
        text = None if body is None else json.dumps(body).encode()
        headers = self._headers if body is None else self._json_headers
        self._connection.request(method, path, text, headers)
        response = self._connection.getresponse()
        answer = response.read()
        if not self._keeps_connection:
            self._connection.close()
        return response.status, answer

    def demand(self, method: str, path: str, body: Json = None) -> bytes:
        """As `request`, where nothing but success is acceptable.

        Raises:
            UnexpectedStatus: the server did not answer 2xx.
        """
        status, answer = self.request(method, path, body)
        if not 200 <= status < 300:
            raise UnexpectedStatus(method, path, status, answer)
        return answer
