# SPDX-License-Identifier: Apache-2.0
"""What differs between two answers to one request, as a client would see it.

Compared: the status, the error's code and title, the fragments of the error's text that known
clients match, JSON whatever the order of its lists but that of the traits in summaries, the headers
that mean something, and, last and least, the whole sentence of an error. Dates, request ids and
generated uuids are compared by presence only.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass
from enum import IntEnum

from bench.script.step import Json, Step
from bench.wire import Answer


class Kind(IntEnum):
    """What differs, the gravest first."""

    STATUS = 1
    CODE = 2
    BODY = 3
    FRAGMENT = 4
    HEADER = 5
    TITLE = 6
    WORDING = 7


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between berth's answer and the original's."""

    kind: Kind
    #: What of the answer: a header's name, `body`, a fragment.
    part: str
    ours: str
    theirs: str


#: Literal text that clients match (section 17 of the REST specification).
FRAGMENTS = (
    "Conflicting resource provider name:",
    "consumer generation conflict",
    "No resource provider with uuid",
    "No inventory of class",
    "found for delete",
    "re-parenting a provider is not currently allowed",
    "in use.",
    "No allocations for consumer '",
    "Please update the generation and try again.",
    "is not a 'uuid'",
    "Unknown resource class",
    "JSON does not validate",
    "No such resource class",
    "Cannot delete standard resource class",
    "No such trait",
    "Unacceptable version header:",
    "invalid version string:",
    "content-type header required",
    "content-length header must be an integer",
    "The media type None is not supported, use application/json",
    "Only application/json is provided",
    "is not allowed for this resource.",
    "The resource could not be found",
    "Malformed JSON:",
    "Additional properties are not allowed",
    "is a required property",
    "Failed validating 'required'",
    "Failed validating 'minLength'",
    "Failed validating 'maxLength'",
    "Failed validating 'minItems'",
    "Failed validating 'minimum'",
    "Failed validating 'maximum'",
    "Failed validating 'pattern'",
    "Failed validating 'format'",
    "in schema['properties']['",
    "0 is less than the minimum of 1",
    "is not of type 'integer'",
    "is not of type 'array'",
    "does not match any of the regexes",
    "do not match any of the regexes",
    "does not match '^[A-Z0-9_]+$'",
    "does not match '^[1-9][0-9]*$'",
    "has non-unique elements",
    "should be non-empty",
    "was unexpected",
    "were unexpected",
    "Invalid query string parameters",
    "Expected 'member_of' parameter to contain valid UUID(s).",
    "Multiple member_of parameters are not supported",
    "Forbidden member_of parameters are not supported",
    "Expected 'required' parameter value of the form: HW_CPU_X86_VMX,!CUSTOM_MAGIC.",
    "Expected 'required' parameter value of the form: HW_CPU_X86_VMX,CUSTOM_MAGIC.",
    "only supported since microversion 1.39",
    "Badly formed resources parameter",
    "Got:",
    "expected positive integer amount",
    "requires amount >= 1",
    "Invalid resource class in resources parameter",
    "Conflicting resource provider uuid:",
    'Unable to create resource provider "',
    "parent provider UUID cannot be same as UUID",
    "parent provider UUID does not exist",
    "un-parenting a provider is not currently allowed",
    "creating loop in the provider tree is not allowed.",
    "Unable to delete resource provider ",
    "It has child resource providers.",
    "Resource provider has allocations.",
    "resource provider generation conflict",
    "Unable to create inventory for resource provider",
    "Unable to update inventory for resource provider",
    "greater than or equal to total",
    "greater than total",
    "No inventory record with resource class",
    "Update conflict",
    "Unknown resource class in inventory",
    "Badly formatted name parameter",
    "The trait is invalid",
    "is in use by a resource provider.",
    "Cannot delete standard trait",
    "Conflicting resource class already exists",
    "Resource class already exists",
    "Cannot update standard resource class ",
    "Error in delete resource class",
    "Class is in use in inventory",
    "Malformed consumer_uuid",
    "Allocation for resource provider '",
    "that does not exist",
    "Unable to allocate inventory",
    "The requested amount would exceed the capacity",
    "Inventory for '",
    "expected null but got ",
    "actual: ",
    "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword",
    "Expected 'in_tree' parameter to be a format of uuid",
    "Got an empty trait in",
    "does not support forbidden traits",
    "Conflicting required and forbidden traits",
    "Query parameter 'root_required' may be specified only once.",
    "orphaned traits keys:",
    "orphaned member_of keys:",
    "All request groups must specify resources.",
    "At least one request group",
    "There must be at least one resources or resources[$S] parameter.",
    "Resourceless suffixed group request should be specified in `same_subtree` query param",
    "Real suffixes should be specified in `same_subtree`:",
    "Empty string (unsuffixed group) can not be specified in `same_subtree`",
    'The "group_policy" parameter is required when specifying more than one',
    "is not one of ['none', 'isolate']",
)

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

_BASE_URL = re.compile(r"^http://[^/]+")


def find_differences(
    step: Step, ours: Answer, theirs: Answer, *, known_uuids: Set[str]
) -> Iterator[Difference]:
    """Say how berth's answer differs from the original's; the gravest kind alone where it explains.

    Args:
        step: the request that both answered.
        ours: berth's answer.
        theirs: the original's answer.
        known_uuids: the uuids that the script names; others were generated and are not compared.
    """
    if ours.status != theirs.status:
        yield Difference(Kind.STATUS, "status", _summary(ours), _summary(theirs))
        return
    our_errors, their_errors = _error(ours), _error(theirs)
    if our_errors is not None and their_errors is not None:
        yield from _compare_errors(our_errors, their_errors)
    else:
        our_body = _canonical_body(step, ours, known_uuids)
        their_body = _canonical_body(step, theirs, known_uuids)
        if our_body != their_body:
            yield Difference(Kind.BODY, "body", *_around_the_difference(our_body, their_body))
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
    our_detail, their_detail = str(ours.get("detail")), str(theirs.get("detail"))
    for fragment in FRAGMENTS:
        if fragment in their_detail and fragment not in our_detail:
            yield Difference(Kind.FRAGMENT, fragment, _message(ours), _message(theirs))
    if ours.get("title") != theirs.get("title"):
        yield Difference(Kind.TITLE, "title", str(ours.get("title")), str(theirs.get("title")))
    if _message(ours) != _message(theirs):
        yield Difference(Kind.WORDING, "detail", _message(ours), _message(theirs))


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
    alike = next((place for place, (one, other) in pairs if one != other), 0)
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
    return _UUID.sub(lambda found: found[0] if found[0] in known_uuids else "<generated>", text)


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
        content["message"] = "(words)"
    if isinstance(content, dict) and "provider_summaries" in content:
        for summary in content["provider_summaries"].values():
            if "traits" in summary:
                summary["traits"] = _in_order(summary["traits"])
    return _canonical(content, known_uuids)


def _in_order(traits: list[str]) -> dict[str, Json]:
    """Traits with their order, which is that of their ids.

    The original gives the standard ones their ids in an order that differs each time that it makes
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
