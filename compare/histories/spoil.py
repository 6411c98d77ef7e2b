# SPDX-License-Identifier: Apache-2.0
"""Ways to spoil a request that makes sense: each does one thing wrong, or merely odd."""

from __future__ import annotations

import copy
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.api import Json
from compare.histories.dice import Dice
from compare.script.step import CALLER, Step

Spoiler = Callable[[Dice, Step], Step]

_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Traits and resource classes, made or standard.
_NAME = re.compile(r"\b(?:CUSTOM_\w+|VCPU|MEMORY_MB|DISK_GB|HW_CPU_X86_AVX2|STORAGE_DISK_SSD)\b")
_UNKNOWN_NAMES = (
    "CUSTOM_NOBODY",
    "VCPUS",
    "HW_CPU_X86_AVX3",
    "lower",
    "A-B",
    "CUSTOM_" + "X" * 256,
)
_ODD_VALUES: tuple[Json, ...] = (
    *(None, True, -1, 0, 1, 1.0, 2.5, 3000000000, 2**70, "", "x", "1", "VCPU", "x" * 256),
    *([], {}, ["x"], {"x": 1}),
)
_ODD_KEYS = ("extra", "name", "uuid", "generation", "vcpu", "CUSTOM_NOBODY", "mappings", "")
_BODIES = (
    *(b"", b"{", b"null", b"[]", b"{}", b'"x"', b"\xff", b"\xef\xbb\xbf{}", b"{} x", b"1"),
    *(b"[1,]", b'{"a" 1}', b'"abc', b"NaN", b'{"a": "\x01"}', b'["\xc3\xa9\xff"]', b"tru"),
)
_CONTENT_TYPES = ("text/plain", "application/json; charset=utf-8", "Application/JSON", "")
_ACCEPTS = (
    *("text/html", "text/plain", "application/json;q=0", "application/*", "*/*;q=0.8", "garbage"),
    *("application/json, */*", "application/json;version=1"),
)
_VERSIONS = (
    *("1.40", "2.0", "0.9", "1", "1.", "pony", "latest", "Latest", "01.05", "1.2.3", "1.7,x 2"),
)
_METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS", "put")
_SEGMENTS = ("junk", "%20", "%C3%A9", "VCPU", "CUSTOM_NOBODY", "allocations", "traits", "x.json")
_PARAMETERS = (
    *("foo=1", "limit=0", "limit=x", "resources=", "resources=VCPU", "resources=VCPU:0"),
    *("resources=NOBODY:1", "required=", "required=NOBODY", "required=!", "required=in:"),
    *("member_of=", "member_of=junk", "in_tree=junk", "name=", "uuid=junk", "project_id="),
    *("consumer_type=lower", "group_policy=x", "root_required=NOBODY", "same_subtree=_X"),
    *("associated=maybe", "resources_X=VCPU:1", "required_Y=NOBODY", "%FF=1", "name=%FF"),
    *("member_of=in:", "resources=VCPU:1", "required=HW_CPU_X86_AVX2", "group_policy=isolate"),
)


def well_formed(dice: Dice, step: Step) -> Step:
    """Another generation, or a uuid or name of nobody; the request itself where it has none."""
    other = dice.one_of((_other_generation, _other_uuid, _other_name))
    return other(dice, step) or step


def _stale_generation(dice: Dice, step: Step) -> Step:
    """A generation that is not the one that was seen, or none."""
    return _other_generation(dice, step, may_be_none=0.2) or _odd_value(dice, step)


def _other_generation(dice: Dice, step: Step, may_be_none: float = 0) -> Step | None:
    content = _content(step)
    places = [
        (holder, key)
        for holder, key in _places(content)
        if isinstance(key, str) and key.endswith("generation")
    ]
    if not places:
        return None
    holder, key = dice.one_of(places)
    seen = holder[key]
    holder[key] = seen + dice.one_of((-1, 1, 7)) if isinstance(seen, int) else 0
    if dice.chance(may_be_none):
        holder[key] = None
    return _with_content(step, content)


def _odd_value(dice: Dice, step: Step) -> Step:
    """Another value somewhere in the body."""

    def spoil(holder: Any, key: Any) -> None:
        holder[key] = dice.one_of(_ODD_VALUES)

    return _spoilt_somewhere(dice, step, spoil)


def _missing_key(dice: Dice, step: Step) -> Step:
    """Something of the body left out."""
    return _spoilt_somewhere(dice, step, operator.delitem)


def _spoilt_somewhere(dice: Dice, step: Step, spoil: Callable[[Any, Any], None]) -> Step:
    content = _content(step)
    places = list(_places(content))
    if not places:
        return _odd_parameter(dice, step)
    spoil(*dice.one_of(places))
    return _with_content(step, content)


def _extra_key(dice: Dice, step: Step) -> Step:
    """One key too many in an object of the body."""
    content = _content(step)
    objects = [content, *(holder[key] for holder, key in _places(content))]
    objects = [each for each in objects if isinstance(each, dict)]
    if not objects:
        return _odd_parameter(dice, step)
    dice.one_of(objects)[dice.one_of(_ODD_KEYS)] = dice.one_of(_ODD_VALUES)
    return _with_content(step, content)


def _broken_body(dice: Dice, step: Step) -> Step:
    """Bytes that are not the JSON that is asked for."""
    body = dice.one_of(_BODIES)
    if step.body is not None and dice.chance(0.3):
        body = step.body[: len(step.body) // 2]
    return replace(step, body=body or None, headers=_with(step, "content-type", "application/json"))


def _unknown_name(dice: Dice, step: Step) -> Step:
    """A trait or a resource class that does not exist in the place of one, in path or body."""
    return _other_name(dice, step, _UNKNOWN_NAMES) or _odd_segment(dice, step)


def _other_name(dice: Dice, step: Step, names: Sequence[str] = _UNKNOWN_NAMES[:1]) -> Step | None:
    text = step.path + (step.body or b"").decode(errors="replace")
    used = _NAME.findall(text)
    return _replaced(step, dice.one_of(used), dice.one_of(names)) if used else None


def _replaced(step: Step, old: str, new: str) -> Step:
    body = step.body and step.body.replace(old.encode(), new.encode())
    return replace(step, path=step.path.replace(old, new), body=body)


def _odd_caller(dice: Dice, step: Step) -> Step:
    """Somebody who may do less, or nobody."""
    if dice.chance(0.3):
        left = {key: value for key, value in step.headers.items() if key not in CALLER}
        return replace(step, headers=left)
    return replace(step, headers=_with(step, "x-roles", dice.one_of(("reader", "member", ""))))


def _odd_content_type(dice: Dice, step: Step) -> Step:
    """A content type that is not quite the one that is asked for, or none."""
    return replace(step, headers=_with(step, "content-type", dice.one_of(_CONTENT_TYPES)))


def _odd_accept(dice: Dice, step: Step) -> Step:
    """An Accept header."""
    return replace(step, headers=_with(step, "accept", dice.one_of(_ACCEPTS)))


def _odd_version(dice: Dice, step: Step) -> Step:
    """Another microversion than the one that the request was written for, or none."""
    name = "openstack-api-version"
    if dice.chance(0.1):
        left = {key: value for key, value in step.headers.items() if key != name}
        return replace(step, version=None, headers=left)
    version = f"1.{dice.between(0, 39)}" if dice.chance(0.6) else dice.one_of(_VERSIONS)
    return replace(step, version=version, headers=_with(step, name, f"placement {version}"))


def _odd_method(dice: Dice, step: Step) -> Step:
    """Another method on the same path."""
    return _on_path(replace(step, method=dice.one_of(_METHODS)), step.path)


def _odd_segment(dice: Dice, step: Step) -> Step:
    """One segment of the path replaced, added, or left empty."""
    path, mark, query = step.path.partition("?")
    segments = path.split("/")
    place = dice.between(1, len(segments) - 1)
    segments[place : place + dice.between(0, 1)] = [
        dice.one_of((*_SEGMENTS, "", dice.fresh_uuid()))
    ]
    return _on_path(step, f"{'/'.join(segments)}{mark}{query}")


def _unknown_uuid(dice: Dice, step: Step) -> Step:
    """A uuid of nobody in the place of one that somebody has, in the path or in the body."""
    return _other_uuid(dice, step) or _odd_segment(dice, step)


def _other_uuid(dice: Dice, step: Step) -> Step | None:
    used = _UUID.findall(step.path + (step.body or b"").decode(errors="replace"))
    return _replaced(step, dice.one_of(used), dice.fresh_uuid()) if used else None


def _odd_parameter(dice: Dice, step: Step) -> Step:
    """One parameter more in the query, or one less, or one twice."""
    path, _, query = step.path.partition("?")
    parameters = query.split("&") if query else []
    if parameters and dice.chance(0.25):
        parameters.remove(dice.one_of(parameters))
    elif parameters and dice.chance(0.2):
        parameters.append(dice.one_of(parameters))
    else:
        parameters.insert(dice.between(0, len(parameters)), dice.one_of(_PARAMETERS))
    return replace(step, path=f"{path}?{'&'.join(parameters)}" if parameters else path)


#: What makes a request wrong, and how often.
SPOILERS: Mapping[Spoiler, int] = {
    _stale_generation: 6,
    _odd_value: 6,
    _missing_key: 4,
    _extra_key: 2,
    _broken_body: 1,
    _odd_content_type: 1,
    _odd_accept: 2,
    _odd_version: 5,
    _odd_method: 2,
    _odd_segment: 2,
    _unknown_uuid: 3,
    _unknown_name: 3,
    _odd_caller: 1,
    _odd_parameter: 4,
}


def _on_path(step: Step, path: str) -> Step:
    """The step at a path; whether it asks for candidates follows from it."""
    asks = path.partition("?")[0] == "/allocation_candidates" and step.method == "GET"
    return replace(step, path=path, candidates=asks)


def _with(step: Step, name: str, value: str) -> dict[str, str]:
    return {**step.headers, name: value}


def _content(step: Step) -> Any:
    """The body as JSON, for changing; None where it has none."""
    try:
        return copy.deepcopy(json.loads(step.body or b""))
    except ValueError:
        return None


def _with_content(step: Step, content: Any) -> Step:
    return replace(step, body=json.dumps(content).encode())


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a body that holds a value: its object and key, or its list and index."""
    if isinstance(content, dict):
        keys: list[Any] = list(content)
    elif isinstance(content, list):
        keys = list(range(len(content)))
    else:
        return
    for key in keys:
        yield content, key
        yield from _places(content[key])
