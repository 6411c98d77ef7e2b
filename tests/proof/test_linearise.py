# SPDX-License-Identifier: Apache-2.0
"""The search for an order compared with trying every order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations, permutations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.effort import scaled
from tests.proof.linearise import Event, Found, linearise, orders

#: A register of one small number: what an event writes there, and what it must find.
Cell = Event[int, str]


def writes(span: tuple[int, int], *, seen: int | None, value: int, optional: bool = False) -> Cell:
    """Writes `value`, if it finds `seen` or does not check."""

    def apply(state: int) -> int | None:
        return value if seen in (None, state) else None

    return Event(*span, f"{seen} -> {value}", apply, optional=optional)


def reads(span: tuple[int, int], value: int) -> Cell:
    """Finds `value`."""

    def apply(state: int) -> int | None:
        return state if state == value else None

    return Event(*span, f"is {value}", apply, changes=False)


def reads_half(span: tuple[int, int], half: int) -> Cell:
    """Finds a part of several values."""

    def apply(state: int) -> int | None:
        return state if state // 2 == half else None

    return Event(*span, f"half is {half}", apply, changes=False)


spans = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda pair: (min(pair), max(pair)))
values = st.integers(0, 2)
events = st.lists(
    st.builds(writes, spans, seen=st.none() | values, value=values, optional=st.booleans())
    | st.builds(reads, spans, values)
    | st.builds(reads_half, spans, st.integers(0, 1)),
    max_size=5,
)


def by_brute_force(given_events: Sequence[Cell]) -> bool:
    """Whether some order of all required events, and of some optional ones, is right."""
    musts = [event for event in given_events if not event.optional]
    mays = [event for event in given_events if event.optional]
    chosen = chain.from_iterable(combinations(mays, n) for n in range(len(mays) + 1))
    return any(
        keeps_time(order) and ends_well(order)
        for some in chosen
        for order in permutations([*musts, *some])
    )


def keeps_time(order: Sequence[Cell]) -> bool:
    """Whether no event comes after one that began only after its end."""
    return not any(later.end < earlier.begin for earlier, later in combinations(order, 2))


def ends_well(order: Sequence[Cell]) -> bool:
    """Whether each event is possible at its place."""
    state: int | None = 0
    for event in order:
        if state is not None:
            state = event.apply(state)
    return state is not None


#: What may have happened, and then did, before a look that could not tell.
LATE_PROOF = [
    writes((0, 1), seen=None, value=0),
    writes((2, 3), seen=0, value=1, optional=True),
    reads_half((4, 5), 0),
    reads((6, 7), 1),
]


@given(events)
@example(LATE_PROOF)
@settings(max_examples=scaled(200))
def test_an_order_is_found_where_there_is_one(given_events: list[Cell]) -> None:
    """No order is invented or missed, and the result is right."""
    outcome = linearise(given_events, 0)
    assert isinstance(outcome, Found) == by_brute_force(given_events)
    if isinstance(outcome, Found):
        assert keeps_time(outcome.order)
        assert ends_well(outcome.order)
        assert {id(event) for event in given_events if not event.optional} <= {
            id(event) for event in outcome.order
        }


@given(events)
@settings(max_examples=scaled(100))
def test_every_order_of_the_changes_can_be_had(given_events: list[Cell]) -> None:
    """All those that brute force finds, compared by their changes."""
    found = {changes_of(order.order) for order in orders(given_events, 0, most=10_000)}
    assert found == orders_by_brute_force(given_events)


def orders_by_brute_force(given_events: Sequence[Cell]) -> set[tuple[int, ...]]:
    """The changes of every valid order, as positions in the given list."""
    musts = [event for event in given_events if not event.optional]
    mays = [event for event in given_events if event.optional]
    chosen = chain.from_iterable(combinations(mays, n) for n in range(len(mays) + 1))
    return {
        changes_of(order)
        for some in chosen
        for order in permutations([*musts, *some])
        if keeps_time(order) and ends_well(order)
    }


def changes_of(order: Sequence[Cell]) -> tuple[int, ...]:
    """The changes, in order."""
    return tuple(id(event) for event in order if event.changes)
