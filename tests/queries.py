# SPDX-License-Identifier: Apache-2.0
"""Candidates queries for tests: as values with symbolic names, and as text, both ways.

The text is a query string with placeholders (`<rp:NAME>`, `<agg:NAME>`, `<unknown>`; see
`tests.worlds`); the values hold the bare names. Only well-formed text can be read here: what is
refused, and with which words, is a matter of the wire and is tested there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

#: From this minor version on, every `required` counts instead of only the last one.
REQUIRED_REPEATS_FROM: Final = 39


@dataclass(frozen=True, slots=True)
class Group:
    """One request group. `required` and `member_of` are ANDed sets of alternatives."""

    suffix: str = ""
    resources: Mapping[str, int] = field(default_factory=dict)
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    not_member_of: frozenset[str] = frozenset()
    in_tree: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query, groups in the order in which their keys first appear."""

    groups: tuple[Group, ...]
    group_policy: str | None = None
    limit: int | None = None
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    same_subtree: tuple[frozenset[str], ...] = ()

    @property
    def suffixed(self) -> tuple[Group, ...]:
        """The groups with a suffix."""
        return tuple(group for group in self.groups if group.suffix)


def parse_query(text: str, minor: int) -> Query:
    """Read a well-formed query text as microversion 1.`minor` reads it."""
    groups: dict[str, dict[str, list[str]]] = {}
    whole: dict[str, list[str]] = {}
    for key, value in parse_qsl(text, keep_blank_values=True, strict_parsing=True):
        if key in _WHOLE_KEYS:
            whole.setdefault(key, []).append(value)
        elif match := _GROUP_KEY.fullmatch(key):
            values = groups.setdefault(match["suffix"], {})
            values.setdefault(match["kind"], []).append(value)
    root_required, root_forbidden = _read_traits(whole.get("root_required", []))
    return Query(
        groups=tuple(_read_group(suffix, values, minor) for suffix, values in groups.items()),
        group_policy=whole["group_policy"][0] if "group_policy" in whole else None,
        limit=int(whole["limit"][0]) if "limit" in whole else None,
        root_required=frozenset().union(*root_required),
        root_forbidden=root_forbidden,
        same_subtree=tuple(
            frozenset(item.strip() for item in value.split(","))
            for value in whole.get("same_subtree", [])
        ),
    )


def query_text(query: Query) -> str:
    """Write a query as text, unescaped; `parse_query` reads it back as an equal value."""
    pairs: list[tuple[str, str]] = []
    for group in query.groups:
        pairs += [(kind + group.suffix, value) for kind, value in _write_group(group)]
    root = [*sorted(query.root_required), *(f"!{t}" for t in sorted(query.root_forbidden))]
    if root:
        pairs.append(("root_required", ",".join(root)))
    pairs += [("same_subtree", ",".join(sorted(names))) for names in query.same_subtree]
    if query.group_policy is not None:
        pairs.append(("group_policy", query.group_policy))
    if query.limit is not None:
        pairs.append(("limit", str(query.limit)))
    return "&".join(f"{key}={value}" for key, value in pairs)


_WHOLE_KEYS: Final = frozenset({"group_policy", "limit", "root_required", "same_subtree"})
_GROUP_KEY: Final = re.compile(r"(?P<kind>resources|required|member_of|in_tree)(?P<suffix>.*)")
_NAME: Final = re.compile(r"<(?:rp:|agg:)?([^>]+)>")


def _read_group(suffix: str, values: Mapping[str, list[str]], minor: int) -> Group:
    required = values.get("required", [])
    if minor < REQUIRED_REPEATS_FROM:
        required = required[-1:]
    any_of, forbidden = _read_traits(required)
    member_of, not_member_of = _read_aggregates(values.get("member_of", []))
    in_tree = values.get("in_tree", [])
    return Group(
        suffix=suffix,
        resources=_read_resources(values.get("resources", [])),
        required=any_of,
        forbidden=forbidden,
        member_of=member_of,
        not_member_of=not_member_of,
        in_tree=_bare(in_tree[-1].strip()) if in_tree else None,
    )


def _read_resources(values: list[str]) -> dict[str, int]:
    """Of several occurrences, and of one class several times, the last counts."""
    if not values:
        return {}
    pairs = (item.split(":") for item in values[-1].split(","))
    return {name: int(amount) for name, amount in pairs}


def _read_traits(values: Iterable[str]) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values:
        if value.startswith("in:"):
            required.append(frozenset(item.strip() for item in value[3:].split(",")))
            continue
        for item in map(str.strip, value.split(",")):
            if item.startswith("!"):
                forbidden.add(item.lstrip("!"))
            else:
                required.append(frozenset({item}))
    return tuple(required), frozenset(forbidden)


def _read_aggregates(values: Iterable[str]) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    member_of: list[frozenset[str]] = []
    not_member_of: set[str] = set()
    for value in values:
        names = value.removeprefix("!").removeprefix("in:").split(",")
        if value.startswith("!"):
            not_member_of.update(map(_bare, names))
        else:
            member_of.append(frozenset(map(_bare, names)))
    return tuple(member_of), frozenset(not_member_of)


def _bare(placeholder: str) -> str:
    match = _NAME.fullmatch(placeholder)
    assert match, f"write names as placeholders: {placeholder}"
    return match[1]


def _write_group(group: Group) -> Iterator[tuple[str, str]]:
    if group.resources:
        yield "resources", ",".join(f"{name}:{n}" for name, n in group.resources.items())
    plain = frozenset().union(*(names for names in group.required if len(names) == 1))
    listed = [*sorted(plain), *(f"!{name}" for name in sorted(group.forbidden))]
    if listed:
        yield "required", ",".join(listed)
    for alternatives in group.required:
        if len(alternatives) > 1:
            yield "required", "in:" + ",".join(sorted(alternatives))
    for alternatives in group.member_of:
        yield "member_of", _write_aggregates("", alternatives)
    if group.not_member_of:
        yield "member_of", _write_aggregates("!", group.not_member_of)
    if group.in_tree is not None:
        yield "in_tree", "<unknown>" if group.in_tree == "unknown" else f"<rp:{group.in_tree}>"


def _write_aggregates(sign: str, names: frozenset[str]) -> str:
    listed = ",".join(f"<agg:{name}>" for name in sorted(names))
    return f"{sign}{listed}" if len(names) == 1 else f"{sign}in:{listed}"
