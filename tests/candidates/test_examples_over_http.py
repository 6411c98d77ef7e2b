# SPDX-License-Identifier: Apache-2.0
"""Every recorded example over the wire: the worlds are built, asked and taken down through the API.

The examples whose ids begin with `DEF` are queries that the original answers wrongly; what is due
is the answer that its own documentation asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.candidates.examples import Example, ask, assert_recorded, recorded_examples
from tests.client import Client
from tests.world_over_http import built_over_http
from tests.worlds import example_world

DEFECTS = "the original answers this query wrongly"


def cases(examples: Iterable[Example]) -> pytest.MarkDecorator:
    """Parametrise over examples, world by world so that each is built once; name them by id."""
    return pytest.mark.parametrize(
        ("standing", "example"),
        [
            pytest.param(
                example.world_key,
                example,
                id=example.id,
                marks=[pytest.mark.deliberately_different(DEFECTS)] * example.is_defect,
            )
            for example in sorted(examples, key=lambda example: example.world_key)
        ],
        indirect=["standing"],
        scope="module",
    )


EXAMPLES = recorded_examples()
CLAIMABLE = [example for example in EXAMPLES if example.candidates]


@pytest.fixture(scope="module")
def standing(request: pytest.FixtureRequest, server: Client) -> Iterator[Client]:
    """The server, with the world standing that the test's parameter names."""
    with built_over_http(example_world(request.param), server):
        yield server


@cases(EXAMPLES)
def test_the_recorded_answer_comes_over_the_wire(standing: Client, example: Example) -> None:
    """Same status and error; same candidates with their repetitions, summaries to the last key."""
    assert_recorded(example, ask(standing, example))


@cases(CLAIMABLE)
def test_every_candidate_can_be_claimed_as_it_came(standing: Client, example: Example) -> None:
    """Each candidate, sent back at its own microversion, is accepted by `PUT /allocations`."""
    body = ask(standing, example).json
    for candidate in body["allocation_requests"]:
        path = f"/allocations/{uuid4()}"
        claim = claim_of(candidate, example.minor)
        claimed = standing.put(path, json=claim, version=f"1.{example.minor}")
        assert claimed.status == 204, claimed.text
        assert standing.delete(path).status == 204
    assert_recorded(example, ask(standing, example))


def claim_of(candidate: dict[str, Any], minor: int) -> dict[str, Any]:
    """The body that claims a candidate: itself, and what else the microversion asks for."""
    claim = {**candidate, "project_id": "worlds", "user_id": "tests"}
    if minor >= 28:
        claim["consumer_generation"] = None
    if minor >= 38:
        claim["consumer_type"] = "INSTANCE"
    return claim
