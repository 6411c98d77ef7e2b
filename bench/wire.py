# SPDX-License-Identifier: Apache-2.0
"""Sending steps to a server exactly as written, and keeping what a client would see."""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bench.script.step import Step
from bench.server import RunningServer

_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def send(server: RunningServer, step: Step) -> Answer:
    """Send one step on a connection of its own, so that no answer disturbs the next."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.putrequest(step.method, step.path, skip_accept_encoding=True)
        for name, value in step.headers.items():
            connection.putheader(name, value)
        if step.body is not None:
            connection.putheader("content-length", str(len(step.body)))
        elif step.method in ("PUT", "POST", "PATCH") and "content-length" not in step.headers:
            connection.putheader("content-length", "0")
        connection.endheaders(step.body)
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, response.read())
    finally:
        connection.close()


def send_all(server: RunningServer, steps: Iterable[Step]) -> Iterator[tuple[Step, Answer]]:
    """Send steps in order, each after the answer to the one before."""
    for step in steps:
        yield step, send(server, step)
