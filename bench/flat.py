# SPDX-License-Identifier: Apache-2.0
"""Scenario flat: candidates queries on a fleet of hosts without children."""

from __future__ import annotations

from typing import Final

from bench.case import Case
from bench.fleet import TRAIT, aggregate_uuid
from bench.gets import CLIENTS, get_case

#: Every host answers to this.
EVERY_HOST: Final = "resources=VCPU:1,MEMORY_MB:1024,DISK_GB:10"
#: A ninth of the hosts does.
FILTERED: Final = f"{EVERY_HOST}&required={TRAIT}&member_of={aggregate_uuid(0)}"

LIMITS: Final = (10, 1000, None)


def path_of(query: str, limit: int | None) -> str:
    """The path of a candidates query."""
    return f"/allocation_candidates?{query}" + ("" if limit is None else f"&limit={limit}")


def limit_name(limit: int | None) -> str:
    """The name of a limit in the results."""
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
    """A case in which clients repeat one candidates query."""
    full_name, path = f"{name}, {limit_name(limit)}", path_of(query, limit)
    return get_case(scenario, full_name, [path], clients_count=clients_count, ladder=ladder)


def flat_cases() -> list[Case]:
    """With and without conditions, at each limit, by one client and by many."""
    queries = {"a ninth matches": FILTERED, "all match": EVERY_HOST}
    return [
        candidates_case(
            "flat", name, query, limit, clients_count=count, ladder=f"flat, {name}, {count}"
        )
        for count in CLIENTS
        for name, query in queries.items()
        for limit in LIMITS
    ]
