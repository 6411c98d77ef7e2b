# SPDX-License-Identifier: Apache-2.0
"""What differs between two answers to one request, as a client would see it.

Compared: the status, the error's code and title, JSON whatever the order of its lists but that of
the traits in summaries, and the headers that mean something. What berth says in an error must begin
with all that Placement says there, but for dumps of schemas, of instances and of SQL, and the
order of what has none. Dates, request ids and generated uuids are compared by presence only.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass
from enum import IntEnum
from html import unescape
from urllib.parse import unquote_plus

from bench.api import Json
from compare.script.step import Step
from compare.wire import Answer


class Kind(IntEnum):
    """The kinds of differences, most severe first."""

    STATUS = 1
    CODE = 2
    BODY = 3
    DETAIL = 4
    HEADER = 5
    TITLE = 6


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between berth's answer and Placement's."""

    kind: Kind
    #: What of the answer: a header's name, `body`, `detail`.
    part: str
    ours: str
    theirs: str


#: Headers whose value counts.
_HEADERS = (
    "content-type",
    "location",
    "openstack-api-version",
    "vary",
    "cache-control",
    "allow",
    "www-authenticate",
)

#: Headers of which only the presence counts.
_PRESENT = ("last-modified", "x-openstack-request-id", "content-length")

_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: How much of the equal part to keep where two bodies begin to differ.
_CONTEXT_CHARACTERS = 120

#: Dumps in an error about a breach of a schema: what stands around them counts.
_SCHEMA_DUMPS = re.compile(r"( in schema.*?):\s.*(\sOn instance.*?):\s.*", re.DOTALL)
#: The words of a driver and its SQL.
_SQL_DUMP = re.compile(r"\(\w+\.\w+Error\) .*", re.DOTALL)
#: Messages that list something in the order of a set.
_UNORDERED = re.compile(
    r"No such trait |\bgroup\(s\) - |not found in|Conflicting required|Inventory for '\S+, "
    r"|on resource provider '\S+, |do not match any of|were unexpected"
)
#: Messages that name one thing of a set.
_NAMES_ONE = re.compile(
    r"(?P<before>.*(?:No such trait\(s\): |contain valid UUID\(s\)\. Got: ))(?P<name>.*?)\.?  $",
    re.DOTALL,
)
#: Details longer than this are shortened in their middle.
_DETAIL_BEGIN = 2000
_END_OF_PAGE = " </body>"

_BASE_URL = re.compile(r"^http://[^/]+")


def find_differences(
    step: Step, ours: Answer, theirs: Answer, *, known_uuids: Set[str]
) -> Iterator[Difference]:
    """Say how berth's answer differs from Placement's; the gravest kind alone where it explains.

    Args:
        step: the request that both answered.
        ours: berth's answer.
        theirs: Placement's answer.
        known_uuids: the uuids that the script names; others were generated and are not compared.
    """
    if ours.status != theirs.status:
        yield Difference(Kind.STATUS, "status", _summary(ours), _summary(theirs))
        return
    our_errors, their_errors = _error(ours), _error(theirs)
    if our_errors is not None and their_errors is not None:
        yield from _compare_errors(our_errors, their_errors)
        our_words, their_words = (str(each.get("detail")) for each in (our_errors, their_errors))
    else:
        # In another form than Placement's they are no match, which the headers tell.
        alike = ours.headers.get("content-type") == theirs.headers.get("content-type")
        our_words, their_words = (_words(each) if alike else "" for each in (ours, theirs))
        our_body = _canonical_body(step, ours, known_uuids)
        their_body = _canonical_body(step, theirs, known_uuids)
        if our_body != their_body:
            yield Difference(Kind.BODY, "body", *_around_the_difference(our_body, their_body))
    if not _begins_alike(step, our_words, their_words, known_uuids):
        yield Difference(Kind.DETAIL, "detail", our_words, their_words)
    yield from _compare_headers(ours, theirs, known_uuids)


def last_line(answer: Answer) -> str:
    """The specific message of an error: what osc-placement shows."""
    error = _error(answer)
    return "" if error is None else _message(error)


def candidates_in(answer: Answer) -> Counter[str]:
    """The candidates of an answer as a multiset: their order means nothing."""
    return Counter(
        json.dumps(
            {
                "allocations": _allocations_by_provider(candidate["allocations"]),
                "mappings": {
                    suffix: sorted(providers)
                    for suffix, providers in candidate.get("mappings", {}).items()
                },
            },
            sort_keys=True,
        )
        for candidate in json.loads(answer.body)["allocation_requests"]
    )


def _allocations_by_provider(allocations: Json) -> Json:
    """The allocations of a candidate in the form since 1.12."""
    if isinstance(allocations, list):
        return {each["resource_provider"]["uuid"]: each["resources"] for each in allocations}
    return allocations


def _summary(answer: Answer) -> str:
    """Status and specific message."""
    return f"{answer.status} {last_line(answer)}".strip()


def _error(answer: Answer) -> dict[str, Json] | None:
    """The one element of `errors`, None where the answer has another form."""
    try:
        errors = json.loads(answer.body)["errors"]
    except (ValueError, TypeError, KeyError):
        return None
    error: dict[str, Json] = errors[0]
    return error


def _message(error: dict[str, Json]) -> str:
    """The last line of an error's detail."""
    return str(error.get("detail")).rpartition("\n")[2].strip()


def _compare_errors(ours: dict[str, Json], theirs: dict[str, Json]) -> Iterator[Difference]:
    if ours.get("code") != theirs.get("code"):
        yield Difference(Kind.CODE, "code", str(ours.get("code")), str(theirs.get("code")))
    if ours.keys() != theirs.keys():
        yield Difference(Kind.BODY, "keys of the error", str(sorted(ours)), str(sorted(theirs)))
    for key in ("status", "max_version", "min_version"):
        if ours.get(key) != theirs.get(key):
            yield Difference(Kind.BODY, key, str(ours.get(key)), str(theirs.get(key)))
    if ours.get("title") != theirs.get("title"):
        yield Difference(Kind.TITLE, "title", str(ours.get("title")), str(theirs.get("title")))


def _words(answer: Answer) -> str:
    """What an answer without a list of errors says to people; nothing where it says nothing."""
    if answer.status < 400:
        return ""
    text = answer.body.decode(errors="backslashreplace")
    if answer.headers.get("content-type", "").startswith("text/html"):
        return " ".join(unescape(text.partition(_END_OF_PAGE)[0]).split())
    try:
        return str(json.loads(text)["message"])
    except (ValueError, TypeError, KeyError):
        return text


def _begins_alike(step: Step, ours: str, theirs: str, known_uuids: Set[str]) -> bool:
    """Whether berth's words begin with Placement's, whose order may be that of a set."""
    ours, theirs = (_comparable(text, known_uuids) for text in (ours, theirs))
    if ours.startswith(theirs):
        return True
    if len(theirs) > 2 * _DETAIL_BEGIN:
        return ours.startswith(theirs[:_DETAIL_BEGIN])
    if match := _NAMES_ONE.match(theirs):
        asked = ours + unquote_plus(step.path)
        return ours.startswith(match["before"]) and match["name"].strip() in asked
    ordered = (sorted(re.findall(r"[\w.-]+", text)) for text in (ours[: len(theirs)], theirs))
    return bool(_UNORDERED.search(theirs)) and next(ordered) == next(ordered)


def _comparable(text: str, known_uuids: Set[str]) -> str:
    """Words of an error without what may differ."""
    text = _SCHEMA_DUMPS.sub(r"\1\2", _SQL_DUMP.sub("", text))
    return _without_generated(text, known_uuids)


def _compare_headers(ours: Answer, theirs: Answer, known_uuids: Set[str]) -> Iterator[Difference]:
    for name in _HEADERS:
        our_value = _header(ours, name, known_uuids)
        their_value = _header(theirs, name, known_uuids)
        if our_value != their_value:
            yield Difference(Kind.HEADER, name, our_value, their_value)
    for name in _PRESENT:
        if (name in ours.headers) != (name in theirs.headers):
            our_value, their_value = (
                str(answer.headers.get(name, "absent")) for answer in (ours, theirs)
            )
            yield Difference(Kind.HEADER, name, our_value, their_value)


def _around_the_difference(ours: str, theirs: str) -> tuple[str, str]:
    """Two texts without most of what they begin with alike."""
    pairs = enumerate(zip(ours, theirs, strict=False))
    alike = next((place for place, (text, other) in pairs if text != other), 0)
    start = max(0, alike - _CONTEXT_CHARACTERS)
    dots = "..." if start else ""
    return dots + ours[start:], dots + theirs[start:]


def _header(answer: Answer, name: str, known_uuids: Set[str]) -> str:
    """A header's value without what differs between any two servers or runs."""
    value = answer.headers.get(name, "absent")
    if name in ("vary", "openstack-api-version"):
        return value.lower()
    if name == "location":
        return _without_generated(_BASE_URL.sub("<server>", value), known_uuids)
    return value


def _without_generated(text: str, known_uuids: Set[str]) -> str:
    return _UUID.sub(lambda match: match[0] if match[0] in known_uuids else "<generated>", text)


def _canonical_body(step: Step, answer: Answer, known_uuids: Set[str]) -> str:
    """The body as text that is equal for all equivalent bodies."""
    text = answer.body.decode(errors="backslashreplace")
    try:
        content = json.loads(text)
    except ValueError:
        return "(text)" if text else ""
    if step.candidates and "limit=" in step.path and answer.status == 200:
        # Which candidates a limit leaves is unspecified; how many is not.
        return f"{len(content['allocation_requests'])} candidates"
    if isinstance(content, dict) and "message" in content:
        content["message"] = "(compared by itself)"
    if isinstance(content, dict) and "provider_summaries" in content:
        for summary in content["provider_summaries"].values():
            if "traits" in summary:
                summary["traits"] = _in_order(summary["traits"])
    return _canonical(content, known_uuids)


def _in_order(traits: list[str]) -> dict[str, Json]:
    """Traits with their order, which is that of their ids.

    Placement gives the standard ones their ids in an order that differs each time that it makes
    a database: where they stand counts, and not which of them stands where.
    """
    custom = [name if name.startswith("CUSTOM_") else "(standard)" for name in traits]
    standard = [name for name in traits if not name.startswith("CUSTOM_")]
    return {"in order": " ".join(custom), "standard": standard}


def _canonical(content: Json, known_uuids: Set[str]) -> str:
    """JSON with the keys of objects and the items of lists in one order."""
    if isinstance(content, dict):
        items = sorted(
            f"{_canonical(key, known_uuids)}: {_canonical(value, known_uuids)}"
            for key, value in content.items()
        )
        return "{" + ", ".join(items) + "}"
    if isinstance(content, list):
        return "[" + ", ".join(sorted(_canonical(item, known_uuids) for item in content)) + "]"
    return _without_generated(json.dumps(content), known_uuids)
