# SPDX-License-Identifier: Apache-2.0
r"""JSON Schemas with two readers: compiled code says yes fast, and jsonschema says why not.

Patterns end in `\Z`, since Python's `$` would let a final newline pass; messages show the customary
`$`, which is what clients' tests look for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import islice
from reprlib import Repr
from typing import Any, Final

import fastjsonschema
import jsonschema
from jsonschema.exceptions import best_match

from berth.api.errors import Refused
from berth.model.ids import parse_uuid_dashed, parse_uuid_lax

JSONSchema = Mapping[str, Any]

BODY = "JSON does not validate"
QUERY = "Invalid query string parameters"

#: Of so many faults in one value the one to tell is chosen.
FAULTS_COMPARED_MAX: Final = 1000

#: Writes the begin of a value: whole ones may have many megabytes.
_DUMP: Final = Repr()
_DUMP.maxdict = _DUMP.maxlist = 8
_DUMP.maxstring = 300


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
            fault = best_match(islice(self._explainer.iter_errors(value), FAULTS_COMPARED_MAX))
            assert fault is not None, "the two readers agree"
            text = (
                f"{fault.message}\n\n"
                f"Failed validating {fault.validator!r} in "
                f"schema{_subscripts(list(fault.relative_schema_path)[:-1])}:\n"
                f"    {_DUMP.repr(fault.schema)}\n\n"
                f"On instance{_subscripts(fault.relative_path)}:\n"
                f"    {_DUMP.repr(fault.instance)}"
            )
        except RecursionError:
            return "it is nested too deeply."
        return text.replace(r"\\Z", "$")


def _subscripts(path: Iterable[str | int]) -> str:
    return "".join(f"[{step!r}]" for step in path)


def _uuid_checker(parse: Callable[[str], str | None]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or parse(value) is not None


#: The spellings of a uuid that a subject admits: spec/rest-api.md 1.6 and 1.9.
_IS_UUID = {BODY: _uuid_checker(parse_uuid_lax), QUERY: _uuid_checker(parse_uuid_dashed)}
