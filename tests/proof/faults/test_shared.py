# SPDX-License-Identifier: Apache-2.0
"""Writes that share a transaction: whichever call fails, each of them took place completely or not
at all, and each response is true.

Source: commit-rules.md, rules 6 and 7, and "What batching is worth".
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from compare.script.step import Step, request, uid
from tests.e2e.serving import PATIENCE
from tests.effort import repeat_with
from tests.proof.faults.driver import (
    EVERY_CALL,
    FAULTS,
    Fault,
    Happens,
    Reach,
    Strikes,
    Turns,
)
from tests.proof.faults.requests import at, claim
from tests.proof.faults.stage import Answer, Play, Stage, Worker, send, staged

#: More calls than they make together: a loop that gets there would never end.
CALLS_MAX = 300


@dataclass(frozen=True, slots=True)
class Part:
    """One of the writes, and a read that shows whether it took place."""

    write: Step
    look: Step


#: In the order in which they come; none of them touches what another is looked at by: a claim, one
#: that does not fit, a release, and a move.
PARTS = [
    Part(claim("new", {"spare": 2}, seen=None), at("new")),
    Part(claim("first", {"spare": 9}, seen=1), at("first")),
    Part(request("DELETE", f"/allocations/{uid('second')}"), at("second")),
    Part(claim("third", {"spare": 6}, seen=1), at("third")),
]

#: Every statement in the two ways that end the transaction of all; what else can happen, where a
#: transaction begins, ends and is divided.
TRIED = [
    fault
    for fault in FAULTS
    if fault.strikes is Strikes.CONTROL
    or fault.name in ("disk full, rolled back", "connection closed")
]


def test_they_do_share_one(play: Play) -> None:
    """Otherwise the other tests would show nothing."""
    with staged(play) as stage:
        stage.saboteur.arm(0, None)
        answers = send_together(stage.sabotaged, [part.write for part in PARTS])
        calls = [call.split()[0] for call in stage.saboteur.calls]
        assert [answer.status for answer in answers] == [204, 409, 204, 204]
        assert (calls.count("BEGIN"), calls.count("SAVEPOINT"), calls.count("COMMIT")) == (1, 3, 1)


@pytest.mark.parametrize("fault", TRIED, ids=str)
def test_each_of_them_happens_wholly_or_not_at_all(play: Play, fault: Fault) -> None:
    """The n-th call fails, for each n of this run."""
    turns = Turns.of(fault, "several", calls_together(play))
    wrong = list(wrong_outcomes(play, fault, turns=turns))
    if wrong:
        pytest.fail("\n".join([*wrong, repeat_with()]), pytrace=False)


def wrong_outcomes(play: Play, fault: Fault, *, turns: Turns = EVERY_CALL) -> Iterator[str]:
    """The faults, call by call."""
    due, before, after = undisturbed(play)
    for nth in range(turns.first, CALLS_MAX, turns.step):
        with staged(play) as stage:
            stage.saboteur.arm(nth, fault)
            answers = send_together(stage.sabotaged, [part.write for part in PARTS])
            stage.saboteur.disarm()
            struck = stage.saboteur.struck
            found = sights(stage)
            for place, part in enumerate(PARTS):
                verdict = _judge(
                    fault, answers[place], due[place], found[place], before[place], after[place]
                )
                if verdict:
                    yield f"call {nth}, {struck!r}: {part.write}: {verdict}"
            if faults := stage.faults():
                yield f"call {nth}, {struck!r}: {faults}"
            if struck is None:
                assert nth > len(PARTS), "no call was made to fail"
                if answers != due:
                    yield f"in the end: {answers} instead of {due}"
                return
    yield "no end"


def _judge(
    fault: Fault, answer: Answer, due: Answer, found: object, before: object, after: object
) -> str | None:
    """The fault of this response and this state, or None."""
    if found not in (before, after):
        return f"{answer}, and left something between: {found}"
    if not answer.unavailable:
        return None if (answer, found) == (due, after) else f"{answer}, and there is {found}"
    if fault.transient:
        return "503 where once more would have done"
    stays_unknown = fault.reach is Reach.DATABASE and fault.happens is Happens.FULLY
    return None if found == before or stays_unknown else "503, and it happened"


def undisturbed(play: Play) -> tuple[list[Answer], list[object], list[object]]:
    """The responses without faults, and what the reads show before and after."""
    with staged(play) as stage:
        before = sights(stage)
        return send_together(stage.sabotaged, [part.write for part in PARTS]), before, sights(stage)


def calls_together(play: Play) -> list[str]:
    """The number of calls without faults."""
    with staged(play) as stage:
        stage.saboteur.arm(0, None)
        send_together(stage.sabotaged, [part.write for part in PARTS])
        return stage.saboteur.calls


def sights(stage: Stage) -> list[object]:
    """What another worker sees of each part, without the generations of providers."""
    return [_without_generations(send(part.look, stage.other).body) for part in PARTS]


def _without_generations(body: object) -> object:
    if isinstance(body, dict):
        return {
            key: _without_generations(value) for key, value in body.items() if key != "generation"
        }
    return body


def send_together(worker: Worker, steps: Sequence[Step]) -> list[Answer]:
    """Send requests that all wait for the same transaction, in this order."""
    queue = worker.database._writes
    # As if somebody were about to commit, and then handed over to the first of them.
    queue._is_led = True
    with ThreadPoolExecutor(len(steps)) as pool:
        asked: list[Future[Answer]] = []
        for step in steps:
            asked.append(pool.submit(send, step, worker))
            deadline = time.monotonic() + PATIENCE
            while len(queue._waiting) < sum(not future.done() for future in asked):
                assert time.monotonic() < deadline, f"{step} neither waits nor ends"
                time.sleep(0)
        if queue._waiting:
            queue._waiting[0].wake()
        return [future.result() for future in asked]
