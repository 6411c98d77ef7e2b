# SPDX-License-Identifier: Apache-2.0
"""The recorded examples as test cases: what was asked of which world, and what must come back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.answers import candidate_text
from tests.worlds import World, example_world, load_examples


@dataclass(frozen=True, slots=True)
class Example:
    """One recorded query with the answer that is due.

    `query` has placeholders; `candidates` is None for an error. With `count`, any so many of the
    candidates are due, otherwise exactly these. `summaries` maps provider to class to
    (capacity, used), None where the record has none.
    """

    id: str
    world_key: str
    minor: int
    query: str
    status: int
    code: str | None
    detail: str | None
    candidates: list[str] | None
    count: int | None
    summaries: Mapping[str, Mapping[str, tuple[int, int]]] | None

    @property
    def is_defect(self) -> bool:
        """Say whether the original answers something else, wrongly."""
        return self.id.startswith("DEF.")

    @property
    def world(self) -> World:
        """The world that the query is asked of."""
        return example_world(self.world_key)


def recorded_examples() -> list[Example]:
    """All examples, those over random worlds, and the right answers to the original's defects."""
    recorded = load_examples()
    return [
        *(_read(item, item["expected"]) for item in recorded["examples"]),
        *(_read(item, item["expected"]) for item in recorded["random_examples"]),
        *(_read(item, item["correct"]) for item in recorded["defects"]),
    ]


def _read(item: Mapping[str, Any], due: Mapping[str, Any]) -> Example:
    candidates = due.get("candidates", due.get("candidates_from"))
    summaries = due.get("provider_summaries")
    return Example(
        id=item["id"],
        world_key=item["world"],
        minor=int(item["microversion"].removeprefix("1.")),
        query=item["query"],
        status=due["status"],
        code=due.get("code"),
        detail=due.get("detail_has"),
        candidates=None
        if candidates is None
        else sorted(candidate_text(one["allocations"], one.get("mappings")) for one in candidates),
        count=due.get("count"),
        summaries=None
        if summaries is None
        else {
            provider: {name: (capacity, used) for name, (capacity, used) in resources.items()}
            for provider, resources in summaries.items()
        },
    )
