# SPDX-License-Identifier: Apache-2.0
"""Every recorded example over the wire: the worlds are built, asked and taken down through the API.

The examples whose ids begin with `DEF` are queries that the original answers wrongly; what is due
is the answer that its own documentation asks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from tests.answers import providers_of, read_answer
from tests.brute_force import summaries
from tests.candidates.examples import Example, recorded_examples
from tests.client import Client, Response
from tests.queries import parse_query
from tests.world_over_http import built_over_http
from tests.worlds import example_world

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

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
FIRST_OF_EACH_WORLD = list({example.world_key: example for example in reversed(EXAMPLES)}.values())


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


@pytest.mark.in_process
@pytest.mark.parametrize("example", FIRST_OF_EACH_WORLD, ids=lambda example: example.id)
def test_the_recorded_answer_comes_through_a_socket(
    server_app: WSGIApplication, example: Example
) -> None:
    """A server in front of the application changes nothing; one example of each world."""
    with listening(server_app) as url, built_over_http(example.world, Client.at(url)):
        assert_recorded(example, ask(Client.at(url), example))


def ask(client: Client, example: Example) -> Response:
    """Send the query of an example, at its microversion."""
    query = example.world.resolve(example.query)
    return client.get(f"/allocation_candidates?{query}", version=f"1.{example.minor}")


def assert_recorded(example: Example, response: Response) -> None:
    """Compare an answer with the record."""
    assert response.status == example.status, response.text
    if example.candidates is None:
        assert response.code == example.code
        assert example.detail is not None
        assert example.detail in response.detail
        return
    found = read_answer(response.json, example.world, example.minor)
    if example.count is None:
        assert found.candidates == example.candidates
    else:
        assert len(found.candidates) == example.count
        assert Counter(found.candidates) <= Counter(example.candidates)
    query = parse_query(example.query, example.minor)
    used = providers_of(found.candidates)
    assert found.summaries == summaries(example.world, query, used, example.minor)
    if example.summaries is not None:
        assert {n: s.resources for n, s in found.summaries.items()} == example.summaries


def claim_of(candidate: dict[str, Any], minor: int) -> dict[str, Any]:
    """The body that claims a candidate: itself, and what else the microversion asks for."""
    claim = {**candidate, "project_id": "worlds", "user_id": "tests"}
    if minor >= 28:
        claim["consumer_generation"] = None
    if minor >= 38:
        claim["consumer_type"] = "INSTANCE"
    return claim


@contextmanager
def listening(app: WSGIApplication) -> Iterator[str]:
    """Serve an application on a free port of the loopback interface; yields the URL."""

    class Quiet(WSGIRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: the test says what went wrong."""

    with make_server("127.0.0.1", 0, app, handler_class=Quiet) as http_server:
        thread = Thread(target=http_server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{http_server.server_port}"
        finally:
            http_server.shutdown()
            thread.join()
