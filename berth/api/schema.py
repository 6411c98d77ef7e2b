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
from berth.api.first_fault import Explainer
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
        return self._compiled(self.definition)

    @cached_property
    def _explainer(self) -> Explainer:
        checker = jsonschema.FormatChecker(formats=())
        checker.checks("uuid")(_IS_UUID[self._subject])
        return Explainer(self.definition, checker=checker, compiled=self._judge_of)

    def _explain(self, value: object) -> str:
        return self._explainer.explain(value).replace(r"\\Z", "$")

    def _judge_of(self, part: JSONSchema) -> Callable[[object], bool]:
        passes = self._compiled(part)

        def judge(value: object) -> bool:
            try:
                passes(value)
            except fastjsonschema.JsonSchemaValueException:
                return False
            return True

        return judge

    def _compiled(self, definition: JSONSchema) -> Callable[[object], object]:
        passes: Callable[[object], object] = fastjsonschema.compile(
            dict(definition), formats={"uuid": _IS_UUID[self._subject]}, use_default=False
        )
        return passes


def _uuid_checker(parse: Callable[[str], str | None]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or parse(value) is not None


#: The spellings of a uuid that a subject admits: spec/rest-api.md 1.6 and 1.9.
_IS_UUID = {BODY: _uuid_checker(parse_uuid_lax), QUERY: _uuid_checker(parse_uuid_dashed)}
