# SPDX-License-Identifier: Apache-2.0
"""The cost of the query for the writers' progress at the start of each read."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from bench.flat import EVERY_HOST
from bench.sample import Sample, Samples, clock
from berth.api.placement.allocation_candidates import FORMS
from berth.api.placement.candidates_query import decode
from berth.candidates import SearchSettings, find_candidates
from berth.index import Index
from berth.store.engine.opening import open_database

_MICROVERSION: Final = 39
_WARM_UP_COUNT: Final = 20


def clock_cost(url: str, seconds: float) -> Samples:
    """Ten candidates in this process, with and without the question, while no one writes.

    The three take turns, so that whatever else the machine does falls on all of them.
    """
    db = open_database(url)
    index = Index(db)
    snapshot = index.snapshot()
    query = decode(f"{EVERY_HOST}&limit=10", _MICROVERSION)
    rng = random.Random(0)

    def find(is_asked: bool) -> None:
        find_candidates(
            index.snapshot() if is_asked else snapshot,
            query.question,
            limit=query.limit,
            settings=SearchSettings(),
            form=FORMS.at(_MICROVERSION),
            rng=rng,
        )

    asked: dict[str, Callable[[], object]] = {
        "the writers' clock": index.snapshot,
        "candidates with it": lambda: find(True),
        "candidates without it": lambda: find(False),
    }
    samples = {name: Sample() for name in asked}
    for ask in asked.values():
        for _ in range(_WARM_UP_COUNT):
            ask()
    end = clock() + seconds
    while clock() < end:
        for name, ask in asked.items():
            start = clock()
            ask()
            samples[name].values.append(clock() - start)
    db.dispose()
    return samples
