# SPDX-License-Identifier: Apache-2.0
r"""JSON Schemas with two readers: compiled code says yes fast, and jsonschema says why not.

Patterns end in `\Z`, since Python's `$` would let a final newline pass; messages show the customary
`$`, which is what clients' tests look for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import fastjsonschema
import jsonschema

from berth.api.errors import Refused
from berth.model.ids import parse_uuid_dashed, parse_uuid_lax

JSONSchema = Mapping[str, Any]

BODY = "JSON does not validate"
QUERY = "Invalid query string parameters"


class Schema:
    """One JSON Schema, compiled when it is first used."""

    def __init__(self, definition: JSONSchema, *, subject: str = BODY) -> None:
        self.definition = definition
        self._subject = subject

    def check(self, value: object) -> None:
        """Raise the 400 that tells the first fault of a decoded JSON value, if it has one."""
        try:
            self._passes(value)
        except fastjsonschema.JsonSchemaValueException:
            raise Refused(400, f"{self._subject}: {self._explain(value)}") from None

    @cached_property
    def _passes(self) -> Callable[[object], object]:
        passes: Callable[[object], object] = fastjsonschema.compile(
            dict(self.definition), formats={"uuid": _IS_UUID[self._subject]}, use_default=False
        )
        return passes

    @cached_property
    def _explainer(self) -> jsonschema.Draft7Validator:
        checker = jsonschema.FormatChecker(formats=())
        checker.checks("uuid")(_IS_UUID[self._subject])
        return jsonschema.Draft7Validator(self.definition, format_checker=checker)

    def _explain(self, value: object) -> str:
        try:
            fault = next(self._explainer.iter_errors(value))
            place = _subscripts(list(fault.relative_path))
            schema_path = list(fault.relative_schema_path)
            text = (
                f"{fault.message}. Failed validating {schema_path[-1]!r} in "
                f"schema{_subscripts(schema_path[:-1])}"
            )
        except RecursionError:
            return "it is nested too deeply."
        return (f"{text}, on instance{place}." if place else f"{text}.").replace(r"\\Z", "$")


def _subscripts(path: list[str | int]) -> str:
    return "".join(f"[{step!r}]" for step in path)


def _uuid_checker(parse: Callable[[str], str | None]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or parse(value) is not None


#: The spellings of a uuid that a subject admits: spec/rest-api.md 1.6 and 1.9.
_IS_UUID = {BODY: _uuid_checker(parse_uuid_lax), QUERY: _uuid_checker(parse_uuid_dashed)}
