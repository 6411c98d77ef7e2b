# SPDX-License-Identifier: Apache-2.0
"""Answers to candidates queries in a form that can be compared, and read when they differ.

A candidate is one line of text, `numa1:VCPU=2 pool:DISK_GB=100 <1=numa1 _D=pool>`: what each
provider gives, then (from microversion 1.34) which providers serve which group. The order of
candidates means nothing and repetitions count, so they are compared as sorted lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.worlds import World


@dataclass(frozen=True, slots=True)
class Summary:
    """One entry of `provider_summaries`; a fact that the microversion does not show is None."""

    resources: Mapping[str, tuple[int, int]]
    traits: frozenset[str] | None = None
    root: str | None = None
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer: sorted candidates, and the summaries by provider name."""

    candidates: list[str]
    summaries: Mapping[str, Summary]


def candidate_text(
    allocations: Mapping[str, Mapping[str, int]],
    mappings: Mapping[str, Iterable[str]] | None,
) -> str:
    """Write one candidate down, by provider names; `mappings` is None where none are shown."""
    words = [
        f"{provider}:" + ",".join(f"{name}={amount}" for name, amount in sorted(resources.items()))
        for provider, resources in sorted(allocations.items())
    ]
    if mappings is not None:
        served = [
            f"{suffix}={'+'.join(sorted(names))}" for suffix, names in sorted(mappings.items())
        ]
        words.append(f"<{' '.join(served)}>")
    return " ".join(words)


def read_answer(body: Any, fleet: World, minor: int) -> Answer:
    """Read the body of a 200 at microversion 1.`minor`, holding it to that version's format.

    Every key is checked: one that is missing, or that the version does not have, fails here.
    """
    assert body.keys() == {"allocation_requests", "provider_summaries"}
    return Answer(
        sorted(_read_candidate(item, fleet, minor) for item in body["allocation_requests"]),
        {
            fleet.names[uuid]: _read_summary(entry, fleet, minor)
            for uuid, entry in body["provider_summaries"].items()
        },
    )


def providers_of(candidates: Iterable[str]) -> frozenset[str]:
    """The names of the providers that give something in these candidates."""
    return frozenset(
        word.split(":")[0]
        for candidate in candidates
        for word in candidate.partition(" <")[0].split()
    )


def _read_candidate(item: Any, fleet: World, minor: int) -> str:
    assert item.keys() == ({"allocations", "mappings"} if minor >= 34 else {"allocations"})
    allocations: dict[str, Mapping[str, int]] = {}
    for uuid, resources in _pairs(item["allocations"], minor):
        assert fleet.names[uuid] not in allocations, "a provider stands twice in a candidate"
        assert resources and all(type(amount) is int for amount in resources.values())
        allocations[fleet.names[uuid]] = resources
    if minor < 34:
        return candidate_text(allocations, None)
    mappings: dict[str, list[str]] = {}
    for suffix, uuids in item["mappings"].items():
        assert len(set(uuids)) == len(uuids), "a provider stands twice in a mapping"
        mappings[suffix] = [fleet.names[uuid] for uuid in uuids]
    return candidate_text(allocations, mappings)


def _pairs(allocations: Any, minor: int) -> Iterable[tuple[str, Mapping[str, int]]]:
    """Provider uuids and resources, from the list form (below 1.12) or the later object form."""
    if minor < 12:
        assert all(item.keys() == {"resource_provider", "resources"} for item in allocations)
        assert all(item["resource_provider"].keys() == {"uuid"} for item in allocations)
        return [(item["resource_provider"]["uuid"], item["resources"]) for item in allocations]
    assert all(item.keys() == {"resources"} for item in allocations.values())
    return [(uuid, item["resources"]) for uuid, item in allocations.items()]


def _read_summary(entry: Any, fleet: World, minor: int) -> Summary:
    keys = {"resources"}
    if minor >= 17:
        keys |= {"traits"}
    if minor >= 29:
        keys |= {"parent_provider_uuid", "root_provider_uuid"}
    assert entry.keys() == keys
    traits = entry.get("traits")
    assert traits is None or len(set(traits)) == len(traits)
    root, parent = entry.get("root_provider_uuid"), entry.get("parent_provider_uuid")
    for amounts in entry["resources"].values():
        assert amounts.keys() == {"capacity", "used"}
        assert all(type(amount) is int for amount in amounts.values())
    return Summary(
        resources={
            name: (amounts["capacity"], amounts["used"])
            for name, amounts in entry["resources"].items()
        },
        traits=None if traits is None else frozenset(traits),
        root=None if root is None else fleet.names[root],
        parent=None if parent is None else fleet.names[parent],
    )
