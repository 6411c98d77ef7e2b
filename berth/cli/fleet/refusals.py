# SPDX-License-Identifier: Apache-2.0
"""What a service refuses to a command, or warns of; and the names that a user may have meant.

Most warnings say that a name matches nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Protocol

from berth.cli.output import say
from berth.model.refusals import NotThere, Refused

if TYPE_CHECKING:
    from berth.hosts.service import Answer


Warning = Mapping[str, str]


# --- Names that a user may have meant -------------------------------------------------------------

#: Comparing one name takes some 20 microseconds.
_COMPARED_MAX: Final = 20_000
_CUTOFF: Final = 0.75
_ALIKE_MAX: Final = 50


class Reader(Protocol):
    """A client of the service."""

    def read(self, path: str, /) -> Mapping[str, Any]:
        """The answer to a GET."""


def did_you_mean(client: Reader, path: str, name: str) -> str:
    """A clause with similar names, such as "; did you mean gpu05?"; empty if there are none.

    Args:
        path: of the list of all things that `name` may name.
    """
    # Deferred: most names are right.
    from difflib import get_close_matches

    try:
        names = [*_names_in(client, path)]
    except Refused:
        # Whoever may not list them gets no suggestions.
        return ""
    if name in names:
        # It exists, but not in the fleet that a question assumes.
        return ""
    close = [each for each in names if each and _without_zeros(each) == _without_zeros(name)][:3]
    if not close:
        likely = [each for each in names if each and abs(len(each) - len(name)) <= len(name) // 2]
        alike = get_close_matches(name, likely[:_COMPARED_MAX], n=_ALIKE_MAX, cutoff=_CUTOFF)
        # Of names that differ in one digit, those that begin alike.
        close = sorted(alike, key=lambda each: -_common_start(each, name))[:3]
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _common_start(one_name: str, other: str) -> int:
    """How many characters two names have in common at their beginning."""
    pairs = zip(one_name, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _without_zeros(name: str) -> str:
    """A name with its numbers without leading zeros: `gpu05` is `gpu5`."""
    return re.sub(r"0+(?=[0-9])", "", name.lower())


@contextmanager
def suggesting(client: Reader, path: str, name: str) -> Iterator[None]:
    """Add similar names to the refusal of one that does not exist, unless the service has.

    Raises:
        NotThere: with them.
    """
    try:
        yield
    except NotThere as error:
        if "Did you mean" in str(error):
            raise
        hint = did_you_mean(client, path, name)
        raise error.saying(f"{error}{hint}") from error


def _names_in(client: Reader, path: str) -> Iterator[str]:
    """The names of a list, whose items may be names themselves."""
    for member in client.read(path).values():
        if isinstance(member, list):
            yield from (item if isinstance(item, str) else item.get("name", "") for item in member)


# --- Warnings -------------------------------------------------------------------------------------

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
