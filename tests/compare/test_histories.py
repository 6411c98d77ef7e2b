# SPDX-License-Identifier: Apache-2.0
"""Random histories: what they ask, how one is shrunk, and that a planted difference is seen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from compare.differences import find_differences
from compare.histories.history import History
from compare.histories.replay import renamed, shortest
from compare.script.step import Step, request, uid
from compare.wire import Answer
from tests.client import Client
from tests.routes import OPERATIONS, OWN, ROUTES


def steps_and_answers(client: Client, seed: str, count: int) -> Iterator[tuple[Step, Answer]]:
    """Play a history to the application of the test."""
    history = History(seed, count)
    for step in history.steps():
        headers = list(step.headers.items())
        if step.body is not None:
            headers.append(("content-length", str(len(step.body))))
        told = client.transport.send(step.method, step.path, headers, step.body)
        answer = Answer(told.status, {}, told.body)
        history.picture.learn(step, answer)
        yield step, answer


def test_histories_ask_for_everything_and_most_of_it_succeeds(client: Client) -> None:
    """Each method of each route is answered 2xx; a good part is refused, nothing is a crash."""
    succeeded: set[tuple[str, str]] = set()
    statuses: Counter[int] = Counter()
    for seed in ("1.1", "1.2", "1.3", "1.4"):
        for step, answer in steps_and_answers(client, seed, 300):
            statuses[answer.status // 100] += 1
            if answer.status < 300:
                path = step.path.partition("?")[0]
                succeeded |= {
                    (route.template, step.method) for route in ROUTES if route.pattern.match(path)
                }
    assert succeeded == {
        (route.template, method) for route, method in OPERATIONS if route.template not in OWN
    }
    assert statuses[2] > statuses.total() / 2
    assert statuses[4] > statuses.total() / 10
    assert statuses[5] == 0


def test_a_history_is_shrunk_to_the_requests_that_matter() -> None:
    """Two of 64 requests and the last; what is between them goes."""
    steps = [request("GET", f"/{number}") for number in range(65)]
    needed = [steps[5], steps[41], steps[64]]

    def shows(some: Sequence[Step]) -> bool:
        return all(step in some for step in needed)

    assert shortest(steps, shows, give_up=lambda: False) == needed


def test_a_replay_is_about_another_world() -> None:
    """Every uuid and name is another, the same for the same, and whatever else is asked stays."""
    one, other = uid("one"), uid("other")
    steps = [
        request("PUT", f"/allocations/{one}", "1.28", {one: other, "CUSTOM_H1X2H_A": 1}),
        request("GET", f"/resource_providers/{one.upper()}/usages?name=H1X2H-provider"),
    ]
    first, second = renamed(steps, 3)
    new_one = first.path.rpartition("/")[2]
    assert first.body is not None
    ((key, new_other), custom) = json.loads(first.body).items()
    assert (key, custom) == (new_one, ("CUSTOM_H3X3H_A", 1))
    assert len({one, other, new_one, new_other}) == 4
    assert second.path == f"/resource_providers/{new_one.upper()}/usages?name=H3X3H-provider"


def differing_parts(ours: Any, theirs: Any, *, named: str = "", status: int = 200) -> list[str]:
    """What is found to differ between two bodies, of a 200 unless told otherwise."""
    answers = (Answer(status, {}, json.dumps(body).encode()) for body in (ours, theirs))
    step = request("GET", "/resource_providers")
    return [each.part for each in find_differences(step, *answers, known_uuids={named})]


def test_the_order_of_a_list_and_a_generated_uuid_are_no_differences() -> None:
    """Uuids that a request has named are."""
    assert differing_parts([1, 2], [2, 1]) == []
    assert differing_parts([uid("a")], [uid("b")]) == []
    assert differing_parts([uid("a")], [uid("b")], named=uid("a")) == ["body"]


def error(detail: str) -> dict[str, Any]:
    """The body of an error."""
    return {"errors": [{"status": 400, "title": "Bad Request", "detail": detail}]}


@pytest.mark.parametrize(
    ("ours", "theirs", "differs"),
    [
        ("No.\n\n It is used.  By whom.", "No.\n\n It is used.  ", False),
        ("No.\n\n It is used.", "No.\n\n It is used.  ", True),
        ("No.\n\n In use.  ", "No.\n\n It is used.  ", True),
        (f"Provider {uid('a')} is gone", f"Provider {uid('b')} is gone", False),
        (
            "x in schema['a']:   {1}  On instance:   1  ",
            "x in schema['a']:  {2}  On instance: 3",
            False,
        ),
        (
            "x in schema['a']:   {1}  On instance:   1  ",
            "x in schema['b']:  {1}  On instance: 1",
            True,
        ),
        ("Update conflict: it exists", "Update conflict: (sqlite3.IntegrityError) [SQL]", False),
        ("bad group(s) - ['1', '2'].  ", "bad group(s) - ['2', '1'].  ", False),
        ("bad group(s) - ['1', '2'].  ", "bad group(s) - ['2', '3'].  ", True),
        ("No such trait(s): A.  Unknown are A, B.", "No such trait(s): B.  ", False),
        ("No such trait(s): A.  ", "No such trait(s): B.  ", True),
    ],
)
def test_berth_says_what_the_original_says_and_then_more(
    ours: str, theirs: str, differs: bool
) -> None:
    """Letter for letter, but for dumps, generated uuids, and the order of sets."""
    assert differing_parts(error(ours), error(theirs), status=400) == ["detail"] * differs
