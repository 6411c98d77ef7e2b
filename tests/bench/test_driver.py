# SPDX-License-Identifier: Apache-2.0
"""Many clients in one process: each gets its own answers, and losses are told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.driver import Script, TimedOut, drive
from bench.http1 import Requests
from tests.bench.serving import answering

OK = [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"{}"]
CLOSING = [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"]
GET = Requests(80).get("/")


def asking(times: int, statuses: list[int]) -> Script:
    """A client that notes the statuses of its answers."""
    for _ in range(times):
        answer = yield GET
        statuses.append(answer.status)


def test_clients_are_dealt_out_to_a_server_and_its_others() -> None:
    """In turn, as to the nodes of a cluster; what a client asks next goes to the same one."""
    statuses: list[list[int]] = [[], [], []]
    created = [b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"]
    with answering(OK, OK, OK, OK) as first, answering(created, created) as second:
        drive(replace(first, others=(second,)), [asking(2, each) for each in statuses])
    assert statuses == [[200, 200], [201, 201], [200, 200]]


def test_each_client_is_sent_the_answers_to_its_own_requests() -> None:
    """Side by side, on a connection each, until all have ended."""
    first: list[int] = []
    second: list[int] = []
    with answering(OK, OK, OK, OK, OK) as server:
        drive(server, [asking(2, first), asking(3, second)])
    assert (first, second) == ([200, 200], [200, 200, 200])


def test_a_connection_that_the_server_closes_is_made_anew() -> None:
    """Said in the answer's head, as uWSGI does after each."""
    statuses: list[int] = []
    with answering(CLOSING, OK, OK) as server:
        drive(server, [asking(3, statuses)])
    assert statuses == [200, 200, 200]


def test_a_lost_answer_is_told_as_status_0() -> None:
    """And the client goes on, on a new connection."""
    statuses: list[int] = []
    with answering(OK, [], OK) as server:
        drive(server, [asking(3, statuses)])
    assert statuses == [200, 0, 200]


def test_a_server_that_is_gone_is_told_as_status_0() -> None:
    """To every request, so that the clients come to their end."""
    statuses: list[int] = []
    with answering() as server:
        pass
    drive(server, [asking(2, statuses)])
    assert statuses == [0, 0]


def test_a_request_that_takes_too_long_ends_the_measurement() -> None:
    """With the name of the server and the time it was given."""
    with answering(OK) as server, pytest.raises(TimedOut, match=r"test has not answered in 0\.1 s"):
        drive(server, [asking(2, [])], seconds_max=0.1)
