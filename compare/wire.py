# SPDX-License-Identifier: Apache-2.0
"""Sends steps to a server exactly as written, and keeps the response as a client sees it."""

from __future__ import annotations

import http.client
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from bench.server import RunningServer
from compare.script.step import Step

_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoAnswer(RuntimeError):
    """A server closed the connection, or timed out, without a response."""

    def __init__(self, server: RunningServer, step: Step) -> None:
        super().__init__(f"{server.name} has not answered: {step}")
        self.server_name = server.name


def send(server: RunningServer, step: Step) -> Answer:
    """Send a step on its own connection, so that no response affects the next."""
    (answer,) = send_to([server], step)
    return answer


def send_to(servers: Sequence[RunningServer], step: Step) -> list[Answer]:
    """Send one step to several servers, which work on it at the same time; their answers in order.

    Raises:
        NoAnswer: one of them has not answered.
    """
    with ExitStack() as connections:
        sent = [connections.enter_context(closing(_begin(server, step))) for server in servers]
        return [
            _finish(server, step, connection)
            for server, connection in zip(servers, sent, strict=True)
        ]


def _begin(server: RunningServer, step: Step) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_TIMEOUT_SECONDS)
    connection.putrequest(step.method, step.path, skip_accept_encoding=True)
    for name, value in step.headers.items():
        connection.putheader(name, value)
    if step.body is not None:
        connection.putheader("content-length", str(len(step.body)))
    elif step.method in ("PUT", "POST", "PATCH") and "content-length" not in step.headers:
        connection.putheader("content-length", "0")
    connection.endheaders(step.body)
    return connection


def _finish(server: RunningServer, step: Step, connection: http.client.HTTPConnection) -> Answer:
    try:
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, response.read())
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(server, step) from error
