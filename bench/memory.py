# SPDX-License-Identifier: Apache-2.0
"""Scenario memory: what each worker process holds, after the load and after some requests.

Pages that processes share are counted in proportion (PSS): a worker that was forked owns only what
it has written since.
"""

from __future__ import annotations

import re
from pathlib import Path

from bench.case import Case
from bench.flat import EVERY_HOST, FILTERED, path_of
from bench.http1 import Requests
from bench.processor import worker_ids
from bench.sample import Round, Sample, Samples, ask
from bench.server import RunningServer

_REQUESTS_ROUNDS = 20


def memory_case(name: str) -> Case:
    """Measure the workers as they are; later cases of a stage include the effect of requests."""

    def measure(server: RunningServer, wanted: Round) -> Samples:
        workers = worker_ids(server.process_id)
        return {
            quantity: Sample([memory_mib(worker, field) for worker in workers], unit="MiB")
            for quantity, field in (("PSS of a worker", "Pss"), ("RSS of a worker", "Rss"))
        }

    return Case("memory", name, measure)


def warm_case() -> Case:
    """Let every worker render many responses, as after hours of service."""

    def measure(server: RunningServer, wanted: Round) -> Samples:
        requests = Requests(server.port)
        short = Round(0.2, wanted.number, wanted.request_seconds_max)
        for query in (FILTERED, EVERY_HOST):
            request = requests.get(path_of(query, 1000))
            ask(server, [request], short, clients_count=_REQUESTS_ROUNDS)
        return memory_case("").measure(server, wanted)

    return Case("memory", "after requests", measure)


def memory_mib(process: int, field: str) -> float:
    """One field of a process's `smaps_rollup`, in MiB."""
    text = Path(f"/proc/{process}/smaps_rollup").read_text()
    match = re.search(rf"^{field}:\s+(\d+) kB$", text, re.MULTILINE)
    assert match is not None, "Linux has it since 4.14"
    return int(match[1]) / 1024
