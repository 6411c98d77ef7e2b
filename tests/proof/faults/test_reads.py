# SPDX-License-Identifier: Apache-2.0
"""Whichever call of a read fails, the response is the current state or 503, and the next read
succeeds.

Another worker has changed everything just before, so a cached response would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.effort import repeat_with, some_of
from tests.proof.faults.driver import FAULTS, Fault, Turns, in_short
from tests.proof.faults.requests import (
    FIRST,
    HOST,
    NUMA0,
    READS,
    SECOND,
    Request,
    claim,
    inventories,
)
from tests.proof.faults.stage import Answer, Play, Stage, broken, send, staged

#: More calls than any request makes: a loop that gets there would never end.
CALLS_MAX = 300

#: What the other worker does meanwhile. Every read sees some of it.
MEANWHILE = [
    Request("rename a class", "PUT", "/resource_classes/CUSTOM_GPU", {"name": "CUSTOM_NEW"}, "1.6"),
    Request("define a trait", "PUT", "/traits/CUSTOM_NEW"),
    Request(
        "replace traits",
        "PUT",
        f"/resource_providers/{HOST}/traits",
        {"traits": ["CUSTOM_NEW"], "resource_provider_generation": 5},
    ),
    Request("drop the aggregates", "PUT", f"/resource_providers/{HOST}/aggregates", [], "1.18"),
    Request(
        "move a consumer",
        "PUT",
        f"/allocations/{FIRST}",
        claim({NUMA0: {"VCPU": 1}}, seen=1, project="new"),
    ),
    Request("release a consumer", "DELETE", f"/allocations/{SECOND}"),
    Request(
        "grow the inventories",
        "PUT",
        f"/resource_providers/{HOST}/inventories",
        inventories(6, {"VCPU": 32, "CUSTOM_NEW": 2}),
    ),
    Request("rename the host", "PUT", f"/resource_providers/{HOST}", {"name": "renamed"}),
]


@pytest.mark.parametrize("request_", READS, ids=str)
def test_a_read_is_true_or_says_that_it_cannot_be_had(play: Play, request_: Request) -> None:
    """The n-th call fails, for each n of this run."""
    before, due, calls = undisturbed(play, request_)
    assert before != due, "a stale answer would not be noticed"
    wrong = [
        f"{fault}: {sentence}"
        for fault in some_of(FAULTS, request_.name)
        for tried in [[in_short(call) for call in calls if fault.strikes.admits(call)]]
        # A read of one statement neither begins a transaction nor ends one.
        if tried
        for sentence in _wrong_answers(play, request_, fault, due, tried)
    ]
    if wrong:
        pytest.fail("\n".join([*wrong, repeat_with()]), pytrace=False)


def _wrong_answers(
    play: Play, request: Request, fault: Fault, due: Answer, calls: Sequence[str]
) -> Iterator[str]:
    """The faults, call by call. A worker continues with the next call until it has answered: from
    then on it knows the other worker's changes."""
    struck: set[str] = set()
    turns = Turns.of(fault, request.name, calls)
    nth, is_over = turns.first, False
    while not is_over:
        with staged(play) as stage:
            change_meanwhile(stage)
            has_answered = False
            while not has_answered and not is_over:
                answer, call = broken(stage, request, nth, fault)
                has_answered = not answer.unavailable
                is_over = call is None or nth > CALLS_MAX
                if answer != due and not (call and answer.unavailable):
                    yield f"call {nth}, {call!r}: {answer} instead of {due}"
                if call is not None:
                    struck.add(call)
                    nth += turns.step
            yield from _wrong_afterwards(stage, request, due, f"call {nth - turns.step}")
    if nth > CALLS_MAX:
        yield "no end"
    assert struck, "no call was made to fail"
    # A worker that has just met a fault opens a connection again, so its n-th call is not that of
    # a worker that is well.
    for place, call in enumerate(calls, start=1):
        if call not in struck and turns.have(place):
            with staged(play) as stage:
                change_meanwhile(stage)
                answer, hit = broken(stage, request, place, fault)
                struck.add(call)
                if hit != call:
                    yield f"call {place} was {hit!r} instead of {call!r}"
                if answer != due and not answer.unavailable:
                    yield f"call {place}, {call!r}: {answer} instead of {due}"
                yield from _wrong_afterwards(stage, request, due, f"call {place}, {call!r}")


def _wrong_afterwards(stage: Stage, request: Request, due: Answer, when: str) -> Iterator[str]:
    """The faults of the worker once nothing fails any more."""
    if (again := send(request, stage.sabotaged)) != due:
        yield f"after {when}: the next one was answered {again}"
    if faults := stage.faults():
        yield f"after {when}: {faults}"


#: The answer before the other worker's changes, and after them; and the calls it then takes.
Truth = tuple[Answer, Answer, Sequence[str]]


def undisturbed(play: Play, request: Request) -> Truth:
    """The response without faults."""
    with staged(play) as stage:
        before = send(request, stage.sabotaged)
    with staged(play) as stage:
        change_meanwhile(stage)
        stage.saboteur.arm(0, None)
        after = send(request, stage.sabotaged)
        assert after.status == 200 or after.status == 204
        return before, after, tuple(stage.saboteur.calls)


def change_meanwhile(stage: Stage) -> None:
    """The other worker changes everything."""
    for request in MEANWHILE:
        assert send(request, stage.other).status < 300, request.name
