# SPDX-License-Identifier: Apache-2.0
r"""JSON Schemas with two validators: fast compiled code, and jsonschema to explain errors.

Patterns end in `\Z`, because Python's `$` accepts a final newline; messages show the customary
`$`, which clients' tests expect.

jsonschema takes a second for each valid megabyte before it reaches the error, and quotes the whole
value. So compiled code first checks each item of a long array or object, and jsonschema explains
only what fails. The error, its place and its words are those that jsonschema alone would find, but
quotes are short: a request may be megabytes long, its `repr` costs more memory than the request
itself, and no one reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from reprlib import Repr
from typing import TYPE_CHECKING, Any, Final

from berth.api.errors import Refused
from berth.model.ids import parse_uuid_dashed, parse_uuid_lax

if TYPE_CHECKING:
    import jsonschema
    from jsonschema import ValidationError

JSONSchema = Mapping[str, Any]

#: Whether a value passes a schema.
Passes = Callable[[object], bool]

BODY = "JSON does not validate"
QUERY = "Invalid query string parameters"

#: Maximum characters of a value in a message.
LENGTH_MAX: Final = 1000

#: How many errors in a value are compared to pick one.
_FAULTS_COMPARED_MAX: Final = 1000

#: Writes the start of a value, which may have many megabytes.
_DUMP: Final = Repr()
_DUMP.maxdict = _DUMP.maxlist = 8
_DUMP.maxstring = 300

#: How many unexpected members are named.
_EXTRAS_NAMED: Final = 50

#: Levels of nesting shown.
_DEPTH_MAX: Final = 40

_CUT: Final = "..."


class Schema:
    """A JSON Schema, compiled when it is first used."""

    def __init__(self, definition: JSONSchema, *, subject: str = BODY) -> None:
        self._definition = definition
        self._subject = subject

    @property
    def definition(self) -> JSONSchema:
        """The schema itself."""
        return self._definition

    def check(self, value: object) -> None:
        """Raise a 400 with the first error in a decoded JSON value, if it has one."""
        if not self._passes(value):
            raise Refused(400, f"{self._subject}: {self._explain(value)}")

    @cached_property
    def _passes(self) -> Passes:
        return self._compiled(self.definition)

    @cached_property
    def _explainer(self) -> Explainer:
        # Here and below, import late: commands that only name a schema need no validator.
        import jsonschema

        checker = jsonschema.FormatChecker(formats=())
        checker.checks("uuid")(_IS_UUID[self._subject])
        return Explainer(self.definition, checker=checker, compiled=self._compiled)

    def _explain(self, value: object) -> str:
        return self._explainer.explain(value).replace(r"\\Z", "$")

    def _compiled(self, definition: JSONSchema) -> Passes:
        import fastjsonschema

        check: Callable[[object], object] = fastjsonschema.compile(
            dict(definition), formats={"uuid": _IS_UUID[self._subject]}, use_default=False
        )

        def passes(value: object) -> bool:
            try:
                check(value)
            except fastjsonschema.JsonSchemaValueException:
                return False
            return True

        return passes


def _uuid_checker(parse: Callable[[str], str | None]) -> Passes:
    return lambda value: not isinstance(value, str) or parse(value) is not None


#: The uuid spellings that each subject accepts: spec/rest-api.md 1.6 and 1.9.
_IS_UUID = {BODY: _uuid_checker(parse_uuid_lax), QUERY: _uuid_checker(parse_uuid_dashed)}


class Explainer:
    """Explains the first error in values that fail a schema.

    Args:
        compiled: makes the code that checks a value against a part of the schema.
    """

    def __init__(
        self,
        definition: JSONSchema,
        *,
        checker: jsonschema.FormatChecker,
        compiled: Callable[[JSONSchema], Passes],
    ) -> None:
        import jsonschema

        self._compiled = compiled
        #: By the identity of a part of the definition, which lives as long as this does.
        self._passes: dict[int, Passes] = {}
        # jsonschema has types, but not for this function.
        kind = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
            jsonschema.Draft7Validator,
            {
                "items": self._items,
                "properties": _properties,
                "patternProperties": self._pattern_properties,
                "additionalProperties": _additional_properties,
            },
        )
        self._validator: Any = kind(definition, format_checker=checker)

    def explain(self, value: Any) -> str:
        """The error, the rule it violates, and where. Of bounded length."""
        from jsonschema.exceptions import best_match

        faults = self._validator.iter_errors(bounded(value))
        fault = best_match(islice(faults, _FAULTS_COMPARED_MAX))
        assert fault is not None, "the two readers agree"
        return (
            f"{fault.message}\n\n"
            f"Failed validating {fault.validator!r} in "
            f"schema{_subscripts(list(fault.relative_schema_path)[:-1])}:\n"
            f"    {_DUMP.repr(fault.schema)}\n\n"
            f"On instance{_subscripts(fault.relative_path)}:\n"
            f"    {_DUMP.repr(fault.instance)}"
        )

    def _items(
        self, validator: Any, items: JSONSchema, instance: object, schema: JSONSchema
    ) -> Iterator[ValidationError]:
        if isinstance(instance, list):
            passes = self._of(items)
            for place, item in enumerate(instance):
                if not passes(item):
                    yield from validator.descend(bounded(item), items, path=place)

    def _pattern_properties(
        self,
        validator: Any,
        patterns: Mapping[str, JSONSchema],
        instance: object,
        schema: JSONSchema,
    ) -> Iterator[ValidationError]:
        if isinstance(instance, dict):
            for pattern, of_values in patterns.items():
                passes = self._of(of_values)
                for key, value in instance.items():
                    if re.search(pattern, key) and not passes(value):
                        yield from validator.descend(
                            bounded(value), of_values, path=key, schema_path=pattern
                        )

    def _of(self, part: JSONSchema) -> Passes:
        passes = self._passes.get(id(part))
        if passes is None:
            passes = self._passes[id(part)] = self._compiled(part)
        return passes


def _properties(
    validator: Any, properties: Mapping[str, JSONSchema], instance: object, schema: JSONSchema
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name, of_value in properties.items():
            if name in instance:
                yield from validator.descend(
                    bounded(instance[name]), of_value, path=name, schema_path=name
                )


def _additional_properties(
    validator: Any, admitted: bool, instance: object, schema: JSONSchema
) -> Iterator[ValidationError]:
    """jsonschema's own check, given only the members that it would name."""
    import jsonschema

    check = jsonschema.Draft7Validator.VALIDATORS["additionalProperties"]
    if isinstance(instance, dict):
        properties = schema.get("properties", {})
        patterns = [re.compile(pattern) for pattern in schema.get("patternProperties", ())]
        extras = sorted(
            key
            for key in instance
            if key not in properties and not any(pattern.search(key) for pattern in patterns)
        )
        named = {bounded(key): None for key in islice(extras, _EXTRAS_NAMED)}
        yield from check(validator, admitted, named, schema) or ()


def _subscripts(path: Any) -> str:
    return "".join(f"[{shortened(step)}]" for step in path)


def shortened(value: object, length_max: int = LENGTH_MAX) -> str:
    """The `repr` of a decoded JSON value; its start and `...` if it is above the limit.

    Cost: that of what is shown, for any value.
    """
    pieces = []
    left = length_max
    for piece in _pieces(value, length_max, _DEPTH_MAX):
        pieces.append(piece[:left])
        left -= len(piece)
        if left < 0:
            pieces.append(_CUT)
            break
    return "".join(pieces)


def bounded(value: object) -> object:
    """A value equal to the given one, whose `repr` is `shortened`."""
    as_bounded = _BOUNDED.get(type(value))
    return value if as_bounded is None else as_bounded(value)


def _pieces(value: object, length_max: int, depth_left: int) -> Iterator[str]:
    if isinstance(value, str):
        # One character too many, so that the cut is visible.
        yield repr(str(value[: length_max + 1]))
    elif not isinstance(value, list | dict):
        yield repr(value)
    elif not depth_left:
        yield _CUT
    elif isinstance(value, list):
        yield "["
        for place, item in enumerate(value):
            yield ", " if place else ""
            yield from _pieces(item, length_max, depth_left - 1)
        yield "]"
    else:
        yield "{"
        for place, (key, item) in enumerate(value.items()):
            yield ", " if place else ""
            yield from _pieces(key, length_max, 0)
            yield ": "
            yield from _pieces(item, length_max, depth_left - 1)
        yield "}"


class _Text(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return shortened(self)


class _Array(list[object]):
    __slots__ = ()

    def __repr__(self) -> str:
        return shortened(self)


class _Object(dict[str, object]):
    __slots__ = ()

    def __repr__(self) -> str:
        return shortened(self)


_BOUNDED: Final[Mapping[type, Callable[[Any], object]]] = {
    str: _Text,
    list: _Array,
    dict: _Object,
}
