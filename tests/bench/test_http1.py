# SPDX-License-Identifier: Apache-2.0
"""The least reading of HTTP answers must still read them right, however they come in."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.http1 import Answer, AnswerReader, BadAnswer, Requests

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


def test_an_answer_without_a_length_ends_with_the_stream() -> None:
    """As HTTP/1.0 servers send it."""
    reader = AnswerReader()
    assert reader.feed(b"HTTP/1.0 200 OK\r\n\r\n" + BODY) is None
    assert reader.feed(b"") == Answer(200, BODY, True)


@pytest.mark.parametrize(
    "pieces",
    [
        [b""],
        [WITH_LENGTH[:-1], b""],
        [CHUNKED[:-7], b""],
        [WITH_LENGTH + b"x"],
        [b"SSH-2.0-OpenSSH_9.2\r\n\r\n"],
    ],
    ids=["nothing", "cut off", "cut off between chunks", "too long", "no HTTP"],
)
def test_what_is_not_one_whole_answer_is_refused(pieces: list[bytes]) -> None:
    """A measurement must not go on with half an answer, or with the next one's beginning."""
    reader = AnswerReader()
    with pytest.raises(BadAnswer):
        for piece in pieces:
            assert reader.feed(piece) is None


def test_a_request_with_a_body_says_its_length() -> None:
    """In bytes, and what it is."""
    head, _, body = Requests(80).of("PUT", "/traits", {"é": 1}).partition(b"\r\n\r\n")
    assert head.startswith(b"PUT /traits HTTP/1.1\r\nHost: 127.0.0.1:80\r\n")
    assert b"\r\nContent-Length: %d" % len(body) in head
    assert b"\r\nContent-Type: application/json\r\n" in head
