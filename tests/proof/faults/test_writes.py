# SPDX-License-Identifier: Apache-2.0
"""Whichever call of a write fails, the write took place completely or not at all, and the response
is true.

Source: commit-rules.md, rules 6 and 7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from compare.script.step import Step, request
from tests.effort import repeat_with, some_of
from tests.proof.faults.contents import Contents, difference
from tests.proof.faults.driver import (
    EVERY_CALL,
    FAULTS,
    OPEN,
    Fault,
    Happens,
    Reach,
    Turns,
    in_short,
)
from tests.proof.faults.requests import REFUSED, WRITES, Name
from tests.proof.faults.stage import Answer, Play, Stage, broken, send, staged

#: More calls than any request makes: a loop that gets there would never end.
CALLS_MAX = 300


def name_of(name: Name) -> str:
    """An operation, as the id of a test."""
    method, path, since = name
    return f"{method} {path} {since}"


#: What is sent afterwards, to see that the worker is well again.
LATER = request("PUT", "/traits/CUSTOM_LATER")


@dataclass(frozen=True, slots=True)
class Truth:
    """The state before and after a request, its response without faults, and its number of
    calls."""

    before: Contents
    after: Contents
    answer: Answer
    calls: tuple[str, ...]


@pytest.mark.parametrize("name", WRITES, ids=name_of)
def test_a_write_happens_wholly_or_not_at_all(play: Play, name: Name) -> None:
    """The n-th call fails, for each n of this run, in a worker that has written before."""
    _fail_with(_wrong_with_some_faults(play, play.world.write(name), cold=False))


@pytest.mark.parametrize("name", REFUSED, ids=name_of)
def test_a_write_that_is_refused_does_nothing(play: Play, name: Name) -> None:
    """Whatever fails before that."""
    refused = play.world.write(name, is_refused=True)
    _fail_with(_wrong_with_some_faults(play, refused, cold=False))


def test_the_first_write_of_a_worker_too(play: Play) -> None:
    """It first gets a row in the clock, in a commit of its own."""
    claim = play.world.write(("PUT", "/allocations/{consumer_uuid}", 0))
    _fail_with(_wrong_with_some_faults(play, claim, cold=True))


def _wrong_with_some_faults(play: Play, step: Step, *, cold: bool) -> Iterator[str]:
    truth = undisturbed(play, step, cold=cold)
    for fault in some_of(FAULTS, str(step)):
        turns = Turns.of(fault, str(step), truth.calls)
        for wrong in wrong_outcomes(play, step, fault, truth, turns=turns, cold=cold):
            yield f"{step}: {fault}: {wrong}"


def _fail_with(wrong: Iterator[str]) -> None:
    if told := list(wrong):
        pytest.fail("\n".join([*told, repeat_with()]), pytrace=False)


def undisturbed(play: Play, step: Step, *, cold: bool = False) -> Truth:
    """The result of a request without faults."""
    with staged(play, cold=cold) as stage:
        before = stage.contents()
        stage.saboteur.arm(0, None)
        answer = send(step, stage.sabotaged)
        calls = tuple(stage.saboteur.calls)
        assert answer.status < 500
        assert stage.faults() == []
        return Truth(before, stage.contents(), answer, calls)


def wrong_outcomes(
    play: Play,
    step: Step,
    fault: Fault,
    truth: Truth,
    *,
    turns: Turns = EVERY_CALL,
    cold: bool = False,
) -> Iterator[str]:
    """The faults, call by call. A worker continues with the next call until something is committed;
    the last request shows that it still works."""
    struck: set[str] = set()
    nth, is_over = turns.first, False
    while not is_over:
        with staged(play, cold=cold) as stage:
            seal = stage.seal()
            while stage.seal() == seal and not is_over:
                answer, call = broken(stage, step, nth, fault)
                is_over = call is None or nth > CALLS_MAX
                if call is not None:
                    struck.add(call)
                    if verdict := _judge(stage, truth, answer, fault):
                        yield f"call {nth}, {call!r}: {verdict}"
                    nth += turns.step
                elif answer != truth.answer:
                    yield f"after call {nth - turns.step}: {answer} instead of {truth.answer}"
            if verdict := _sequel(stage):
                yield f"after call {nth - turns.step}: {verdict}"
    if nth > CALLS_MAX:
        yield "no end"
    assert struck, "no call was made to fail"
    yield from _wrong_in_what_is_left(play, step, fault, truth, struck, turns, cold=cold)


def _wrong_in_what_is_left(
    play: Play,
    step: Step,
    fault: Fault,
    truth: Truth,
    struck: set[str],
    turns: Turns,
    *,
    cold: bool,
) -> Iterator[str]:
    """As before, for the calls that were skipped: a worker that has met a fault opens a new
    connection, so its n-th call differs from that of an undisturbed worker."""
    calls = [in_short(call) for call in truth.calls if fault.strikes.admits(call)]
    for place, call in enumerate(calls, start=1):
        if call not in struck and turns.have(place):
            with staged(play, cold=cold) as stage:
                answer, hit = broken(stage, step, place, fault)
                struck.add(call)
                if hit != call:
                    yield f"call {place} was {hit!r} instead of {call!r}"
                if verdict := _judge(stage, truth, answer, fault) or _sequel(stage):
                    yield f"call {place}, {call!r}: {verdict}"


def _judge(stage: Stage, truth: Truth, answer: Answer, fault: Fault) -> str | None:
    """The fault of this response and this state, or None."""
    found = stage.contents()
    if found not in (truth.before, truth.after):
        return f"{answer}, and left something between:\n{difference(found, truth.before)}"
    if answer != truth.answer and not answer.unavailable:
        return f"{answer} instead of {truth.answer}"
    if answer == truth.answer and found != truth.after:
        return f"{answer}, and it did not happen"
    if answer.unavailable and found != truth.before and not _stays_unknown(fault):
        return "503, and it happened"
    if answer.unavailable and fault.transient and _was_writing(stage):
        return "503 where once more would have done"
    return None


def _stays_unknown(fault: Fault) -> bool:
    """Whether the outcome of a commit cannot be determined."""
    return fault.reach is Reach.DATABASE and fault.happens is Happens.FULLY


def _was_writing(stage: Stage) -> bool:
    """Whether the fault came after a writing transaction had begun, or while it began.

    A read does not wait for locks.
    """
    saboteur = stage.saboteur
    return saboteur.struck != OPEN and "BEGIN IMMEDIATE" in saboteur.calls


def _sequel(stage: Stage) -> str | None:
    """The fault of the worker afterwards, or None: it must work like a new one."""
    later = send(LATER, stage.sabotaged)
    if later.status != 201:
        return f"the next write was answered {later}"
    if faults := stage.faults():
        return f"the next write has been made, and {faults}"
    return None
