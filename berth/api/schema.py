# SPDX-License-Identifier: Apache-2.0
r"""JSON Schemas with two validators: fast compiled code, and jsonschema to explain errors.

Patterns end in `\Z`, because Python's `$` accepts a final newline; messages show the customary
`$`, which clients' tests expect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from berth.api.errors import Refused
from berth.model.ids import parse_uuid_dashed, parse_uuid_lax

if TYPE_CHECKING:
    from berth.api.first_fault import Explainer

JSONSchema = Mapping[str, Any]

BODY = "JSON does not validate"
QUERY = "Invalid query string parameters"


class Schema:
    """A JSON Schema, compiled when it is first used."""

    def __init__(self, definition: JSONSchema, *, subject: str = BODY) -> None:
        self.definition = definition
        self._subject = subject

    def check(self, value: object) -> None:
        """Raise a 400 with the first error in a decoded JSON value, if it has one."""
        if not self._passes(value):
            raise Refused(400, f"{self._subject}: {self._explain(value)}")

    @cached_property
    def _passes(self) -> Callable[[object], bool]:
        return self._compiled(self.definition)

    @cached_property
    def _explainer(self) -> Explainer:
        # Here and below, import late: commands that only name a schema need no validator.
        import jsonschema

        from berth.api.first_fault import Explainer

        checker = jsonschema.FormatChecker(formats=())
        checker.checks("uuid")(_IS_UUID[self._subject])
        return Explainer(self.definition, checker=checker, compiled=self._compiled)

    def _explain(self, value: object) -> str:
        return self._explainer.explain(value).replace(r"\\Z", "$")

    def _compiled(self, definition: JSONSchema) -> Callable[[object], bool]:
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


def _uuid_checker(parse: Callable[[str], str | None]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or parse(value) is not None


#: The uuid spellings that each subject accepts: spec/rest-api.md 1.6 and 1.9.
_IS_UUID = {BODY: _uuid_checker(parse_uuid_lax), QUERY: _uuid_checker(parse_uuid_dashed)}
