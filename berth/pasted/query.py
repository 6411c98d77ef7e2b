# SPDX-License-Identifier: Apache-2.0
"""Finds a query string of `GET /allocation_candidates` in other text.

Logs, shells, browsers, mails and chats wrap a query in quotes, escape it once more, and break it
into lines. All of that is undone; the query itself stays as it is, percent-encoded or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote


class NotReadable(ValueError):
    """There is no request in the text, or not all of one; the message is a sentence."""


#: What begins a parameter of the route.
_NAMES: Final = "resources|required|member_of|in_tree|root_required|same_subtree|group_policy|limit"
#: What a query consists of, encoded or not. Of the rest, quotes, brackets and spaces end it.
_CHARACTERS: Final = r"[\w.~!*:,;=&%+/?@$-]"

_RUN: Final = re.compile(f"{_CHARACTERS}*")

#: The end of the path, wherever it is broken.
_AFTER_PATH: Final = re.compile(
    r"(?:\\?\r?\n[ \t>]{0,20})?".join([*"allocation_candidates", "/?", r"\?"])
)
_PARAMETER: Final = re.compile(rf"(?<![\w%&.-])(?:{_NAMES})[\w-]{{0,80}}=(?=[\w!%])")
#: A query that nothing surrounds.
_WHOLE: Final = re.compile(
    rf"(?:{_NAMES})[\w-]*=[^ \t\r\n\"'`{{}}<>()\[\]\\|\u00ad\u200b-\u200d\u2060\x1b]*[^\W_]"
)
#: A URL within another, such as a link to a search of logs.
_ENCODED: Final = re.compile(
    rf"(?:allocation_candidates(?:%2F)?%3F|(?<![\w&.-])(?:{_NAMES})[\w-]{{0,80}}%3D)[^\s&\"'<>#]*",
    re.IGNORECASE,
)
#: A value that was encoded twice.
_TWICE: Final = re.compile(r"%25(?:3A|2C|21)", re.IGNORECASE)
_ONCE: Final = re.compile(r":|%3A", re.IGNORECASE)
#: How often a text may have been escaped or encoded in one way. The bounds on what the patterns
#: here repeat keep the time proportional to the length of the text.
_LEVELS: Final = 3

_ENTITY: Final = re.compile(r"&(?:amp|#0*38|#x0*26);", re.IGNORECASE)
_OTHER_ENTITY: Final = re.compile(
    r"&(?:quot|apos|lt|gt|nbsp|#0*3[49]|#0*6[02]|#x0*2[27]|#x0*3[ce]);", re.IGNORECASE
)
_ESCAPED_QUOTE: Final = re.compile(r"""\\{1,4}(["'`])""")
#: Characters as JSON and shells escape them.
_ESCAPED: Final = re.compile(r"\\{1,4}u00([0-7][0-9a-f])|\\{1,4}([&!?=:,;%/$])", re.IGNORECASE)
#: Line breaks as they are, as JSON writes them, and as a shell continues a line.
_BREAK: Final = re.compile(r"[ \t]{0,200}(?:\\{1,4}r)?(?:\\{1,4}n|\\?\r?\n)[ \t>|\u2502]{0,200}")
#: What is in a text, but not to be seen, such as a place where a chat may break a line.
_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]|\x1b\\[[0-9;]*m")

#: After these, a parameter is not complete.
_OPEN: Final = re.compile(r"(?:[&,:=!_%]|%[0-9a-f]|%2c|%3a|%21|%3d)\Z", re.IGNORECASE)
#: What a line of a log begins with, or has after a query.
_NOT_A_REST: Final = re.compile(
    r"\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|HTTP/\d|=>|https?:|[\w.-]+[:=,](?=\s|\Z)|"
    r"(?:GET|PUT|POST|REQ|RESP|TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL|AUDIT)\b"
)
#: The rest of a query that was cut anywhere: it goes on as a query does, or is the end of a name,
#: of a number, or of a UUID.
_REST: Final = re.compile(
    rf"(?:[\w.!-]*(?:%[0-9A-Fa-f]{{0,2}}|[&,:=]){_CHARACTERS}*|[A-Z0-9_]{{2,}}"
    r"""|(?=[a-f-]*\d)[0-9a-f-]+)(?=[\s"'`)\]\\]|\Z)|[A-Z](?=["'`]|\s*\Z)"""
)


def is_query(text: str) -> bool:
    """Whether a text is a query string with nothing to undo. It may have any character."""
    return _WHOLE.fullmatch(text) is not None and not _ENTITY.search(text)


def query_in(text: str, levels: int = _LEVELS) -> str | None:
    """The query string in a text, or None if it has none. Of several queries, the first counts.

    Args:
        levels: how often the text may have been percent-encoded.
    """
    plain = _without_escapes(text)
    match = _AFTER_PATH.search(plain) or _PARAMETER.search(plain)
    if match is None:
        encoded = _ENCODED.search(plain) if levels else None
        return query_in(unquote(encoded[0]), levels - 1) if encoded else None
    start = match.end() if match.re is _AFTER_PATH else match.start()
    query = _unbroken(plain, start).rstrip(".,;?:!")
    if _TWICE.search(query) and not _ONCE.search(query):
        query = unquote(query)
    return query or None


def _without_escapes(text: str) -> str:
    """The text as it was before HTML, JSON or a shell escaped it."""
    plain = _INVISIBLE.sub("", text)
    for _ in range(_LEVELS):
        plain = _ENTITY.sub("&", plain)
    plain = _OTHER_ENTITY.sub('"', plain)
    plain = _ESCAPED.sub(lambda match: match[2] or chr(int(match[1], 16)), plain)
    return _ESCAPED_QUOTE.sub(r"\1", plain)


def _unbroken(text: str, start: int) -> str:
    """The query that begins at a place, without the line breaks in it."""
    query, end = _run(text, start)
    while (gap := _BREAK.match(text, end)) is not None and gap.end() < len(text):
        rest, after = _run(text, gap.end())
        if not rest or not _goes_on(query, text, gap.end()):
            break
        query, end = query + rest, after
    return query


def _run(text: str, start: int) -> tuple[str, int]:
    """The characters of a query from a place on, and the place after them."""
    match = _RUN.match(text, start)
    assert match is not None, "it matches nothing, too"
    return match[0], match.end()


def _goes_on(query: str, text: str, place: int) -> bool:
    """Whether a query that a line break ends goes on after it."""
    if _NOT_A_REST.match(text, place):
        return False
    return bool(_OPEN.search(query, max(0, len(query) - 3)) or _REST.match(text, place))


# --- Groups --------------------------------------------------------------------------------------


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
