# SPDX-License-Identifier: Apache-2.0
"""Answers are read right, losses are told, and what berth is held against is measured alike."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bench.driver import Script, TimedOut, drive
from bench.fixed_cost import main
from bench.floor import serve_floor
from bench.http1 import Answer, AnswerReader, BadAnswer, Requests
from bench.processor import processor_s
from bench.sample import Round, ask
from bench.server import RunningServer
from tests.bench.serving import answering
from tests.e2e.serving import wait_until

ROOT = Path(__file__).parents[2]

BODY = b'{"a": "b\r\n\r\nc"}'
WITH_LENGTH = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length: 15\r\n\r\n" + BODY
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'8\r\n{"a": "b\r\n' + b"8;x=y\r\n\r\n\r\nc" + b'"}x\r\n0\r\n\r\n'
)
EMPTY = b"HTTP/1.1 204 No Content\r\nserver: x\r\n\r\n"
CLOSING = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

ANSWERS = {
    WITH_LENGTH: Answer(200, BODY, False),
    CHUNKED: Answer(200, b'{"a": "b\r\n\r\nc"}x', False),
    EMPTY: Answer(204, b"", False),
    CLOSING: Answer(404, b"", True),
}

OK = [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"{}"]
GET = Requests(80).get("/")

#: A child that computes for ever, below a parent that only waits.
BUSY = f"{sys.executable} -c 'while True: pass' & wait"


@given(
    sent=st.sampled_from(list(ANSWERS)),
    cuts=st.lists(st.integers(min_value=1, max_value=len(CHUNKED))),
)
def test_an_answer_is_the_same_in_whichever_pieces_it_comes(sent: bytes, cuts: list[int]) -> None:
    """And it is there with its last piece, not earlier and not later."""
    places = sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})
    pieces = [sent[start:end] for start, end in pairwise(places)]
    reader = AnswerReader()
    for _ in range(2):
        answers = [reader.feed(piece) for piece in pieces]
        assert answers == [None] * (len(pieces) - 1) + [ANSWERS[sent]]


@pytest.mark.parametrize(
    "pieces", [[b""], [WITH_LENGTH[:-1], b""], [CHUNKED[:-7], b""], [WITH_LENGTH + b"x"]]
)
def test_what_is_not_one_whole_answer_is_refused(pieces: list[bytes]) -> None:
    """A measurement must not go on with half an answer, or with the next one's beginning."""
    reader = AnswerReader()
    with pytest.raises(BadAnswer):
        for piece in pieces:
            assert reader.feed(piece) is None


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


def test_a_lost_answer_is_told_as_status_0() -> None:
    """And the client goes on, on a new connection; silence ends the measurement."""
    statuses: list[int] = []
    with answering(OK, [], [CLOSING], OK) as server:
        drive(server, [asking(4, statuses)])
    assert statuses == [200, 0, 404, 200]
    with answering(OK) as server, pytest.raises(TimedOut, match=r"test has not answered in 0\.1 s"):
        drive(server, [asking(2, [])], seconds_max=0.1)


def test_every_case_of_both_checkouts_is_measured() -> None:
    """The cost of a request besides its handler; one that is not answered ends the run."""
    result = CliRunner().invoke(main, ["--turns", "1", "--before", str(ROOT)])
    assert result.exit_code == 0, result.output
    head, *lines = result.output.splitlines()
    assert head.split() == ["microseconds", "a", "request", "before", "now"]
    assert len(lines) > 3
    assert all(float(cost) > 0 for line in lines for cost in line[44:].split())


def test_the_floor_answers_with_as_many_bytes_as_a_request_says(tmp_path: Path) -> None:
    """As many as berth's answer has, to any path, and with the time of the server's processes."""
    with serve_floor(tmp_path, workers=1) as server:
        request = Requests(server.port, answer_bytes=70_000).get("/resource_providers")
        sample = ask(server, [request], Round(0.2, 0, 10.0))
        assert sample.answer_bytes == 70_000
        assert not sample.failures
        assert sample.processor is not None
        assert 0 <= sample.processor <= processor_s(server)


def test_the_processor_time_of_a_server_is_that_of_all_its_processes() -> None:
    """Workers are children of the process that was started, which does little itself."""
    with subprocess.Popen(["/bin/sh", "-c", BUSY], start_new_session=True) as parent:
        try:
            server = RunningServer("busy", 0, parent.pid, Path(), keeps_connections=True)
            wait_until(lambda: processor_s(server) > 0.1, "the child's time was counted")
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
