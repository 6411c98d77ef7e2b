# SPDX-License-Identifier: Apache-2.0
"""The queries of `/berth/v1`: a refusal says in one sentence which parameter is wrong, and what it
must be. Source: spec/beyond.md 1.4."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from berth.api.berth_v1.pointed import PointedSchema
from berth.api.errors import Refused
from berth.api.operation import Query
from berth.api.operations.berth_v1.codes import INVALID
from berth.api.query_string import parse_pairs
from berth.api.request import Request


class QueryReader(PointedSchema):
    """Reads and checks the parameters that a query may have."""

    def __init__(self, query: Query) -> None:
        # These routes are the same at all microversions.
        super().__init__(query.schema.at(0).definition)
        self._parameters = query.parameters

    def __call__(self, request: Request) -> dict[str, str]:
        """The parameters of a request; of one that may be repeated, the last.

        Raises:
            Refused: 400 for one that is unknown, wrong or repeated.
        """
        if not request.query_string:
            return {}
        try:
            pairs = parse_pairs(request.query_string)
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
