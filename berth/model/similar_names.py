# SPDX-License-Identifier: Apache-2.0
"""Existing names that a client may have meant. Source: spec/beyond.md 3.6."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import AnyStr, Final

_SUGGESTIONS_MAX: Final = 3
_SIMILARITY_MIN: Final = 0.75
#: Comparing one name with a thousand takes some 20 ms, and much longer for a long name.
_LENGTH_MAX: Final = 64
_COMPARED_MAX: Final = 1000
#: Looking at so many takes some 20 ms.
_EXISTING_MAX: Final = 200_000


def similar(name: str, existing: Iterable[str]) -> tuple[str, ...]:
    """The existing names that are most similar, the closest first."""
    if len(name) > _LENGTH_MAX:
        return ()
    return tuple(get_close_matches(name, [*existing], _SUGGESTIONS_MAX, _SIMILARITY_MIN))


def likely(name: AnyStr, existing: Iterable[AnyStr]) -> list[AnyStr]:
    """At most a thousand of many names, of which each begins or ends like one: so do all that
    differ from it in one place."""
    half, length = len(name) // 2, len(name)
    begin, end = name[:half], name[length - half :]
    alike: list[AnyStr] = []
    for each in islice(existing, _EXISTING_MAX):
        if abs(len(each) - length) <= 1 and (each.startswith(begin) or each.endswith(end)):
            alike.append(each)
    return alike[:_COMPARED_MAX]
