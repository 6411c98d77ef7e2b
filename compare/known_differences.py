# SPDX-License-Identifier: Apache-2.0
"""The list of intended differences, each with its reason."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import parse_qsl

from compare.differences import Difference, Kind, candidates_in, last_line
from compare.script.step import Step, uid
from compare.wire import Answer

#: Decides about one difference between berth's answer and Placement's.
Applies = Callable[[Step, Answer, Answer, Difference], bool]


@dataclass(frozen=True, slots=True)
class Known:
    """An intended difference."""

    name: str
    reason: str
    applies: Applies


def explain(step: Step, ours: Answer, theirs: Answer, difference: Difference) -> Known | None:
    """The intended difference that explains this one, if any."""
    return next(
        (listed for listed in KNOWN if listed.applies(step, ours, theirs, difference)),
        None,
    )


_UUID_SPELLING_UUIDS = {
    spelling
    for name in ("spelling", "spelling-new", "spelling-aggregate", "spelling-consumer")
    for spelling in (uid(name), uid(name).replace("-", ""))
}

#: Values of Accept that rank JSON and HTML alike.
_TIES = {
    "*/*;q=0.8",
    "application/json,text/html",
    "application/json, */*",
    "text/html, */*",
    "garbage",
}

#: A query with an unsuffixed and a suffixed group of resources.
_MIXED_GROUPS = re.compile(r"[?&]resources=.*&resources\w+=")

_CLASS_NAME = re.compile(r"^[A-Z0-9_]+$")

_WHOLE_FRACTION = re.compile(r"(?<=\d)\.0+\b")


def _is_placement_crash(step: Step, ours: Answer, theirs: Answer, _: Difference) -> bool:
    return theirs.status == 500 and ours.status < 500


def _is_stale_consumer(step: Step, ours: Answer, theirs: Answer, _: Difference) -> bool:
    return theirs.status == 409 and "expected 0 but got" in last_line(theirs)


def _is_uuid_spelling(step: Step, ours: Answer, theirs: Answer, _: Difference) -> bool:
    text = (step.path + (step.body or b"").decode(errors="replace")).lower()
    bare = text.replace("-", "")
    return ours.status < 500 and any(uuid in text or uuid in bare for uuid in _UUID_SPELLING_UUIDS)


def _is_vary(step: Step, ours: Answer, theirs: Answer, difference: Difference) -> bool:
    return difference.part == "vary" and difference.theirs == "absent"


def _is_json_for_html(step: Step, ours: Answer, theirs: Answer, difference: Difference) -> bool:
    return (
        step.headers.get("accept") in _TIES
        and ours.headers.get("content-type") == "application/json"
        and difference.kind in (Kind.BODY, Kind.HEADER)
    )


def _is_length_of_nothing(step: Step, ours: Answer, theirs: Answer, difference: Difference) -> bool:
    return difference.part == "content-length" and ours.status == 204 and not ours.body


def _is_whole_number(step: Step, ours: Answer, theirs: Answer, difference: Difference) -> bool:
    return (
        difference.part == "body"
        and step.method in ("PUT", "POST")
        and _WHOLE_FRACTION.sub("", difference.ours) == _WHOLE_FRACTION.sub("", difference.theirs)
    )


def _is_servers_own_answer(
    step: Step, ours: Answer, theirs: Answer, difference: Difference
) -> bool:
    return "content-length" in step.headers and difference.kind in (Kind.BODY, Kind.HEADER)


def _is_lost_anchor(step: Step, ours: Answer, theirs: Answer, difference: Difference) -> bool:
    if not (step.candidates and difference.part == "body" and _MIXED_GROUPS.search(step.path)):
        return False
    if ours.status != 200:
        return False
    our_candidates, their_candidates = candidates_in(ours), candidates_in(theirs)
    return our_candidates > their_candidates and "MISC_SHARES_VIA_AGGREGATE" in str(ours.body)


def has_grown_amounts(step: Step) -> bool:
    """Say whether Placement adds up amounts from one candidate to the next (its defect D2).

    So it does where the unsuffixed group and another ask for one class, and `group_policy` is not
    `none`.
    """
    parameters = parse_qsl(step.path.partition("?")[2], keep_blank_values=True)
    policies = [value for name, value in parameters if name == "group_policy"]
    if not step.candidates or policies[:1] == ["none"]:
        return False
    classes: dict[str, set[str]] = {}
    for name, value in parameters:
        if name.startswith("resources"):
            classes[name] = {item.partition(":")[0] for item in value.split(",")}
    unsuffixed = classes.pop("resources", set())
    return any(unsuffixed & others for others in classes.values())


def _is_grown_amount(step: Step, ours: Answer, theirs: Answer, difference: Difference) -> bool:
    return difference.part == "body" and has_grown_amounts(step)


def _is_unchecked_repetition(
    step: Step, ours: Answer, theirs: Answer, difference: Difference
) -> bool:
    # Placement goes on, and may find another fault.
    return (
        ours.status == 400
        and theirs.status in (200, 400)
        and step.candidates
        and any(
            step.path.count(f"{name}=") > 1 and f"instance['{name}']" in last_line(ours)
            for name in ("limit", "group_policy")
        )
    )


def _is_odd_class_name(step: Step, ours: Answer, theirs: Answer, difference: Difference) -> bool:
    return (
        (ours.status, theirs.status) in ((400, 400), (400, 409))
        and "JSON does not validate" in last_line(ours)
        and any(not _CLASS_NAME.match(name) for name in _classes_with_inventory(step))
    )


def _classes_with_inventory(step: Step) -> Iterator[str]:
    """The names under which a body of PUT inventories or of a reshape has records."""
    with suppress(ValueError, LookupError, AttributeError, TypeError):
        inventories = json.loads(step.body or b"")["inventories"]
        for name, record in inventories.items():
            yield from record["inventories"] if step.path == "/reshaper" else (name,)


def _is_final_newline(step: Step, ours: Answer, theirs: Answer, difference: Difference) -> bool:
    return "%0A" in step.path or rb'\n"' in (step.body or b"") or r'\n"' in difference.theirs


def _is_fresh_last_modified(
    step: Step, ours: Answer, theirs: Answer, difference: Difference
) -> bool:
    return (
        difference.part == "last-modified"
        and step.method == "PUT"
        and step.path.count("/") == 2
        and step.path.startswith("/resource_providers/")
        and difference.theirs == "absent"
    )


def _is_literal_prefix(step: Step, ours: Answer, theirs: Answer, _: Difference) -> bool:
    return step.path.startswith("/traits?") and "startswith:" in step.path


def _is_unknown_name(step: Step, ours: Answer, theirs: Answer, difference: Difference) -> bool:
    return (
        step.path.startswith("/resource_providers?")
        and (ours.status, theirs.status) == (400, 200)
        and ("No such trait(s)" in last_line(ours) or "No such resource class" in last_line(ours))
        and json.loads(theirs.body) == {"resource_providers": []}
    )


KNOWN: tuple[Known, ...] = (
    Known(
        "Placement answers 500",
        "A defect of Placement; berth answers what the request deserves.",
        _is_placement_crash,
    ),
    Known(
        "uuid spelling",
        "berth takes every spelling of a uuid for the same thing, Placement compares as sent.",
        _is_uuid_spelling,
    ),
    Known(
        "stale consumer",
        "Placement keeps the record of a consumer whose first claim failed (10.6), and wants 0.",
        _is_stale_consumer,
    ),
    Known(
        "length of nothing",
        "HTTP forbids Content-Length on 204 (RFC 9110, 8.6); servers such as Granian take it away.",
        _is_length_of_nothing,
    ),
    Known(
        "whole numbers",
        "Answers to PUT and POST give integers as 1 and ratios as 1.0, however they were sent.",
        _is_whole_number,
    ),
    Known(
        "the server's own answer",
        "Granian refuses a bad Content-Length before the application sees the request.",
        _is_servers_own_answer,
    ),
    Known(
        "lost anchors",
        "Placement loses hosts where sharing providers alone serve the unsuffixed group (D3).",
        _is_lost_anchor,
    ),
    Known(
        "grown amounts",
        "Placement adds up amounts of a class that two groups ask for, across candidates (D2).",
        _is_grown_amount,
    ),
    Known(
        "unchecked repetition",
        "Placement checks the last limit or group_policy and uses the first; berth checks all.",
        _is_unchecked_repetition,
    ),
    Known(
        "odd class names",
        "Placement does not look at a record under a malformed class name; berth's schema does.",
        _is_odd_class_name,
    ),
    Known("vary everywhere", "berth sends Vary on every answer.", _is_vary),
    Known(
        "JSON on a tie",
        "Where Accept ranks JSON and HTML alike Placement's errors are HTML; berth's are JSON.",
        _is_json_for_html,
    ),
    Known(
        "newline at the end of a name",
        "Placement's patterns let a final newline pass; berth takes it as a mismatch.",
        _is_final_newline,
    ),
    Known(
        "Last-Modified of a renamed provider",
        "Placement leaves it out where the provider had never been updated before.",
        _is_fresh_last_modified,
    ),
    Known(
        "literal trait prefix",
        "startswith: is an SQL LIKE in Placement (wildcards, no case), a literal prefix here.",
        _is_literal_prefix,
    ),
    Known(
        "unknown name in a filter",
        "Placement answers that nothing was found where another filter leaves nothing before "
        "the unknown trait or class is looked at; berth refuses an unknown name always.",
        _is_unknown_name,
    ),
)
