# SPDX-License-Identifier: Apache-2.0
"""`?dry_run=true`: the same answer, and nothing is written."""

from __future__ import annotations

from typing import Final

from berth.api.berth_v1.query import QueryReader
from berth.api.operation import DRY_RUN
from berth.api.operations.berth_v1.pieces import DRY_RUN_QUERY
from berth.api.request import Request

_QUERY: Final = QueryReader(DRY_RUN_QUERY)


def is_dry_run(request: Request) -> bool:
    """Whether a request asks for a dry run.

    Raises:
        Refused: 400 for anything else in the query.
    """
    return _QUERY.read(request).get(DRY_RUN) == "true"
