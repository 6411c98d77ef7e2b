# SPDX-License-Identifier: Apache-2.0
"""The first schema violation in a JSON value, in jsonschema's words.

jsonschema takes a second for each valid megabyte before it reaches the error, and quotes the whole
value. So compiled code first checks each item of a long array or object, and jsonschema explains
only what fails; quotes are short (`berth.api.shortened`). The error, its place and its words are
those that jsonschema alone would find.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from reprlib import Repr
from typing import Any, Final

import jsonschema
from jsonschema import ValidationError
from jsonschema.exceptions import best_match

from berth.api.shortened import bounded, shortened

Schema = Mapping[str, Any]

#: Whether a value passes a schema.
Passes = Callable[[object], bool]

#: How many errors in a value are compared to pick one.
_FAULTS_COMPARED_MAX: Final = 1000

#: Writes the start of a value, which may have many megabytes.
_DUMP: Final = Repr()
_DUMP.maxdict = _DUMP.maxlist = 8
_DUMP.maxstring = 300

#: How many unexpected members are named.
_EXTRAS_NAMED: Final = 50

_ADDITIONAL: Final = jsonschema.Draft7Validator.VALIDATORS["additionalProperties"]


class Explainer:
    """Explains the first error in values that fail a schema.

    Args:
        compiled: makes the code that checks a value against a part of the schema.
    """

    def __init__(
        self,
        definition: Schema,
        *,
        checker: jsonschema.FormatChecker,
        compiled: Callable[[Schema], Passes],
    ) -> None:
        self._compiled = compiled
        #: By the identity of a part of the definition, which lives as long as this does.
        self._passes: dict[int, Passes] = {}
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
        self, validator: Any, items: Schema, instance: object, schema: Schema
    ) -> Iterator[ValidationError]:
        if isinstance(instance, list):
            passes = self._of(items)
            for place, item in enumerate(instance):
                if not passes(item):
                    yield from validator.descend(bounded(item), items, path=place)

    def _pattern_properties(
        self, validator: Any, patterns: Mapping[str, Schema], instance: object, schema: Schema
    ) -> Iterator[ValidationError]:
        if isinstance(instance, dict):
            for pattern, of_values in patterns.items():
                passes = self._of(of_values)
                for key, value in instance.items():
                    if re.search(pattern, key) and not passes(value):
                        yield from validator.descend(
                            bounded(value), of_values, path=key, schema_path=pattern
                        )

    def _of(self, part: Schema) -> Passes:
        passes = self._passes.get(id(part))
        if passes is None:
            passes = self._passes[id(part)] = self._compiled(part)
        return passes


def _properties(
    validator: Any, properties: Mapping[str, Schema], instance: object, schema: Schema
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name, of_value in properties.items():
            if name in instance:
                yield from validator.descend(
                    bounded(instance[name]), of_value, path=name, schema_path=name
                )


def _additional_properties(
    validator: Any, admitted: bool, instance: object, schema: Schema
) -> Iterator[ValidationError]:
    """jsonschema's own check, given only the members that it would name."""
    if isinstance(instance, dict):
        properties = schema.get("properties", {})
        patterns = [re.compile(pattern) for pattern in schema.get("patternProperties", ())]
        extras = sorted(
            key
            for key in instance
            if key not in properties and not any(pattern.search(key) for pattern in patterns)
        )
        named = {bounded(key): None for key in islice(extras, _EXTRAS_NAMED)}
        yield from _ADDITIONAL(validator, admitted, named, schema) or ()


def _subscripts(path: Any) -> str:
    return "".join(f"[{shortened(step)}]" for step in path)
