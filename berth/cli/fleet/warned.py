# SPDX-License-Identifier: Apache-2.0
"""The warnings of the API's answers, on stderr: most say that a name matches nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from berth.cli.output import say

if TYPE_CHECKING:
    from berth.hosts.service import Answer

Warning = Mapping[str, str]

_SENTENCES: Final[Mapping[str, str]] = {
    "limit_ignored": "The limit in the query is ignored: use --limit.",
    "request_unknown": (
        "What it asked for when it was placed is unknown; this request is made from what it holds."
    ),
    "relation_without_effect": (
        "A relation between groups has no effect: wherever they fit, the same providers serve them."
    ),
}

#: The places of a request whose names narrow the fleet.
_NARROWING: Final = re.compile(r"/(host/in|in_tree|under|member_of|within)(/|$)")


def warn(sentence: str) -> None:
    """Print a warning on stderr."""
    say(f"warning: {sentence}", err=True)


def warnings_in(answer: Answer) -> list[Warning]:
    """All warnings of an answer, which may be JSON lines, with those of its explanations."""
    if '"warnings"' not in answer.text:
        return []
    last = answer.text.rstrip().rpartition("\n")[2]
    try:
        # The last of several lines has the warnings of all.
        return [*_within(json.loads(last if last.startswith("{") else answer.text))]
    except ValueError:
        return []


def _within(value: Any) -> Iterator[Warning]:
    if isinstance(value, list):
        for item in value:
            yield from _within(item)
    elif isinstance(value, dict):
        for name, member in value.items():
            if name == "warnings" and isinstance(member, list):
                yield from member
            elif isinstance(member, dict | list):
                yield from _within(member)


def in_words(warning: Warning) -> str:
    """A warning as a sentence."""
    code = warning["code"]
    if "reference" not in warning:
        return _SENTENCES.get(code, f"{code.replace('_', ' ')} at {warning.get('at', '/')}")
    noun = code.removeprefix("unknown_")
    has = "No aggregate has the label" if noun == "label" else f"There is no {noun}"
    return f"{has} {warning['reference']}; it matches nothing."


def narrowing(warnings: Iterable[Warning]) -> list[str]:
    """The names that match nothing and that a request insists on."""
    return [
        warning["reference"]
        for warning in warnings
        if "reference" in warning and _NARROWING.search(warning.get("at", ""))
    ]
