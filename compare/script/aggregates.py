# SPDX-License-Identifier: Apache-2.0
"""Section 6: aggregates of a provider."""

from __future__ import annotations

from collections.abc import Iterator

from bench.api import LATEST, Json
from compare.script.step import Step, get, make_provider, request, uid


def steps() -> Iterator[Step]:
    """Both forms of the body, at versions on both sides of 1.19."""
    name = "aggregates"
    path = f"/resource_providers/{uid(name)}/aggregates"
    first, second = uid("aggregate-1"), uid("aggregate-2")
    yield make_provider(name)
    lists: list[Json] = [
        [],
        [first],
        [second, first],
        [first, first],
        ["junk"],
        [first, "junk", "other"],
        [5],
        [None],
        [""],
        [f" {first}"],
        None,
        "text",
        {first: 1},
        [first],
    ]
    for version in ("1.1", "1.18", "1.19", "1.22", LATEST):
        for aggregates in lists:
            yield request("PUT", path, version, aggregates)
            for generation in (0, 99):
                body: Json = {
                    "aggregates": aggregates,
                    "resource_provider_generation": generation,
                }
                yield request("PUT", path, version, body)
            yield from get(path, "1.1", "1.14", "1.15", "1.19", LATEST)
    generation_known = "aggregates-generation"
    path = f"/resource_providers/{uid(generation_known)}/aggregates"
    yield make_provider(generation_known)
    for generation, aggregates in enumerate(([first], [first], [second, first], [])):
        for _ in range(2):
            yield request(
                "PUT",
                path,
                LATEST,
                {"aggregates": aggregates, "resource_provider_generation": generation},
            )
        yield from get(path)
    bad_bodies: list[Json] = [
        {},
        {"aggregates": []},
        {"resource_provider_generation": 4},
        {"aggregates": [], "resource_provider_generation": "4"},
        {"aggregates": [], "resource_provider_generation": None},
        {"aggregates": [], "resource_provider_generation": 4, "extra": True},
    ]
    for body in bad_bodies:
        yield request("PUT", path, LATEST, body)
        yield from get(path)
    for version in ("1.1", LATEST):
        yield request("GET", f"/resource_providers/{uid('nobody')}/aggregates", version)
        yield request("PUT", f"/resource_providers/{uid('nobody')}/aggregates", version, ["junk"])
