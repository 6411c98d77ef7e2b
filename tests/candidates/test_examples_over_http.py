# SPDX-License-Identifier: Apache-2.0
"""Every recorded example over HTTP: each world is created, queried and deleted through the API.

Examples whose ids begin with `DEF` are queries that OpenStack Placement answers wrongly; the
expected answer is the one that its documentation requires.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.candidates.examples import Example, ask, assert_recorded, recorded_examples
from tests.client import Client
from tests.effort import some_of
from tests.world_over_http import built_over_http
from tests.worlds import example_world

DEFECTS = "the original answers this query wrongly"


def cases(examples: Iterable[Example]) -> pytest.MarkDecorator:
    """Parametrise over the examples, ordered so that each world is created once; the ids are
    theirs."""
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
    """The server with the world of the test's parameter."""
    with built_over_http(example_world(request.param), server):
        yield server


@cases(EXAMPLES)
def test_the_recorded_answer_comes_over_the_wire(standing: Client, example: Example) -> None:
    """The same status and error, the same candidates with their repetitions, and identical
    summaries."""
    assert_recorded(example, ask(standing, example))


@cases(CLAIMABLE)
def test_every_candidate_can_be_claimed_as_it_came(standing: Client, example: Example) -> None:
    """`PUT /allocations` accepts each candidate at the microversion at which it was returned."""
    body = ask(standing, example).json
    for candidate in some_of(body["allocation_requests"], example.id):
        path = f"/allocations/{uuid4()}"
        claim = claim_of(candidate, example.minor)
        claimed = standing.put(path, json=claim, version=f"1.{example.minor}")
        assert claimed.status == 204, claimed.text
        assert standing.delete(path).status == 204
    assert_recorded(example, ask(standing, example))


def claim_of(candidate: dict[str, Any], minor: int) -> dict[str, Any]:
    """The body that claims a candidate, with the fields that the microversion requires."""
    claim = {**candidate, "project_id": "worlds", "user_id": "tests"}
    if minor >= 28:
        claim["consumer_generation"] = None
    if minor >= 38:
        claim["consumer_type"] = "INSTANCE"
    return claim
