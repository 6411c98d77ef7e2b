# SPDX-License-Identifier: Apache-2.0
"""Scenario flat: candidates queries on a fleet of hosts without children."""

from __future__ import annotations

from typing import Final

from bench.case import Case
from bench.fleet import TRAIT, aggregate_uuid
from bench.http1 import Requests
from bench.sample import Round, Samples, ask
from bench.server import RunningServer

#: Every host answers to this.
EVERY_HOST: Final = "resources=VCPU:1,MEMORY_MB:1024,DISK_GB:10"
#: A ninth of the hosts does.
FILTERED: Final = f"{EVERY_HOST}&required={TRAIT}&member_of={aggregate_uuid(0)}"

LIMITS: Final = (10, 1000, None)
_MANY_CLIENTS: Final = 16


def path_of(query: str, limit: int | None) -> str:
    """The path of a candidates query."""
    return f"/allocation_candidates?{query}" + ("" if limit is None else f"&limit={limit}")


def limit_name(limit: int | None) -> str:
    """How a limit is called in the results."""
    return "no limit" if limit is None else f"limit {limit}"


def candidates_case(
    scenario: str,
    name: str,
    query: str,
    limit: int | None,
    *,
    clients_count: int = 1,
    ladder: str = "",
) -> Case:
    """A case of clients that ask one candidates query again and again."""

    def measure(server: RunningServer, wanted: Round) -> Samples:
        request = Requests(server.port).get(path_of(query, limit))
        return {"": ask(server, request, wanted, clients_count=clients_count)}

    many = "" if clients_count == 1 else f", {clients_count} clients"
    return Case(scenario, f"{name}, {limit_name(limit)}{many}", measure, ladder)


def flat_cases() -> list[Case]:
    """With and without conditions, at each limit; and many clients at once for the rate."""
    queries = {"a ninth matches": FILTERED, "all match": EVERY_HOST}
    cases = [
        candidates_case("flat", name, query, limit)
        for name, query in queries.items()
        for limit in LIMITS
    ]
    many = candidates_case("flat", "a ninth matches", FILTERED, 10, clients_count=_MANY_CLIENTS)
    return [*cases, many]
