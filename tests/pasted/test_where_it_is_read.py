# SPDX-License-Identifier: Apache-2.0
"""The command line and the API's member `query` read the same texts. The page asks the API."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from berth.api.berth_v1.reading import Asked, AskedByFlavor, read_request
from berth.api.errors import Refused
from berth.cli.fleet.wanted import Wanted, wanting
from tests.pasted.examples import EXAMPLES, UNREADABLE


def question(request: dict[str, Any]) -> object:
    """What a request asks; a query string is not asked otherwise than its text."""
    (asked,) = read_request(request, "/request")
    return asked.question if isinstance(asked, Asked) else asked


def body_of(*typed: str) -> Any:
    """The body of `berth why` with some arguments."""
    bodies: list[Any] = []

    @click.command()
    @wanting
    def why(wanted: Wanted) -> None:
        """As `berth why`."""
        bodies.append(wanted.body())

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
