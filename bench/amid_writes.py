# SPDX-License-Identifier: Apache-2.0
"""Latency of candidates queries with and without writes by another worker."""

from __future__ import annotations

import random
from typing import Final

from bench.case import Case
from bench.claims import ClaimLoop, clients, together
from bench.driver import drive_each
from bench.flat import EVERY_HOST, path_of
from bench.http1 import Requests
from bench.sample import Cost, Round, Sample, Samples, asking, clock
from bench.server import RunningServer

_WRITERS: Final = (0, 1, 4)


def amid_writes_cases(scenario: str) -> list[Case]:
    """One client requests ten candidates from the first server; others claim through the second."""
    return [_case(scenario, count) for count in _WRITERS]


def _case(scenario: str, writers_count: int) -> Case:
    def measure(server: RunningServer, wanted: Round) -> Samples:
        project = f"bench-amid-{writers_count}-{wanted.number}"
        loops = [
            ClaimLoop(Requests(server.port), project, random.Random(f"{project}-{number}"))
            for number in range(writers_count)
        ]
        candidates = Sample()
        request = Requests(server.port).get(path_of(EVERY_HOST, 10))
        start = clock()
        drive_each(
            [
                (server, asking(lambda: request, candidates, wanted.seconds)),
                *((server.others[0], loop.run(EVERY_HOST, wanted.seconds)) for loop in loops),
            ],
            seconds_max=wanted.request_seconds_max,
        )
        cost = Cost(clock() - start)
        claims = [loop.claims for loop in loops]
        return {"candidates": candidates} | (
            {"claim loops elsewhere": together(claims, cost)} if claims else {}
        )

    whose = f"while {clients(writers_count)} claim elsewhere" if writers_count else "alone"
    return Case(scenario, f"candidates, limit 10, {whose}", measure)
