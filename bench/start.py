# SPDX-License-Identifier: Apache-2.0
"""Scenario start: from the command to the first answered candidates query."""

from __future__ import annotations

from pathlib import Path

from bench.case import AloneCase
from bench.client import Client
from bench.flat import FILTERED, path_of
from bench.sample import Round, Sample, Samples, clock
from bench.server import serve_berth

_SECONDS_MAX = 600.0


def start_case(name: str, *, workers: int) -> AloneCase:
    """`berth serve` on a database that is there, as after a reboot."""

    def measure(directory: Path, wanted: Round) -> Samples:
        start = clock()
        with (
            serve_berth(
                directory, workers=workers, start_seconds_max=_SECONDS_MAX, awaits_all=False
            ) as server,
            Client(server) as client,
        ):
            client.demand("GET", path_of(FILTERED, 10))
            return {"": Sample([clock() - start])}

    return AloneCase("start", f"{name}, {workers} worker{'s' if workers > 1 else ''}", measure)
