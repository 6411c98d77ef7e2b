# SPDX-License-Identifier: Apache-2.0
"""Tests of the checker: valid histories pass, and each kind of fault is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.effort import scaled
from tests.proof.checker import _Check, _Known, check
from tests.proof.history import History, Operation, Refusal, Why
from tests.proof.told import (
    Simulation,
    claim,
    consumer_moved,
    history,
    no_room,
    provider_moved,
    release,
    sees_consumer,
    sees_offer,
    sees_provider,
    stock,
    uuid,
)

RIGHT = {
    "one after the other": history(
        claim((0, 1), {"c1": (None, "a1:5")}),
        claim((2, 3), {"c2": (None, "a1:5")}, no_room("a1")),
        sees_provider((4, 5), "a1", 2, used=5, capacity=8),
        release((6, 7), "c1"),
        claim((8, 9), {"c2": (None, "a1:5")}),
        sees_provider((10, 11), "a1", 3, used=5),
    ),
    "a refusal while the one in the way is still on its way": history(
        claim((0, 10), {"c1": (None, "a1:5")}),
        claim((0, 3), {"c2": (None, "a1:5")}, no_room("a1")),
    ),
    "a race for a consumer that somebody else won": history(
        claim((0, 10), {"c1": (None, "a1:2")}),
        claim((0, 10), {"c1": (None, "a1:3"), "c2": (None, "a1:1")}, Refusal(Why.CONSUMER_RACE)),
        release((11, 15), "c1"),
        release((12, 16), "c1", Refusal(Why.CONSUMER_RACE)),
    ),
    "a look between two claims at once": history(
        claim((0, 10), {"c1": (None, "a1:2")}),
        claim((0, 10), {"c2": (None, "a1:3")}),
        sees_provider((4, 5), "a1", 2, used=3),
        sees_provider((11, 12), "a1", 3, used=5),
    ),
    "over capacity only because it was shrunk, and moving away is let through": history(
        claim((0, 1), {"c1": (None, "a1:4"), "c2": (None, "a1:4")}),
        stock((2, 3), "a1", 2, capacity=4, answered=3),
        claim((4, 5), {"c1": (1, "a1:3")}),
        sees_provider((6, 7), "a1", 4, used=7, capacity=4),
    ),
    "offered for what is free, and not for more": history(
        claim((0, 1), {"c1": (None, "a1:5")}),
        sees_offer((2, 3), "a1", 3, offered=True),
        sees_offer((2, 3), "a1", 4, offered=False),
        sees_offer((2, 3), "a9", 1, offered=False),
    ),
    "two consumers that swap": history(
        claim((0, 1), {"c1": (None, "a1:8")}),
        claim((0, 1), {"c2": (None, "a2:8")}),
        claim((2, 3), {"c1": (1, "a2:8"), "c2": (1, "a1:8")}),
        sees_consumer((4, 5), "c1", 2, "a2:8"),
        sees_provider((4, 5), "a1", 3, used=8),
    ),
    "no answer, and it happened": history(
        claim((0, None), {"c1": (None, "a1:5")}),
        sees_consumer((2, 3), "c1", 1, "a1:5"),
        sees_provider((2, 3), "a1", 2, used=5),
    ),
    "no answer, and it did not happen": history(
        claim((0, None), {"c1": (None, "a1:5")}),
        sees_consumer((2, 3), "c1", None),
        claim((4, 5), {"c1": (None, "a1:8")}),
        sees_provider((6, 7), "a1", 2, used=8),
    ),
    "no answer, and it happened after the client had looked": history(
        claim((0, None), {"c1": (None, "a1:5")}),
        sees_consumer((2, 3), "c1", None),
        sees_consumer((4, 5), "c1", 1, "a1:5"),
        sees_provider((4, 5), "a1", 2, used=5),
    ),
    "no answer, and a refusal that was right before it and is right after it": history(
        claim((0, 1), {"c2": (None, "a2:1")}),
        claim((0, 1), {"c1": (None, "a1:1")}),
        claim((2, None), {"c1": (1, "a2:1"), "c2": (1, "a1:1")}),
        claim((3, 4), {"c1": (2, "a1:2")}),
        claim((5, 6), {"c2": (9, "a1:1")}, consumer_moved("c2")),
        sees_consumer((7, 8), "c2", 2, "a1:1"),
    ),
    "an inventory without an answer that shows in what fits": history(
        claim((0, 1), {"c1": (None, "a1:4")}),
        stock((2, None), "a1", 2, capacity=4),
        claim((4, 5), {"c2": (None, "a1:1")}, no_room("a1")),
        sees_provider((6, 7), "a1", 3, used=4, capacity=4),
    ),
    "a consumer that goes and comes begins anew": history(
        claim((0, 1), {"c1": (None, "a1:1")}),
        claim((2, 3), {"c1": (1, "a1:2")}),
        release((4, 5), "c1"),
        release((6, 7), "c1", Refusal(Why.ABSENT)),
        claim((8, 9), {"c1": (None, "a1:3")}),
        sees_consumer((10, 11), "c1", 1, "a1:3"),
        sees_provider((10, 11), "a1", 4, used=3),
    ),
}

WRONG = {
    "a doubled claim": history(
        claim((0, 1), {"c1": (None, "a1:2")}),
        claim((2, 3), {"c1": (None, "a1:2")}),
    ),
    "a claim that was acknowledged once and counted twice": history(
        claim((0, 1), {"c1": (None, "a1:2")}),
        sees_provider((2, 3), "a1", 3, used=4),
    ),
    "an acknowledged claim that is lost": history(
        claim((0, 1), {"c1": (None, "a1:2")}),
        sees_consumer((2, 3), "c1", None),
    ),
    "an acknowledged claim that the provider does not know": history(
        claim((0, 1), {"c1": (None, "a1:2")}),
        sees_consumer((2, 3), "c1", 1, "a1:2"),
        sees_provider((2, 3), "a1", 1, used=0),
    ),
    "a refused claim that is there": history(
        claim((0, 1), {"c1": (None, "a1:9")}, no_room("a1")),
        sees_consumer((2, 3), "c1", 1, "a1:9"),
    ),
    "a stale read of a consumer": history(
        claim((0, 1), {"c1": (None, "a1:2")}),
        claim((2, 3), {"c1": (1, "a1:3")}),
        sees_consumer((4, 5), "c1", 1, "a1:2"),
    ),
    "a stale read of usage": history(
        claim((0, 1), {"c1": (None, "a1:2")}),
        sees_provider((2, 3), "a1", used=0),
    ),
    "an offer of what has been taken": history(
        claim((0, 1), {"c1": (None, "a1:5")}),
        sees_offer((2, 3), "a1", 4, offered=True),
    ),
    "what has come free is not offered": history(
        claim((0, 1), {"c1": (None, "a1:5")}),
        release((2, 3), "c1"),
        sees_offer((4, 5), "a1", 4, offered=False),
    ),
    "a generation that went backwards": history(
        claim((0, 5), {"c1": (None, "a1:2")}),
        sees_provider((1, 2), "a1", 2),
        sees_provider((3, 4), "a1", 1),
    ),
    "two inventories accepted on one generation": history(
        stock((0, 5), "a1", 1, capacity=6),
        stock((0, 5), "a1", 1, capacity=7),
    ),
    "an inventory that was written over unseen": history(
        claim((0, 1), {"c1": (None, "a1:2")}),
        stock((2, 3), "a1", 1, capacity=6),
    ),
    "an answer that tells a generation which it is not": history(
        stock((0, 1), "a1", 1, capacity=6, answered=3),
    ),
    "two claims accepted on one generation of a consumer": history(
        claim((0, 1), {"c1": (None, "a1:1")}),
        claim((2, 6), {"c1": (1, "a1:2")}),
        claim((2, 6), {"c1": (1, "a1:3")}),
    ),
    "a refusal that never could have been justified": history(
        claim((0, 1), {"c1": (None, "a1:5")}),
        claim((2, 3), {"c2": (None, "a1:3")}, no_room("a1")),
    ),
    "a refusal for a generation that was right": history(
        stock((0, 1), "a1", 1, capacity=5, refused=provider_moved("a1")),
    ),
    "a refusal for a consumer's generation that was right": history(
        claim((0, 1), {"c1": (None, "a1:1")}, consumer_moved("c1")),
    ),
    "a race for a consumer that nobody else wrote meanwhile": history(
        claim((0, 1), {"c1": (None, "a1:1")}),
        claim((0, 4), {"c2": (None, "a1:1")}),
        release((2, 3), "c1", Refusal(Why.CONSUMER_RACE)),
    ),
    "more held than there is": history(
        claim((0, 9), {"c1": (None, "a1:5")}),
        claim((0, 9), {"c2": (None, "a1:5")}),
    ),
    "more held than there was left after it shrank": history(
        stock((0, 1), "a1", 1, capacity=4),
        claim((2, 3), {"c1": (None, "a1:5")}),
    ),
    "one half of a swap": history(
        claim((0, 1), {"c1": (None, "a1:8")}),
        claim((0, 1), {"c2": (None, "a2:8")}),
        claim((2, 3), {"c1": (1, "a2:8"), "c2": (1, "a1:8")}),
        sees_consumer((4, 5), "c1", 2, "a2:8"),
        sees_consumer((4, 5), "c2", 1, "a2:8"),
    ),
    "one half of a swap without an answer": history(
        claim((0, 1), {"c1": (None, "a1:8")}),
        claim((0, 1), {"c2": (None, "a2:8")}),
        claim((2, None), {"c1": (1, "a2:8"), "c2": (1, "a1:8")}),
        sees_consumer((4, 5), "c1", 2, "a2:8"),
        sees_consumer((6, 7), "c2", 1, "a2:8"),
    ),
    "one provider of a claim without an answer": history(
        claim((0, None), {"c1": (None, "a1:2 a2:2")}),
        sees_consumer((2, 3), "c1", 1, "a1:2 a2:2"),
        sees_provider((4, 5), "a1", 2, used=2),
        sees_provider((4, 5), "a2", 1, used=0),
    ),
    "one half of a claim without an answer, and the other later": history(
        claim((0, 1), {"c1": (None, "a1:1")}),
        claim((0, 1), {"c2": (None, "a2:1")}),
        claim((2, None), {"c1": (1, "a2:1"), "c2": (1, "a1:1")}),
        sees_consumer((3, 4), "c1", 2, "a2:1"),
        sees_consumer((5, 6), "c2", 1, "a2:1"),
        sees_consumer((7, 8), "c2", 2, "a1:1"),
    ),
    "half of what one consumer asked for": history(
        claim((0, 1), {"c1": (None, "a1:2 a2:2")}),
        sees_consumer((2, 3), "c1", 1, "a1:2"),
    ),
}


@pytest.mark.parametrize("told", RIGHT.values(), ids=RIGHT.keys())
def test_a_right_history_is_accepted(told: History) -> None:
    """If there is an order in which every response is right, there is no fault."""
    verdict = check(told)
    assert not verdict.faults, str(verdict)
    assert not verdict.undecided


@pytest.mark.parametrize("told", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_history_is_found_out(told: History) -> None:
    """If there is no such order, the story names the object and the impossible event."""
    verdict = check(told)
    assert verdict.faults
    assert "There is no order in which" in str(verdict)


def test_the_story_is_short_and_names_what_cannot_be() -> None:
    """Only the preceding events, in milliseconds, and the reason for each event that could not come
    next."""
    told = history(
        *(claim((n, n + 1), {f"c{n}": (None, "a2:1")}) for n in range(6)),
        claim((10, 11), {"c9": (None, "a1:5")}),
        sees_provider((12, 13), "a1", 2, used=0),
    )
    (fault,) = check(told).faults
    assert "a2" not in str(fault)
    assert "a1 is then at generation 2, used VCPU 5/8" in str(fault)
    assert "it showed generation 2, used {'VCPU': 0}" in str(fault)


SEEDS = st.integers(min_value=0, max_value=2**32)


@given(SEEDS)
@settings(max_examples=scaled(100))
def test_what_a_plain_model_did_is_accepted(seed: int) -> None:
    """However its clients overlapped, and whichever responses were lost."""
    simulation = Simulation(seed, steps=60, lost=0.1)
    verdict = check(history(*simulation.operations, *simulation.end()))
    assert not verdict.faults, str(verdict)


def lose(simulation: Simulation) -> list[Operation]:
    """Allocations are missing at the end."""
    del simulation.model.consumers[uuid(simulation.holders()[0])]
    return [*simulation.operations, *simulation.end()]


def miscount(simulation: Simulation) -> list[Operation]:
    """A generation is incremented once too often."""
    simulation.model.providers[uuid("a1")].generation += 1
    return [*simulation.operations, *simulation.end()]


def double(simulation: Simulation) -> list[Operation]:
    """A claim is accepted as new although the consumer exists."""
    again = claim((10_000, 10_001), {simulation.holders()[0]: (None, "a1:1")})
    return [*simulation.operations, *simulation.end(), again]


def overdraw(simulation: Simulation) -> list[Operation]:
    """A claim is accepted for more than any inventory of the histories has."""
    return [*simulation.operations, claim((0, 10_000), {"c7": (None, "a1:1000")})]


def refuse(simulation: Simulation) -> list[Operation]:
    """A small claim at the end is refused, although it fits."""
    if (free := simulation.free("a1")) < 1:
        return double(simulation)
    late = claim((10_000, 10_001), {"c7": (None, f"a1:{free}")}, no_room("a1"))
    return [*simulation.operations, *simulation.end(), late]


def look_back(simulation: Simulation) -> list[Operation]:
    """A read at the end returns the initial state."""
    late = sees_provider((10_000, 10_001), "a1", 1)
    return [*simulation.operations, *simulation.end(), late]


#: Each with how many answers may be lost: a write without an answer, which may come true at the
#: very end, explains some of them, but never the last ones.
MUTATIONS: list[tuple[Callable[[Simulation], list[Operation]], float]] = [
    (lose, 0.0),
    (miscount, 0.0),
    (refuse, 0.0),
    (double, 0.0),
    (overdraw, 0.1),
    (look_back, 0.1),
]


@pytest.mark.parametrize(("mutate", "lost"), MUTATIONS)
@given(seed=SEEDS)
@settings(max_examples=scaled(25))
def test_what_a_plain_model_did_not_do_is_found_out(
    mutate: Callable[[Simulation], list[Operation]], lost: float, seed: int
) -> None:
    """Each history of the model with one such fault in it."""
    simulation = Simulation(seed, steps=60, lost=lost)
    assume(simulation.holders() and simulation.generation("a1") > 1)
    assert check(history(*mutate(simulation))).faults


@pytest.mark.parametrize(("mutate", "lost"), MUTATIONS)
@given(seed=SEEDS)
@settings(max_examples=scaled(15))
def test_a_provider_is_judged_alone_as_with_all_others(
    mutate: Callable[[Simulation], list[Operation]], lost: float, seed: int
) -> None:
    """So that unexplained objects can be checked without all others."""
    simulation = Simulation(seed, steps=60, lost=lost)
    assume(simulation.holders() and simulation.generation("a1") > 1)
    known = _Known(history(*mutate(simulation)))
    whole = _Check(known, {}).run().unexplained
    providers = known.of_provider.keys()
    for provider in providers:
        alone = _Check(known, {}).run(only={provider}).unexplained
        assert alone == whole - (providers - {provider})
