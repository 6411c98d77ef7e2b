# SPDX-License-Identifier: Apache-2.0
"""What clients send to `/berth/v1`: bodies and queries. They are decoded, and checked against
schemas whose errors say in one sentence what is wrong: a JSON pointer, or the name of a parameter.

Integers are JSON integers: `1.0` is none. `x-bound` in a schema names the bound that a limit on
a length stands for.

Source: spec/beyond.md 1.4 and 11; RFC 6901.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from berth.api import body
from berth.api.answers import encode
from berth.api.berth_v1.codes import INVALID, TOO_LARGE
from berth.api.berth_v1.refusals import pointer_of, refused, suggesting, too_large
from berth.api.contract import DRY_RUN, Parameter, Query
from berth.api.environ import BODY
from berth.api.errors import Refused
from berth.api.query_string import parse_pairs
from berth.api.request import Call
from berth.api.schema import JSONSchema, Schema, shortened
from berth.api.struct_schema import Input, input_schema
from berth.model.bounds import BODY_BYTES_MAX
from berth.model.ids import parse_uuid_lax
from berth.model.names import similar
from berth.model.printable import has_controls
from berth.model.structs import converter

#: Key in the WSGI environment of the decoded body: a policy may ask for it before the handler.
_CONTENT: Final = "berth.content"

T = TypeVar("T")
B = TypeVar("B", bound=Input)

#: In draft 4, and in no later one, 1.0 is not an integer.
_DRAFT: Final = "http://json-schema.org/draft-04/schema#"

#: A step of a place into a list, as fastjsonschema writes it.
_INDEX: Final = re.compile(r"\[(\d+)\]")

_TYPES: Final[Mapping[str, str]] = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
#: What each rule says of a value.
_RULES: Final[Mapping[str, str]] = {
    "enum": "must be one of {0}",
    "format": "must be a {0}",
    "maximum": "must be at most {0}",
    "minimum": "must be at least {0}",
    "maxItems": "may have at most {0} items",
    "minItems": "must have at least {0} items",
    "maxLength": "may have at most {0} characters",
    "minLength": "must not be empty",
    "maxProperties": "may have at most {0} members",
    "minProperties": "must not be empty",
    "pattern": "must match {0}",
    "uniqueItems": "must not repeat an item",
}
_LITERALS: Final = {True: "true", False: "false", None: "null"}
_QUOTED_MAX: Final = 100


def content(call: Call) -> object:
    """The decoded body, of which all but its schema is checked; nothing else may decode it.

    Raises:
        Refused: 400 for one that is too large or nested too deeply, that is not JSON, that has
            characters that cannot be stored, or an object with the same member twice.
    """
    if _CONTENT not in call.env:
        raw: bytes = call.env[BODY]
        if len(raw) > BODY_BYTES_MAX:
            raise too_large("max_body_bytes", BODY_BYTES_MAX)
        value = body.decode(raw)
        _check_no_repetition(raw, value)
        call.env[_CONTENT] = value
    return call.env[_CONTENT]


class _Repeated:
    """Stands for the value of a member that an object has twice."""


def _check_no_repetition(raw: bytes, value: object) -> None:
    """Refuse a body in which an object has the same member twice.

    PERF bench.place: without escapes, strings are the same in the body and in the text of its
    value, so that one has fewer colons than the other only if a member was lost.
    """
    if b"\\" not in raw and encode(value).count(b":") == raw.count(b":"):
        return
    for steps, _ in values_in(json.loads(raw, object_pairs_hook=_object), _Repeated):
        raise refused(pointer_of(steps), "appears twice")


def _object(members: list[tuple[str, object]]) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, value in members:
        values[name] = _Repeated() if name in values else value
    return values


class PointedSchema(Schema):
    """A schema for bodies of `/berth/v1`."""

    def check(self, value: object) -> None:
        """Raise a 400 with the first error in a decoded JSON value, if it has one."""
        import fastjsonschema

        try:
            self._check(value)
        except fastjsonschema.JsonSchemaValueException as fault:
            raise self._refusal(fault, value) from None
        for steps, number in values_in(value, float):
            if not math.isfinite(number):
                raise refused(pointer_of(steps), "must be a finite number")

    def refusal(self, steps: Sequence[str | int], message: str, *, got: str, code: str) -> Refused:
        """The refusal of what is at a place.

        Args:
            got: the value there, after what it must be; "" if that is not what is wrong.
        """
        return refused(pointer_of(steps), message + got, code=code)

    def unknown(self, steps: Sequence[str | int], members: Iterable[str]) -> Refused:
        """The refusal of a member that is none of those which the schema has."""
        message = f"is unknown; expected: {', '.join(members)}"
        refusal = self.refusal(steps, message, got="", code=INVALID)
        return suggesting(refusal, similar(str(steps[-1]), members))

    def _refusal(self, fault: Any, whole: object) -> Refused:
        """The refusal for an error that fastjsonschema has found in a value."""
        steps = next(_steps(fault.name.removeprefix("data"), whole, fault.value))
        if fault.rule == "additionalProperties":
            member = _extra(fault.value, fault.definition)
            if (members := fault.definition.get("properties")) is not None:
                return self.unknown([*steps, member], members)
            return self.refusal([*steps, member], "is not a valid name", got="", code=INVALID)
        if fault.rule == "required":
            missing = [name for name in fault.rule_definition if name not in fault.value]
            return self.refusal(steps, f"lacks {', '.join(missing)}", got="", code=INVALID)
        if fault.rule == "type":
            message = f"must be {_types(fault.rule_definition)}"
            return self.refusal(steps, message, got=_got(fault.value), code=INVALID)
        message = _RULES[fault.rule].format(_limit(fault.rule_definition))
        if fault.rule == "pattern" and has_controls(fault.value):
            message = "must not have control characters"
        bound = fault.definition.get("x-bound")
        if bound and fault.rule in ("maxItems", "maxProperties"):
            message = f"{message} ({bound}), and has {len(fault.value)}"
            return self.refusal(steps, message, got="", code=TOO_LARGE)
        if bound and fault.rule == "maximum":
            message = f"{message} ({bound})"
        return self.refusal(steps, message, got=_got(fault.value), code=INVALID)

    @cached_property
    def _check(self) -> Callable[[object], object]:
        import fastjsonschema

        definition = {**self.definition, "$schema": _DRAFT}
        check: Callable[[object], object] = fastjsonschema.compile(
            definition, formats={"uuid": _is_uuid}, use_default=False
        )
        return check


class BodySchema(PointedSchema, Generic[B]):
    """The schema of a body that is read into a struct."""

    def __init__(self, kind: type[B]) -> None:
        super().__init__({})
        self._kind = kind
        self._convert = converter(kind)

    @cached_property
    def definition(self) -> JSONSchema:
        """Made when it is first used: a worker starts a fiftieth sooner."""
        return input_schema(self._kind)

    def read(self, call: Call) -> B:
        """Decode the body and check its schema.

        Raises:
            Refused: 400, with the JSON pointer to the member at fault.
        """
        value = content(call)
        self.check(value)
        return self._convert(value)


def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or parse_uuid_lax(value) is not None


def _steps(place: str, whole: Any, value: object) -> Iterator[list[str | int]]:
    """The steps to a value at a place as fastjsonschema writes it, such as
    `.groups..resources.VCPU` or `.together[0]`.

    A key may have dots and brackets itself, so other values may be at the same place.
    """
    if not place and whole is value:
        yield []
    members: Iterable[tuple[str, str | int, object]] = ()
    if isinstance(whole, dict):
        members = ((f".{key}", key, member) for key, member in whole.items())
    elif isinstance(whole, list) and (index := _INDEX.match(place)):
        members = ((index[0], int(index[1]), whole[int(index[1])]),)
    for written, step, member in members:
        if place.startswith(written):
            for steps in _steps(place.removeprefix(written), member, value):
                yield [step, *steps]


def _extra(value: Mapping[str, object], definition: Mapping[str, Any]) -> str:
    """The first member that a schema does not know."""
    patterns = [re.compile(pattern) for pattern in definition.get("patternProperties", ())]
    return next(
        name
        for name in value
        if name not in definition.get("properties", ())
        and not any(pattern.search(name) for pattern in patterns)
    )


def _types(types: str | list[str]) -> str:
    several = [types] if isinstance(types, str) else types
    return " or ".join(_TYPES[each] for each in several)


def _limit(definition: object) -> str:
    """A part of a schema, for people."""
    if isinstance(definition, list):
        return ", ".join(map(str, definition))
    return str(definition).replace(r"\Z", "$")


def _got(value: object) -> str:
    """The value, if it is short enough to be quoted; an empty one says nothing."""
    if value == "" or isinstance(value, list | dict):
        return ""
    if value is None or isinstance(value, bool):
        return f", not {_LITERALS[value]}"
    return f", not {shortened(value, _QUOTED_MAX)}"


def values_in(
    value: object, kind: type[T], steps: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], T]]:
    """The values of one type in a JSON value, each with the steps to it."""
    if isinstance(value, kind):
        yield steps, value
    members: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for step, member in members:
        # Most are names, of which a list may have ten thousand.
        if isinstance(member, (kind, dict, list)):
            yield from values_in(member, kind, (*steps, step))


# --- Queries --------------------------------------------------------------------------------------


class QueryReader(PointedSchema):
    """Reads and checks the parameters that a query may have."""

    def __init__(self, query: Query) -> None:
        # These routes are the same at all microversions.
        super().__init__(query.schema.at(0).definition)
        self._parameters = query.parameters

    def __call__(self, call: Call) -> dict[str, str]:
        """The parameters of a request; of one that may be repeated, the last.

        Raises:
            Refused: 400 for one that is unknown, wrong or repeated.
        """
        if not call.query_string:
            return {}
        try:
            pairs = parse_pairs(call.query_string)
        except Refused:
            message = "The query must be percent-encoded UTF-8 without NUL characters."
            raise Refused(400, message, code=INVALID) from None
        query: dict[str, str] = {}
        for name, value in pairs:
            self.check({name: value})
            if name in query and self._parameters[name].repeats_since:
                raise self.refusal((name,), "appears twice", got="", code=INVALID)
            query[name] = value
        return query

    def refusal(self, steps: Sequence[str | int], message: str, *, got: str, code: str) -> Refused:
        """The refusal of a parameter."""
        name = "".join(map(str, steps))
        parameter = self._parameters.get(name)
        if got and parameter is not None and parameter.expected:
            message = f"must be {parameter.expected}"
        message = f"The query parameter {name} {message}{got}."
        return Refused(400, message, code=code, facts={"parameter": name})

    def unknown(self, steps: Sequence[str | int], members: Iterable[str]) -> Refused:
        """The refusal of a parameter that the operation does not declare."""
        if self._parameters:
            return super().unknown(steps, members)
        return self.refusal(steps, "is unknown; this request takes none", got="", code=INVALID)


def included(query: Mapping[str, str], default: Collection[str]) -> frozenset[str]:
    """The parts that `include` names; the default without it."""
    if "include" not in query:
        return frozenset(default)
    return frozenset(part for part in query["include"].split(",") if part)


def include_parameter(parts: Sequence[str], example: str, default: str) -> Parameter:
    """`include`: what to show of each provider.

    Args:
        default: what is shown without it, in a sentence or two.
    """
    part = f"({'|'.join(parts)})"
    named = ", ".join(f"`{each}`" for each in parts)
    return Parameter(
        name="include",
        means=f"What to show of each provider, separated by commas: any of {named}. {default}",
        example=example,
        schema={"type": "string", "pattern": rf"^({part}(,{part})*)?\Z"},
        expected=f"any of {', '.join(parts)}, separated by commas",
    )


DRY_RUN_QUERY: Final = Query(
    Parameter(
        name=DRY_RUN,
        means="`true`: answer the same, and write nothing.",
        example="true",
        schema={"type": "string", "enum": ["true", "false"]},
    )
)
