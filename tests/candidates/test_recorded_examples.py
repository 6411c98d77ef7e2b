# SPDX-License-Identifier: Apache-2.0
"""Every recorded example: berth and its brute-force twin answer what OpenStack Placement did.

Examples whose ids begin with `DEF` are queries that OpenStack Placement answers wrongly; the
expected answer is the one that its documentation requires.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest

from tests.answers import candidate_text, providers_of, read_answer
from tests.brute_force import UnknownName, answer, summaries
from tests.candidates.engine import Stand
from tests.client import Client, Response
from tests.effort import some_of
from tests.queries import parse_query, query_text
from tests.world_over_http import built_over_http
from tests.worlds import World, example_world, load_examples

#: What a refusal says when the reason is a name that does not exist: the twin's only errors.
UNKNOWN_NAME_DETAILS = ("No such resource class", "No such trait(s)")

Item = Mapping[str, Any]


def cases() -> Iterator[Any]:
    """All examples, with the correct answers where Placement has a defect."""
    recorded = load_examples()
    different = pytest.mark.deliberately_different("the original answers this query wrongly")
    for kind, due in (
        ("examples", "expected"),
        ("random_examples", "expected"),
        ("defects", "correct"),
    ):
        for item in recorded[kind]:
            marks = [different] if kind == "defects" else []
            yield pytest.param(item, item[due], id=item["id"], marks=marks)


@contextmanager
def standing(fleet: World, stand: Stand, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client of a service that has a world: in this process, or the one at `--berth-url`."""
    if url := request.config.getoption("--berth-url"):
        client = Client.at(url)
        with built_over_http(fleet, client):
            yield client
    else:
        yield stand(fleet).client


@pytest.mark.parametrize(("item", "due"), [*cases()])
def test_a_query_is_answered_as_recorded(
    stand: Stand, request: pytest.FixtureRequest, item: Item, due: Item
) -> None:
    """The same status and error, or the same candidates with their repetitions and identical
    summaries; and each candidate can be claimed as it came."""
    fleet, minor = example_world(item["world"]), int(item["microversion"].removeprefix("1."))
    with standing(fleet, stand, request) as client:

        def ask() -> Response:
            text = fleet.resolve(item["query"])
            return client.get(f"/allocation_candidates?{text}", version=f"1.{minor}")

        response = ask()
        assert response.status == due["status"], response.text
        if response.status != 200:
            assert response.code == due.get("code")
            assert due["detail_has"] in response.detail
            if due["detail_has"] in UNKNOWN_NAME_DETAILS:
                with pytest.raises(UnknownName):
                    answer(fleet, parse_query(item["query"], minor), minor)
            return
        _check(fleet, item["query"], minor, due, response)
        claimable = response.json["allocation_requests"]
        for candidate in some_of(claimable, item["id"]) if claimable else ():
            path = f"/allocations/{uuid4()}"
            claimed = client.put(path, json=_claim_of(candidate, minor), version=f"1.{minor}")
            assert claimed.status == 204, claimed.text
            assert client.delete(path).status == 204
        assert read_answer(ask().json, fleet, minor).summaries == summaries(
            fleet,
            parse_query(item["query"], minor),
            providers_of(read_answer(response.json, fleet, minor).candidates),
            minor,
        )


def _check(fleet: World, text: str, minor: int, due: Item, response: Response) -> None:
    recorded = sorted(
        candidate_text(each["allocations"], each.get("mappings"))
        for each in due.get("candidates", due.get("candidates_from"))
    )
    query = parse_query(text, minor)
    got, whole = read_answer(response.json, fleet, minor), answer(fleet, query, minor)
    assert whole.candidates == recorded
    # Random queries are written as texts.
    assert answer(fleet, parse_query(query_text(query), minor), minor) == whole
    if (count := due.get("count")) is None:
        assert got.candidates == recorded
    else:
        assert len(got.candidates) == count
        assert Counter(got.candidates) <= Counter(recorded)
    assert got.summaries == summaries(fleet, query, providers_of(got.candidates), minor)
    if (shown := due.get("provider_summaries")) is not None:
        due_shown = {
            name: {of: (capacity, used) for of, (capacity, used) in resources.items()}
            for name, resources in shown.items()
        }
        assert {n: s.resources for n, s in got.summaries.items()} == due_shown
        assert {n: s.resources for n, s in whole.summaries.items()} == due_shown


def _claim_of(candidate: Item, minor: int) -> dict[str, Any]:
    """The body that claims a candidate, with the fields that the microversion requires."""
    claim = {**candidate, "project_id": "worlds", "user_id": "tests"}
    if minor >= 28:
        claim["consumer_generation"] = None
    if minor >= 38:
        claim["consumer_type"] = "INSTANCE"
    return claim
