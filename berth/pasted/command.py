# SPDX-License-Identifier: Apache-2.0
"""Reads `berth` commands that ask for something, as the request that they send."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from berth.pasted.query import NotReadable

_COMMAND: Final = re.compile(
    r"\bberth(?:\s+--[\w-]+(?:=\S+|\s+(?!-)\S+)?){0,8}\s+(?:why|candidates|capacity|place)(?=\s|\Z)"
)
#: What no amount and no flavor has.
_IN_A_QUERY: Final = re.compile(r"[&?%\s]|=.*:")
#: A line that goes on in the next.
_CONTINUED: Final = re.compile(r"\\\r?\n[ \t>]*")

_ITEMS: Final = ("required", "anywhere", "member_of")
_REFERENCES: Final = ("in_tree", "under", "not_under", "in", "not_in")
_OF_GROUP: Final = ("required", "member_of", "in_tree", "under", "not_under", "split")
_OF_HOST: Final = ("required", "anywhere", "member_of", "in", "not_in")
_AMOUNT: Final = re.compile(r"([A-Z0-9_]+)[=:](\d+)")

#: Options of these commands that say nothing about the request, with a value and without.
_OTHER_OPTIONS: Final = frozenset(
    {
        *("nearest", "seconds", "url", "token", "os_cloud", "config_file", "config_dir"),
        *("order", "limit", "per_host", "by", "count", "project", "user", "for", "lease"),
    }
)
_OTHER_FLAGS: Final = frozenset({"json", "debug", "dry_run"})


def command_in(text: str) -> dict[str, Any] | None:
    """The request of a `berth` command; None if the text is none, or it asks by a query string.

    Raises:
        NotReadable: the command cannot be read.
    """
    match = _COMMAND.search(text)
    if match is None:
        return None
    command = _Command(_words_of_line(text[match.end() :]))
    if any(_IN_A_QUERY.search(amount) for amount in command.amounts):
        return None
    return command.wanted()


def conditions(text: str) -> Iterator[tuple[list[str], bool]]:
    """The conditions of `A,!B`, `in:A,B` or `!in:A,B`: names, and whether they are forbidden.

    Of several names in one condition, one is enough, or none is allowed.
    """
    mark = "!" if text.startswith("!in:") else ""
    listed = text.removeprefix(mark).removeprefix("in:").split(",")
    if text.startswith((f"{mark}in:", "in:")):
        yield listed, bool(mark)
    else:
        yield from (([name.removeprefix("!")], name.startswith("!")) for name in listed)


def items_of(texts: Iterable[str]) -> list[str | list[str]]:
    """Conditions in the grammar of requests: `A`, `!A`, or a list of which one is enough."""
    items: list[str | list[str]] = []
    for text in texts:
        for names, is_forbidden in conditions(text):
            if is_forbidden:
                items += [f"!{name}" for name in names]
            else:
                items.append(names[0] if len(names) == 1 else names)
    return items


class _Command:
    """The words of a command, sorted by what they become."""

    def __init__(self, words: Sequence[str]) -> None:
        self.amounts: list[str] = []
        self._options: dict[str, list[str]] = {}
        rest = iter(words)
        for word in rest:
            if word in ("|", ";", "&&", "||", ">"):
                break
            if not word.startswith("--"):
                self.amounts.append(word)
                continue
            name, is_given, value = word.removeprefix("--").partition("=")
            option = name.replace("-", "_")
            if option not in _OTHER_FLAGS:
                self._take(option, value if is_given else next(rest, ""))

    def wanted(self) -> dict[str, Any]:
        """What it asks for."""
        flavor, groups = self._flavor(), self._groups()
        if not flavor and not groups:
            raise NotReadable("This command asks for nothing: VCPU=4 would ask for something")
        tolerated = self._options.get("tolerate", [])
        request = {
            "flavor": flavor,
            "groups": groups,
            "host": _conditions({name: self._options.get(f"host_{name}", []) for name in _OF_HOST}),
            "tolerate": "*" if "*" in tolerated else tolerated,
            "together": list(map(_relation, self._options.get("together", ()))),
            "apart": list(map(_relation, self._options.get("apart", ()))),
        }
        return {name: value for name, value in request.items() if value}

    def _flavor(self) -> str:
        named = (each for each in self.amounts if not _is_amount(each))
        flavors = [*self._options.get("flavor", ()), *named]
        if len(flavors) > 1:
            raise NotReadable(f"A request has one flavor: remove {flavors[-1]}")
        return flavors[0] if flavors else ""

    def _groups(self) -> dict[str, Any]:
        texts = {name: self._options.get(name, []) for name in _OF_GROUP}
        own = _group(filter(_is_amount, self.amounts), texts)
        groups = {"": own} if own else {}
        for text in self._options.get("group", ()):
            name, *words = _words(text) or [""]
            groups[name] = _named_group(words)
        return groups

    def _take(self, option: str, value: str) -> None:
        if option == "request":
            raise NotReadable(
                f"The file {value} of --request is not in this command: paste what it has"
            )
        if option.removeprefix("host_") in (*_OF_GROUP, *_OF_HOST) or option in (
            *("flavor", "group", "together", "apart", "tolerate"),
        ):
            self._options.setdefault(option, []).append(value)
        elif option not in _OTHER_OPTIONS:
            raise NotReadable(f"The option --{option.replace('_', '-')} is not part of a request")


def _words_of_line(text: str) -> list[str]:
    """The words up to the end of the line, which no quote and no backslash continues."""
    joined = _CONTINUED.sub(" ", text)
    try:
        return shlex.split(joined.partition("\n")[0])
    except ValueError:
        return _words(joined)


def _words(text: str) -> list[str]:
    """The words of a command line, without their quotes."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise NotReadable("A quote is not closed in this command") from error


def _named_group(words: Iterable[str]) -> dict[str, Any]:
    texts: dict[str, list[str]] = {}
    amounts = []
    for word in words:
        name, _, value = word.partition("=")
        if name in _OF_GROUP:
            texts.setdefault(name, []).append(value)
        else:
            amounts.append(word)
    return _group(amounts, texts)


def _group(amounts: Iterable[str], texts: dict[str, list[str]]) -> dict[str, Any]:
    resources = dict(map(_amount, amounts))
    group: dict[str, Any] = {"resources": resources} if resources else {}
    return {**group, **_conditions(texts)}


def _conditions(texts: dict[str, list[str]]) -> dict[str, Any]:
    """The conditions of a group or of the host, by their member."""
    conditions_by_member: dict[str, Any] = {}
    for name, values in texts.items():
        if values and name in _ITEMS:
            conditions_by_member[name] = items_of(values)
        elif values and name in _REFERENCES:
            conditions_by_member[name] = values
        elif values:
            conditions_by_member[name] = dict(map(_split, values))
    return conditions_by_member


def _is_amount(text: str) -> bool:
    """Whether it is no flavor."""
    return "=" in text or _AMOUNT.fullmatch(text) is not None


def _amount(text: str) -> tuple[str, int]:
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise NotReadable(f"{text} is not CLASS=AMOUNT, as in VCPU=4")
    return match[1], int(match[2])


def _split(text: str) -> tuple[str, dict[str, int]]:
    """A class to split and how: `VCPU`, or `VCPU:parts=4,min=2`."""
    name, _, how = text.partition(":")
    pairs = (pair.partition("=") for pair in filter(None, how.split(",")))
    try:
        return name, {each: int(number) for each, _, number in pairs}
    except ValueError as error:
        raise NotReadable(f"--split {text} is not CLASS:parts=N,min=M,step=S") from error


def _relation(text: str) -> dict[str, Any]:
    groups, _, level = text.rpartition("@")
    return {"groups": groups.split(","), "at": level}
