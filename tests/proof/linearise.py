# SPDX-License-Identifier: Apache-2.0
"""Finds an order of overlapping events in which each of them is right (the search of Wing and Gong,
with Lowe's cache of visited states).

An event has a begin and an end, and takes effect at one moment in between. `apply` returns the
state after it, or None if it is impossible. An optional event may never take effect.

Events that change nothing are taken as soon as they are right: this cannot make later events
impossible, except optional events that must come before them or never. So the search branches
mostly over changes, and is fast if few of them overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, TypeVar

#: So many of the last changes are told when there is no order.
_TOLD: Final = 12

S = TypeVar("S", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Event(Generic[S, T]):
    """An event with an effect at a moment between its begin and its end, or, if it is optional,
    perhaps none; `what` belongs to the caller."""

    begin: int
    end: int
    what: T
    apply: Callable[[S], S | None]
    changes: bool = True
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Found(Generic[S, T]):
    """An order in which everything is right."""

    order: tuple[Event[S, T], ...]
    #: The state after each of them.
    states: tuple[S, ...]


@dataclass(frozen=True, slots=True)
class Stuck(Generic[S, T]):
    """There is none: the end of the longest valid begin, and the events that could not follow
    it."""

    order: tuple[Event[S, T], ...]
    state: S
    waiting: tuple[Event[S, T], ...]


@dataclass(frozen=True, slots=True)
class Undecided:
    """The search took too many steps."""


@dataclass(slots=True)
class _Node(Generic[S, T]):
    """A state of the search: the events taken so far, and those to try next."""

    taken: tuple[Event[S, T], ...]
    states: tuple[S, ...]
    base: int
    done: int
    optional_done: int
    branches: Iterator[tuple[int, bool, S]]


def linearise(
    events: Sequence[Event[S, T]], state: S, *, steps_max: int = 200_000
) -> Found[S, T] | Stuck[S, T] | Undecided:
    """Search for an order of the events, from an initial state."""
    return _Search(events, steps_max).run(state)


def orders(
    events: Sequence[Event[S, T]], state: S, *, most: int, steps_max: int = 20_000
) -> list[Found[S, T]]:
    """Up to `most` different orders of the changes in which everything is right."""
    found = _Search(events, steps_max, every=True).found(state)
    return list(islice(_told_apart(found), most))


def _told_apart(found: Iterable[Found[S, T]]) -> Iterator[Found[S, T]]:
    """The orders without those that differ only in events that change nothing."""
    known: set[tuple[int, ...]] = set()
    for one in found:
        changes = tuple(id(event) for event in one.order if event.changes)
        if changes not in known:
            known.add(changes)
            yield one


class _Search(Generic[S, T]):
    """The search. Required events are numbered by their begin; those before `base` are all taken,
    and bit n of `done` stands for event `base + n`."""

    def __init__(
        self, events: Sequence[Event[S, T]], steps_max: int, *, every: bool = False
    ) -> None:
        in_order = sorted(events, key=lambda event: event.begin)
        self.events = [event for event in in_order if not event.optional]
        self.optional = [event for event in in_order if event.optional]
        self.steps_left = steps_max
        #: Two ways to one place are the same, unless every order is wanted.
        self.every = every
        #: By place and state, which optional events were taken on the ways to it: who comes with
        #: all of those taken, or more, can go on in no way that was not tried.
        self.visited: dict[tuple[Hashable, ...], list[int]] = {}
        self.best: tuple[int, list[_Node[S, T]], S, int, int] | None = None

    def run(self, state: S) -> Found[S, T] | Stuck[S, T] | Undecided:
        """The first order found."""
        found = next(self.found(state), None)
        if found is not None:
            return found
        return Undecided() if self.steps_left < 0 else self._stuck(state)

    def found(self, state: S) -> Iterator[Found[S, T]]:
        """Depth first, with a stack of its own: histories are longer than Python's."""
        node: _Node[S, T] | None
        node, state = self._settled((), (), 0, 0, 0, state)
        stack: list[_Node[S, T]] = [node]
        while stack:
            if node is not None and node.base == len(self.events):
                yield self._found(stack)
            node = None
            step = next(stack[-1].branches, None)
            if step is None:
                stack.pop()
                continue
            self.steps_left -= 1
            if self.steps_left < 0:
                return
            node = self._follow(stack[-1], *step)
            if node is not None:
                stack.append(node)
                self._remember_best(stack)

    def _follow(
        self, node: _Node[S, T], place: int, optional: bool, state: S
    ) -> _Node[S, T] | None:
        done, optional_done = node.done, node.optional_done
        if optional:
            optional_done |= 1 << place
            event = self.optional[place]
        else:
            done |= 1 << (place - node.base)
            event = self.events[place]
        following, state = self._settled((event,), (state,), node.base, done, optional_done, state)
        if not self.every:
            spent = self.visited.setdefault((following.base, following.done, state), [])
            if any(before & ~following.optional_done == 0 for before in spent):
                return None
            spent.append(following.optional_done)
        return following

    def _settled(
        self,
        taken: tuple[Event[S, T], ...],
        states: tuple[S, ...],
        base: int,
        done: int,
        optional_done: int,
        state: S,
    ) -> tuple[_Node[S, T], S]:
        """A node after taking every event that changes nothing and is right."""
        seen: list[Event[S, T]] = list(taken)
        at: list[S] = list(states)
        more = True
        while more:
            more = False
            for place in self._open(base, done):
                event = self.events[place]
                if (
                    not event.changes
                    and event.apply(state) is not None
                    and not self._cuts_off(event, base, done, optional_done)
                ):
                    done |= 1 << (place - base)
                    seen.append(event)
                    at.append(state)
                    more = True
            while done & 1:
                done >>= 1
                base += 1
        branches = self._branches(base, done, optional_done, state)
        return _Node(tuple(seen), tuple(at), base, done, optional_done, branches), state

    def _cuts_off(self, event: Event[S, T], base: int, done: int, optional_done: int) -> bool:
        """Whether this event makes an optional event impossible that is still possible now."""
        last_begin = self._last_begin(base, done, optional_done)
        return any(
            last_begin <= other.end < event.begin and not optional_done >> place & 1
            for place, other in enumerate(self.optional)
        )

    def _open(self, base: int, done: int) -> list[int]:
        """The events that may be next: no remaining one has ended before their begin."""
        found: list[int] = []
        first_end: int | None = None
        for place in range(base, len(self.events)):
            event = self.events[place]
            if first_end is not None and event.begin > first_end:
                break
            if not done >> (place - base) & 1:
                found.append(place)
                first_end = event.end if first_end is None else min(first_end, event.end)
        return [
            place for place in found if first_end is None or self.events[place].begin <= first_end
        ]

    def _branches(
        self, base: int, done: int, optional_done: int, state: S
    ) -> Iterator[tuple[int, bool, S]]:
        """The events that may be next and have not been tried, the most urgent first."""
        places = self._open(base, done)
        first_end = min((self.events[place].end for place in places), default=None)
        for place in sorted(places, key=lambda place: self.events[place].end):
            event = self.events[place]
            if (after := event.apply(state)) is not None:
                yield place, False, after
        last_begin = self._last_begin(base, done, optional_done)
        for place, event in enumerate(self.optional):
            if first_end is not None and event.begin > first_end:
                break
            if optional_done >> place & 1 or event.end < last_begin:
                continue
            if (after := event.apply(state)) is not None:
                yield place, True, after

    def _last_begin(self, base: int, done: int, optional_done: int) -> int:
        """The last begin of the events taken so far: the following ones had not ended by then."""
        last = base + done.bit_length() - 1
        optional = optional_done.bit_length() - 1
        return max(
            self.events[last].begin if last >= 0 else 0,
            self.optional[optional].begin if optional >= 0 else 0,
        )

    def _remember_best(self, stack: list[_Node[S, T]]) -> None:
        node = stack[-1]
        reached = node.base + node.done.bit_count()
        if self.best is None or reached > self.best[0]:
            self.best = (reached, stack[-_TOLD:], node.states[-1], node.base, node.done)

    def _found(self, stack: list[_Node[S, T]]) -> Found[S, T]:
        return Found(
            tuple(event for node in stack for event in node.taken),
            tuple(state for node in stack for state in node.states),
        )

    def _stuck(self, first: S) -> Stuck[S, T]:
        if self.best is None:
            node, state = self._settled((), (), 0, 0, 0, first)
            nodes, base, done = [node], node.base, node.done
        else:
            _, nodes, state, base, done = self.best
        order = tuple(event for node in nodes for event in node.taken)
        waiting = tuple(self.events[place] for place in self._open(base, done))
        return Stuck(order, state, waiting)
