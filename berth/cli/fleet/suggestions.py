# SPDX-License-Identifier: Apache-2.0
"""Names that exist and that a user may have meant, for messages about one that does not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, Final, Protocol

from berth.cli.fleet.refusals import NotThere, ServiceRefused

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
    try:
        names = [*_names_in(client, path)]
    except ServiceRefused:
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
        raise NotThere(f"{error}{hint}", error.error_code) from error


def _names_in(client: Reader, path: str) -> Iterator[str]:
    """The names of a list, whose items may be names themselves."""
    for member in client.read(path).values():
        if isinstance(member, list):
            yield from (item if isinstance(item, str) else item.get("name", "") for item in member)
