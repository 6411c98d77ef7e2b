# SPDX-License-Identifier: Apache-2.0
"""Where berth answers differently on purpose, each with its reason: the only list of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from bench.differences import Difference, Kind
from bench.script.step import Step
from bench.wire import Answer

#: Decides about one difference between berth's answer and the original's.
Applies = Callable[[Step, Answer, Answer, Difference], bool]


@dataclass(frozen=True, slots=True)
class Known:
    """A deliberate difference."""

    name: str
    reason: str
    applies: Applies


def explain(step: Step, ours: Answer, theirs: Answer, difference: Difference) -> Known | None:
    """The deliberate difference that this one is a case of, if any."""
    return next(
        (known for known in KNOWN if known.applies(step, ours, theirs, difference)),
        None,
    )


_HEX = "[0-9a-fA-F]"
_UNDASHED = re.compile(f"(?<!{_HEX}){_HEX}{{32}}(?!{_HEX})")
_DASHED = re.compile(f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}")
_ODD_DASHES = re.compile(f"(?:{_HEX}-){{31}}{_HEX}")


def _has_other_uuid_spelling(step: Step) -> bool:
    """Whether the request spells a uuid in another way than lower-case and dashed."""
    text = step.path + (step.body or b"").decode(errors="replace")
    return (
        any(found != found.lower() for found in _DASHED.findall(text))
        or bool(_UNDASHED.search(text) or _ODD_DASHES.search(text))
        or "{" + (_DASHED.search(step.path) or [""])[0] + "}" in step.path
        or "urn:uuid:" in text
    )


def _is_original_crash(step: Step, ours: Answer, theirs: Answer, _: Difference) -> bool:
    return theirs.status == 500 and ours.status < 500


def _is_uuid_spelling(step: Step, ours: Answer, theirs: Answer, _: Difference) -> bool:
    return ours.status < 500 and _has_other_uuid_spelling(step)


def _is_vary(step: Step, ours: Answer, theirs: Answer, difference: Difference) -> bool:
    return difference.part == "vary" and difference.theirs == "absent"


def _is_json_for_html(step: Step, ours: Answer, theirs: Answer, difference: Difference) -> bool:
    return (
        ours.headers.get("content-type") == "application/json"
        and theirs.headers.get("content-type", "").startswith("text/html")
        and "html" not in step.headers.get("accept", "html")
        and difference.kind in (Kind.BODY, Kind.HEADER)
    )


def _is_final_newline(step: Step, ours: Answer, theirs: Answer, _: Difference) -> bool:
    return "%0A" in step.path or rb'\n"' in (step.body or b"")


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


def _is_wording(step: Step, ours: Answer, theirs: Answer, difference: Difference) -> bool:
    return difference.kind is Kind.WORDING


KNOWN: tuple[Known, ...] = (
    Known(
        "original answers 500",
        "A defect of the original; berth answers what the request deserves.",
        _is_original_crash,
    ),
    Known(
        "uuid spelling",
        "berth brings every uuid into the lower-case dashed form, the original compares as sent.",
        _is_uuid_spelling,
    ),
    Known("vary everywhere", "berth sends Vary on every answer.", _is_vary),
    Known(
        "JSON on a tie",
        "Where Accept ranks JSON and HTML alike the original's errors are HTML; berth's are JSON.",
        _is_json_for_html,
    ),
    Known(
        "newline at the end of a name",
        "The original's patterns let a final newline pass; berth takes it as a mismatch.",
        _is_final_newline,
    ),
    Known(
        "Last-Modified of a renamed provider",
        "The original leaves it out where the provider had never been updated before.",
        _is_fresh_last_modified,
    ),
    Known(
        "literal trait prefix",
        "startswith: is an SQL LIKE in the original (wildcards, no case), a literal prefix here.",
        _is_literal_prefix,
    ),
    Known(
        "own words",
        "berth words its errors itself; the fragments that clients match are compared apart.",
        _is_wording,
    ),
)
