# SPDX-License-Identifier: Apache-2.0
"""Whichever call of a read fails, the response is the current state or 503, and the next read
succeeds.

Another worker has changed everything just before, so a cached response would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from compare.script.step import Step
from tests.effort import repeat_with, some_of
from tests.proof.faults.driver import FAULTS, Fault, Turns, in_short
from tests.proof.faults.requests import READS, Name
from tests.proof.faults.stage import Answer, Play, Stage, broken, send, staged
from tests.proof.faults.test_writes import name_of

#: More calls than any request makes: a loop that gets there would never end.
CALLS_MAX = 300


@pytest.mark.parametrize("name", READS, ids=name_of)
def test_a_read_is_true_or_says_that_it_cannot_be_had(play: Play, name: Name) -> None:
    """The n-th call fails, for each n of this run."""

    def shows(step: Step) -> bool:
        before, due, _ = undisturbed(play, step)
        return due.status == 200 and before != due

    is_search = name[1] == "/allocation_candidates"
    step = play.world.read(name, shows if is_search else None)
    before, due, calls = undisturbed(play, step)
    assert before != due, "a stale answer would not be noticed"
    wrong = [
        f"{step}: {fault}: {sentence}"
        for fault in some_of(FAULTS, str(step))
        for tried in [[in_short(call) for call in calls if fault.strikes.admits(call)]]
        # A read of one statement neither begins a transaction nor ends one.
        if tried
        for sentence in _wrong_answers(play, step, fault, due, tried)
    ]
    if wrong:
        pytest.fail("\n".join([*wrong, repeat_with()]), pytrace=False)


def _wrong_answers(
    play: Play, step: Step, fault: Fault, due: Answer, calls: Sequence[str]
) -> Iterator[str]:
    """The faults, call by call. A worker continues with the next call until it has answered: from
    then on it knows the other worker's changes."""
    struck: set[str] = set()
    turns = Turns.of(fault, str(step), calls)
    nth, is_over = turns.first, False
    while not is_over:
        with staged(play) as stage:
            change_meanwhile(play, stage)
            has_answered = False
            while not has_answered and not is_over:
                answer, call = broken(stage, step, nth, fault)
                has_answered = not answer.unavailable
                is_over = call is None or nth > CALLS_MAX
                if answer != due and not (call and answer.unavailable):
                    yield f"call {nth}, {call!r}: {answer} instead of {due}"
                if call is not None:
                    struck.add(call)
                    nth += turns.step
            yield from _wrong_afterwards(stage, step, due, f"call {nth - turns.step}")
    if nth > CALLS_MAX:
        yield "no end"
    assert struck, "no call was made to fail"
    # A worker that has just met a fault opens a connection again, so its n-th call is not that of
    # a worker that is well.
    for place, call in enumerate(calls, start=1):
        if call not in struck and turns.have(place):
            with staged(play) as stage:
                change_meanwhile(play, stage)
                answer, hit = broken(stage, step, place, fault)
                struck.add(call)
                if hit != call:
                    yield f"call {place} was {hit!r} instead of {call!r}"
                if answer != due and not answer.unavailable:
                    yield f"call {place}, {call!r}: {answer} instead of {due}"
                yield from _wrong_afterwards(stage, step, due, f"call {place}, {call!r}")


def _wrong_afterwards(stage: Stage, step: Step, due: Answer, when: str) -> Iterator[str]:
    """The faults of the worker once nothing fails any more."""
    if (again := send(step, stage.sabotaged)) != due:
        yield f"after {when}: the next one was answered {again}"
    if faults := stage.faults():
        yield f"after {when}: {faults}"


#: The answer before the other worker's changes, and after them; and the calls it then takes.
Truth = tuple[Answer, Answer, Sequence[str]]


def undisturbed(play: Play, step: Step) -> Truth:
    """The response without faults."""
    with staged(play) as stage:
        before = send(step, stage.sabotaged)
    with staged(play) as stage:
        change_meanwhile(play, stage)
        stage.saboteur.arm(0, None)
        after = send(step, stage.sabotaged)
        return before, after, tuple(stage.saboteur.calls)


def change_meanwhile(play: Play, stage: Stage) -> None:
    """The other worker changes everything."""
    for step in play.world.meanwhile:
        assert send(step, stage.other).status < 300, step
