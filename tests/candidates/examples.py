# SPDX-License-Identifier: Apache-2.0
"""The recorded examples as test cases: a world, a query, and the expected response."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.answers import candidate_text, providers_of, read_answer
from tests.brute_force import summaries
from tests.client import Client, Response
from tests.queries import parse_query
from tests.worlds import World, example_world, load_examples


@dataclass(frozen=True, slots=True)
class Example:
    """A recorded query with its expected response.

    `query` has placeholders. `candidates` is None for an error. With `count`, any that many of the
    candidates are expected, otherwise exactly these. `summaries` maps provider to class to
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
        """Whether OpenStack Placement gives a different, wrong answer."""
        return self.id.startswith("DEF.")

    @property
    def world(self) -> World:
        """The world that the query is sent to."""
        return example_world(self.world_key)


def recorded_examples() -> list[Example]:
    """All examples: those over random worlds, and the correct answers where Placement has a
    defect."""
    recorded = load_examples()
    return [
        *(_read(item, item["expected"]) for item in recorded["examples"]),
        *(_read(item, item["expected"]) for item in recorded["random_examples"]),
        *(_read(item, item["correct"]) for item in recorded["defects"]),
    ]


def ask(client: Client, example: Example) -> Response:
    """Send the query of an example at its microversion."""
    query = example.world.resolve(example.query)
    return client.get(f"/allocation_candidates?{query}", version=f"1.{example.minor}")


def assert_recorded(example: Example, response: Response) -> None:
    """Compare a response with the record."""
    assert response.status == example.status, response.text
    if example.candidates is None:
        assert response.code == example.code
        assert example.detail is not None
        assert example.detail in response.detail
        return
    answer = read_answer(response.json, example.world, example.minor)
    if example.count is None:
        assert answer.candidates == example.candidates
    else:
        assert len(answer.candidates) == example.count
        assert Counter(answer.candidates) <= Counter(example.candidates)
    query = parse_query(example.query, example.minor)
    used = providers_of(answer.candidates)
    assert answer.summaries == summaries(example.world, query, used, example.minor)
    if example.summaries is not None:
        assert {n: s.resources for n, s in answer.summaries.items()} == example.summaries


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
        else sorted(
            candidate_text(candidate["allocations"], candidate.get("mappings"))
            for candidate in candidates
        ),
        count=due.get("count"),
        summaries=None
        if summaries is None
        else {
            provider: {name: (capacity, used) for name, (capacity, used) in resources.items()}
            for provider, resources in summaries.items()
        },
    )
