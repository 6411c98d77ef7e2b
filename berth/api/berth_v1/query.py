# SPDX-License-Identifier: Apache-2.0
"""The queries of `/berth/v1`: a refusal says in one sentence which parameter is wrong, and what it
must be."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from berth.api.berth_v1.pointed import PointedSchema
from berth.api.errors import Refused
from berth.api.operation import Query
from berth.api.operations.berth_v1.codes import INVALID
from berth.api.query_string import last_values, parse_pairs
from berth.api.request import Request


class QueryReader(PointedSchema):
    """Reads and checks the parameters that a query may have."""

    def __init__(self, query: Query) -> None:
        # These routes are the same at all microversions.
        super().__init__(query.schema.at(0).definition)
        self._expected = {name: parameter.expected for name, parameter in query.parameters.items()}

    def read(self, request: Request) -> dict[str, str]:
        """The parameters of a request; of one that is repeated, the last.

        Raises:
            Refused: 400 for one that is unknown or wrong.
        """
        try:
            query = last_values(parse_pairs(request.query_string))
        except Refused:
            message = "The query must be percent-encoded UTF-8 without NUL characters."
            raise Refused(400, message, code=INVALID) from None
        self.check(query)
        return query

    def refusal(self, steps: Sequence[str | int], message: str, *, got: str, code: str) -> Refused:
        """The refusal of a parameter."""
        name = "".join(map(str, steps))
        if got and (expected := self._expected.get(name)):
            message = f"must be {expected}"
        subject = f"The query parameter {name}" if name else "The query"
        return Refused(400, f"{subject} {message}{got}.", code=code)


def included(query: Mapping[str, str], default: Collection[str]) -> frozenset[str]:
    """The parts that `include` names; the default without it."""
    if "include" not in query:
        return frozenset(default)
    return frozenset(part for part in query["include"].split(",") if part)
