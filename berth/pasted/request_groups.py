# SPDX-License-Identifier: Apache-2.0
"""Reads the request of nova's error line `Failed to retrieve allocation candidates from placement
API for filters: RequestGroup(...), RequestGroup(...)`, as a query string."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

_GROUP: Final = re.compile(
    r"RequestGroup\(((?:[^()]|set\([^()]*\))*?)use_same_provider=(True|False)\)"
)
#: A member and its value: a list, a set, a mapping, or a word.
_MEMBER: Final = re.compile(
    r"(\w+)=(\[(?:[^\[\]]|\[[^\[\]]*\])*\]|set\([^()]*\)|\{[^{}]*\}|[^,]*),"
)
_LISTS: Final = re.compile(r"\[([^\[\]]+)\]")
_WORD: Final = re.compile(r"[\w-]+")
_AMOUNT: Final = re.compile(r"(\w+)=(\d+)")


def query_of_groups(text: str) -> str | None:
    """The query of the groups in a text, or None if it has none.

    The line does not have nova's `group_policy`, so none is assumed.
    """
    groups = [(match[1], match[2] == "True") for match in _GROUP.finditer(text)]
    pairs: list[tuple[str, str]] = []
    named = 0
    for written, is_named in groups:
        members = {match[1]: match[2] for match in _MEMBER.finditer(written)}
        named += is_named
        pairs += _pairs(members, _suffix(members, named) if is_named else "")
    if named > 1:
        pairs.append(("group_policy", "none"))
    return "&".join(f"{name}={value}" for name, value in pairs) or None


def _suffix(members: Mapping[str, str], number: int) -> str:
    requester = members.get("requester_id", "None").strip("'")
    return str(number) if requester == "None" else requester


def _pairs(members: Mapping[str, str], suffix: str) -> Iterator[tuple[str, str]]:
    """The parameters of one group."""
    amounts = _AMOUNT.findall(members.get("resources", ""))
    if amounts:
        yield f"resources{suffix}", ",".join(f"{name}:{amount}" for name, amount in amounts)
    traits = _words(members, "required_traits")
    traits += [f"!{name}" for name in _words(members, "forbidden_traits")]
    if traits:
        yield f"required{suffix}", ",".join(traits)
    for listed in _LISTS.findall(members.get("aggregates", "")[1:-1]):
        yield f"member_of{suffix}", f"in:{','.join(_WORD.findall(listed))}"
    if forbidden := _words(members, "forbidden_aggregates"):
        yield f"member_of{suffix}", f"!in:{','.join(forbidden)}"
    if (tree := members.get("in_tree", "None").strip("'")) != "None":
        yield f"in_tree{suffix}", tree


def _words(members: Mapping[str, str], name: str) -> list[str]:
    """The words of a set, in an order of their own: nova's has none."""
    return sorted(set(_WORD.findall(members.get(name, ""))) - {"set"})
