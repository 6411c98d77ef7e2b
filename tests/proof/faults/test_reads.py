# SPDX-License-Identifier: Apache-2.0
"""Whatever call of a read fails, the answer is the present state or 503, and the next one is well.

Another worker has changed everything just before, so that an answer from memory would be stale.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.proof.faults.driver import FAULTS, Fault
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
from tests.proof.faults.stage import Answer, Play, Stage, send, staged

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


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("request_", READS, ids=str)
def test_a_read_is_true_or_says_that_it_cannot_be_had(
    play: Play, request_: Request, fault: Fault
) -> None:
    """The n-th call fails, for every n."""
    before, due = undisturbed(play, request_)
    assert before != due, "a stale answer would not be noticed"
    wrong = list(_wrong_answers(play, request_, fault, due))
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def _wrong_answers(play: Play, request: Request, fault: Fault, due: Answer) -> Iterator[str]:
    """What is wrong, call by call. A worker goes on to the next call until it has answered: from
    then on it knows what the other has changed."""
    nth = 1
    while nth < CALLS_MAX:
        with staged(play) as stage:
            change_meanwhile(stage)
            answer: Answer | None = None
            struck: str | None = ""
            while (answer is None or answer.unavailable) and struck is not None:
                stage.saboteur.arm(nth, fault)
                answer = send(request, stage.sabotaged)
                stage.saboteur.disarm()
                struck = stage.saboteur.struck
                if answer != due and not (struck and answer.unavailable):
                    yield f"call {nth}, {struck!r}: {answer} instead of {due}"
                nth += 1
            if (again := send(request, stage.sabotaged)) != due:
                yield f"after call {nth - 1}: the next one was answered {again}"
            if faults := stage.faults():
                yield f"after call {nth - 1}: {faults}"
            if struck is None:
                assert nth > 2, "no call was made to fail"
                return
    yield "no end"


def undisturbed(play: Play, request: Request) -> tuple[Answer, Answer]:
    """The answer before the other worker's changes, and after them."""
    with staged(play) as stage:
        before = send(request, stage.sabotaged)
        change_meanwhile(stage)
        after = send(request, stage.sabotaged)
        assert after.status == 200 or after.status == 204
        return before, after


def change_meanwhile(stage: Stage) -> None:
    """Let the other worker change everything."""
    for request in MEANWHILE:
        assert send(request, stage.other).status < 300, request.name
