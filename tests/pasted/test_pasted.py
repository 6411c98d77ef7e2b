# SPDX-License-Identifier: Apache-2.0
"""The request in what people paste. Source: spec/beyond.md 2.2, `query`."""

from __future__ import annotations

import time

import pytest

from berth.pasted import NotReadable, request_in
from tests.pasted.examples import ENCODED, EXAMPLES, GROUPS, UNREADABLE, Example, wrapped


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_a_request_is_found_in_what_is_pasted(example: Example) -> None:
    """The query itself, as it was sent, or the request of a command."""
    assert request_in(example.text) == example.request


@pytest.mark.parametrize(("text", "words"), UNREADABLE)
def test_a_text_without_a_request_is_refused(text: str, words: str) -> None:
    """In a sentence that says what could be pasted, or what is wrong with the command."""
    with pytest.raises(NotReadable, match=words):
        request_in(text)


@pytest.mark.parametrize("query", [ENCODED, GROUPS])
@pytest.mark.parametrize("between", ["\n", "\r\n", "\n    ", "\\\n", "\n> "])
def test_a_query_may_be_broken_into_lines_of_any_width(query: str, between: str) -> None:
    """Where a terminal is narrow, or a mail; at the end of a line of a log, too."""
    for width in range(20, len(query)):
        assert request_in(wrapped(query, width, between)) == {"query": query}, width
        line = wrapped(f'INFO x "GET /allocation_candidates?{query}" status: 200', width, between)
        assert request_in(line) == {"query": query}, width


def test_what_looks_like_no_query_stays_as_it_is() -> None:
    """The API names what is wrong with it."""
    for text in ("ressources=VCPU:1", "VCPU:1", "foo=1&resources=VCPU:1", "resources=VCPU:abc"):
        assert request_in(text) == {"query": text}


@pytest.mark.parametrize(
    "part",
    [
        *("\\", "&amp;amp;", '{"a":', "{", "resources", "resources=", " resources%3D*", "\n", " "),
        *(
            "%25",
            "a:",
            "A\n",
            "&",
            "berth --a ",
            "berth why ",
            "'",
            "allocation_candidates?",
            "[",
            "RequestGroup(",
        ),
        *("RequestGroup(set(", "RequestGroup(a=set([]),", "set()"),
    ],
)
def test_the_time_to_read_grows_with_the_length(part: str) -> None:
    """Nobody can keep a worker busy with a text that is made for it."""
    begun = time.process_time()
    try:
        request_in((part * 65_536)[:65_536])
        request_in("resources=A:1" + (part * 65_536)[:65_000] + " x")
    except NotReadable:
        pass
    assert time.process_time() - begun < 2
