# SPDX-License-Identifier: Apache-2.0
"""The request in what people paste: what the reader finds in it, and what the command line and the
API's member `query` make of it. The page asks the API. Source: spec/beyond.md 2.2, `query`."""

from __future__ import annotations

import time
from typing import Any

import click
import pytest
from click.testing import CliRunner

from berth.api.berth_v1.questions import Asked, AskedByFlavor, read_request
from berth.api.errors import Refused
from berth.cli.fleet.request_options import RequestOptions, takes_question
from berth.pasted import NotReadable, request_in
from tests.pasted.examples import ENCODED, EXAMPLES, GROUPS, UNREADABLE, Example, wrapped


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_a_request_is_found_in_what_is_pasted(example: Example) -> None:
    """The query itself, as it was sent, or the request of a command."""
    assert request_in(example.text) == example.request


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


#: What a text may be made of that takes long to read.
PARTS = [
    "\\", "&amp;amp;", '{"a":', "{", "resources", "resources=", " resources%3D*", "\n", " ", "%25",
    "a:", "A\n", "&", "berth --a ", "berth why ", "'", "allocation_candidates?", "[",
    "RequestGroup(", "RequestGroup(set(", "RequestGroup(a=set([]),", "set()",
]  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_the_time_to_read_grows_with_the_length(part: str) -> None:
    """Nobody can keep a worker busy with a text that is made for it."""
    begun = time.process_time()
    try:
        request_in((part * 65_536)[:65_536])
        request_in("resources=A:1" + (part * 65_536)[:65_000] + " x")
    except NotReadable:
        pass
    assert time.process_time() - begun < 2


def question(request: dict[str, Any]) -> object:
    """What a request asks; a query string is not asked otherwise than its text."""
    (asked,) = read_request(request, "/request")
    return asked.question if isinstance(asked, Asked) else asked


def body_of(*typed: str) -> Any:
    """The body of `berth why` with some arguments."""
    bodies: list[Any] = []

    @click.command()
    @takes_question
    def why(request: RequestOptions) -> None:
        """As `berth why`."""
        bodies.append(request.body())

    outcome = CliRunner().invoke(why, list(typed))
    return bodies[0] if bodies else outcome.output


def test_the_api_and_the_command_line_read_what_is_pasted() -> None:
    """A text as `query` asks what the request in it asks; on the command line as one argument,
    quoted for the shell, or where the shell has made words of it."""
    for example in EXAMPLES:
        asked = question({"query": example.text})
        assert asked == question(example.request), example.name
        assert isinstance(asked, AskedByFlavor) == ("flavor" in example.request)
        if " " in example.text or "=" in example.text:
            assert body_of(example.text) == {"request": example.request}, example.name
    words = ["INFO", "x", "[-]", "GET", "/allocation_candidates?resources=VCPU:1", "status:", "200"]
    assert body_of(*words) == {"request": {"query": "resources=VCPU:1"}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *UNREADABLE,
        # As in a request that is sent.
        *(("berth why VCPU=0", "at least 1"), ("resources=VCPU:0", "VCPU")),
        ("berth why cpu=1", "cpu"),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str) -> None:
    """In the same sentence by both, where it is read; the API points at the query."""
    with pytest.raises(Refused, match=words) as refusal:
        question({"query": text})
    assert refusal.value.facts == {"pointer": "/request/query"}
    if " " in text and (text, words) in UNREADABLE:
        assert words in " ".join(body_of(text).split())


@pytest.mark.parametrize("option", ["--required", "--host-in", "--group", "--flavor"])
def test_no_option_is_lost_beside_a_query(option: str) -> None:
    """A condition that would not count is refused."""
    assert f"{option} exclude each other" in body_of("resources=VCPU:1", option, "A")
    assert body_of("resources=VCPU:1", "--tolerate", "fw", "--nothing-used") == {
        "request": {"query": "resources=VCPU:1", "tolerate": ["fw"]},
        "what_if": {"nothing_used": True},
    }
