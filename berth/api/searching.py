# SPDX-License-Identifier: Apache-2.0
"""Each search of the fleet has a place among those that may run at once, and a budget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from berth.api.environ import CLIENT_GONE
from berth.api.errors import overloaded
from berth.api.request import Request, Services
from berth.candidates.budget import Budget


@contextmanager
def searching(services: Services, request: Request, seconds: float) -> Iterator[Budget]:
    """Wait for a place among the searches, and search with a budget.

    Args:
        seconds: at most; 0 for no bound.

    Raises:
        Refused: 503 if there is no place.
    """
    if not services.searching.enter():
        services.observer.search_refused()
        raise overloaded()
    try:
        budget = Budget(
            monotonic,
            seconds=seconds,
            answer_bytes_max=services.search.answer_bytes_max,
            gone=request.env.get(CLIENT_GONE),
        )
        try:
            yield budget
        finally:
            services.observer.searched(
                trees=budget.trees, candidates=budget.candidates, ended=budget.ended
            )
    finally:
        services.searching.leave()
