# SPDX-License-Identifier: Apache-2.0
"""Checks that a history keeps the rules: for each consumer and provider, there must be an order of
the overlapping operations in which every response was right at its time.

This includes all guarantees: an accepted claim fitted at some moment between its begin and its end,
a refusal had its reason, no two writes were accepted for one generation, no read was older than an
earlier acknowledged write, and no acknowledged write was lost.

Consumers come first: the order of a consumer's writes gives the amounts that each of them released,
and so what it added to each provider. To make this order unique, at most one client may empty a
consumer. Each object is checked separately; that an operation is atomic follows from its effects on
all of them.

Whether an operation without a response took place follows from what was seen later. If several
explanations are possible, each is tried.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import prod
from typing import Final, NamedTuple, Protocol, TypeVar

from tests.proof.history import (
    ANY,
    NEVER,
    NOTHING_HELD,
    ConsumerSight,
    Held,
    History,
    Operation,
    Outcome,
    ProviderSight,
    Why,
    short,
)
from tests.proof.linearise import Event, Found, Stuck, Undecided, linearise, orders
from tests.proof.rules import (
    ConsumerNotWritten,
    ConsumerSeen,
    ConsumerState,
    ConsumerWritten,
    Effect,
    ProviderNotWritten,
    ProviderSeen,
    ProviderState,
    ProviderWritten,
)

#: Where what consumers show can be explained in several ways, so many are tried.
_WAYS_MAX: Final = 256

S = TypeVar("S", ConsumerState, ProviderState)


@dataclass(frozen=True, slots=True)
class Fault:
    """A violated rule: the object, and the story, which is expensive to build."""

    about: str
    tell: Callable[[], str]

    def __str__(self) -> str:
        return self.tell()


@dataclass(slots=True)
class Verdict:
    """The faults of a history, and what could not be decided."""

    faults: list[Fault] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)

    @property
    def unexplained(self) -> Set[str]:
        """The consumers and providers without a valid order."""
        return {fault.about for fault in self.faults} | set(self.undecided)

    @property
    def is_clean(self) -> bool:
        """Whether everything is explained."""
        return not self.unexplained

    def __str__(self) -> str:
        told = [str(fault) for fault in self.faults[:3]]
        if len(self.faults) > 3:
            told.append(f"and {len(self.faults) - 3} more faults")
        return "\n\n".join(told)


def check(history: History) -> Verdict:
    """Check a whole history."""
    known = _Known(history)
    first = _Check(known, {})
    verdict = first.run()
    if verdict.is_clean:
        return verdict
    ways = {
        consumer: found for consumer, found in first.possible_orders().items() if len(found) > 1
    }
    if prod(len(found) for found in ways.values()) > _WAYS_MAX:
        return _step_by_step(known, first, verdict, ways)
    for chosen in product(*ways.values()):
        given = dict(zip(ways, chosen, strict=True))
        if _Check(known, given).run(only=verdict.unexplained).is_clean:
            other = _Check(known, given).run()
            if other.is_clean:
                return other
    return verdict


def _step_by_step(
    known: _Known, first: _Check, verdict: Verdict, ways: Mapping[str, Sequence[_Way]]
) -> Verdict:
    """If there are too many combinations to try: change one order at a time, as long as each change
    leaves fewer objects unexplained.

    Checking a history of 15,000 operations takes a second, and there may be hundreds of
    combinations, so unexplained objects are checked first, alone.
    """
    chosen: dict[str, _Way] = {}
    while not verdict.is_clean:
        left = verdict.unexplained
        tries = (
            {**chosen, consumer: way}
            for consumer in _most_telling(ways, left, first)
            for way in ways[consumer]
            if chosen.get(consumer) is not way
        )
        for tried in tries:
            if len(_Check(known, tried).run(only=left).unexplained) >= len(left):
                continue
            other = _Check(known, tried).run()
            if len(other.unexplained) < len(left):
                chosen, verdict = tried, other
                break
        else:
            return Verdict(undecided=sorted(left))
    return verdict


def _most_telling(consumers: Iterable[str], unexplained: Set[str], check: _Check) -> list[str]:
    """Consumers, first those that are related to unexplained objects and to few others."""
    about = {name: check.meets(name) & unexplained for name in consumers}
    commonness = Counter(met for all_met in about.values() for met in all_met)
    rarest = {
        name: min((commonness[met] for met in met_here), default=len(about))
        for name, met_here in about.items()
    }
    return sorted(about, key=lambda name: (name not in unexplained, rarest[name], name))


class _Rule(Protocol[S]):
    def judge(self, state: S) -> S | str: ...


class _Part(NamedTuple):
    """An operation's meaning for one object."""

    operation: Operation
    rule: _Rule[ConsumerState] | _Rule[ProviderState]


#: An order of what happened to a consumer.
_Way = Found[ConsumerState, _Part]

#: What came of looking for one.
_Outcome = _Way | Stuck[ConsumerState, _Part] | Undecided

#: What consumers held before and after an operation, by consumer.
_Change = dict[str, tuple[Held, Held]]


class _Known:
    """Facts that are the same for all checks of a history."""

    def __init__(self, history: History) -> None:
        self.history = history
        #: By consumer and provider: the operations that have to do with it.
        self.of_consumer = _by_consumer(history)
        self.of_provider = _by_provider(history, self.of_consumer)
        #: The orders of consumers, by when those without an answer are known to have happened.
        self.orders: dict[tuple[str, tuple[int | None, ...]], _Outcome] = {}


class _Check:
    """One check, with a `given` order of some consumers' writes."""

    def __init__(self, known: _Known, given: Mapping[str, _Way]) -> None:
        self.known = known
        self.history = known.history
        self.given = given
        #: The providers to be judged; None: all.
        self.only: Set[str] | None = None
        self.verdict = Verdict()
        #: Operations of unknown outcome that are known to have happened, and since when at latest.
        self.happened: dict[int, int] = {}
        #: Before when they cannot have happened, for what their consumers show.
        self.earliest: dict[int, int] = {}
        #: By operation: what it changed for its consumers.
        self.changes: dict[int, _Change] = defaultdict(dict)
        #: By consumer: (generation, held, since at earliest, until at latest) one after the other.
        self.past: dict[str, list[tuple[int | None, Held, int, int]]] = {}

    def run(self, *, only: Set[str] | None = None) -> Verdict:
        """Check all consumers, and all providers or only the named ones."""
        self.only = only
        for consumer in self.known.of_consumer:
            self._check_consumer(consumer)
        self._check_whole()
        self._check_races()
        for provider, events in self._provider_events().items():
            begin = self.history.begin.get(provider)
            first = ProviderState()
            if begin is not None:
                first = ProviderState(
                    True,
                    begin.generation,
                    frozenset((name, 0) for name, _ in begin.capacities),
                    begin.capacities,
                    begin.traits,
                    begin.aggregates,
                    begin.parent,
                )
            self._order(provider, events, first)
        return self.verdict

    def possible_orders(self) -> dict[str, list[Found[ConsumerState, _Part]]]:
        """By consumer: each possible order of its writes."""
        return {
            consumer: orders(_events_of(consumer, ones, {}), ConsumerState(), most=_WAYS_MAX + 1)
            for consumer, ones in self.known.of_consumer.items()
        }

    def meets(self, consumer: str) -> Set[str]:
        """The consumers and providers that a write without a response would have changed together
        with a consumer."""
        return {
            met
            for one in self.known.of_consumer[consumer]
            if one.outcome is Outcome.UNKNOWN
            for write in one.consumers
            for met in (write.consumer, *(provider for provider, _, _ in write.held))
        }

    # --- Consumers ---

    def _check_consumer(self, consumer: str) -> None:
        order = self.given.get(consumer)
        if order is None:
            order = self._found(consumer, self._order_of_consumer(consumer))
        if order is not None:
            self._learn(consumer, order)

    def _order_of_consumer(self, consumer: str) -> _Outcome:
        operations = self.known.of_consumer[consumer]
        key = consumer, tuple(self.happened.get(id(one)) for one in operations)
        if key not in self.known.orders:
            events = _events_of(consumer, operations, self.happened)
            self.known.orders[key] = linearise(events, ConsumerState())
        return self.known.orders[key]

    def _learn(self, consumer: str, order: Found[ConsumerState, _Part]) -> None:
        """Record what each write of a consumer found and left, and which writes are unknown."""
        latest = list(_latest(order.order))
        past: list[tuple[int | None, Held, int, int]] = []
        before, since = ConsumerState(), 0
        for place, (event, after, until) in enumerate(
            zip(order.order, order.states, latest, strict=True)
        ):
            if not event.changes:
                continue
            operation = event.what.operation
            self.changes[id(operation)][consumer] = (before.held, after.held)
            if operation.outcome is Outcome.UNKNOWN:
                known = self.happened.get(id(operation), NEVER)
                self.happened[id(operation)] = min(known, until)
                known = self.earliest.get(id(operation), 0)
                self.earliest[id(operation)] = max(known, _earliest(order, place))
            past.append((before.generation, before.held, since, until))
            before, since = after, event.begin
        past.append((before.generation, before.held, since, NEVER))
        self.past[consumer] = past

    def _check_whole(self) -> None:
        """An operation happened to all of its consumers or to none."""
        again = {
            write.consumer
            for one in self.history.operations
            if id(one) in self.happened
            for write in one.consumers
            if write.consumer not in self.changes[id(one)]
        }
        for one in self.history.operations:
            if self.earliest.get(id(one), 0) > self.happened.get(id(one), NEVER):
                self._add_fault(
                    one.consumers[0].consumer,
                    "This was seen by one of its consumers too early:",
                    one,
                )
        for consumer in sorted(again):
            if consumer in self.given:
                self._add_fault(consumer, "this is not possible for others")
            else:
                self._check_consumer(consumer)

    def _check_races(self) -> None:
        """A client that lost a race for a consumer had a rival."""
        lost = [
            one
            for one in self.history.operations
            if one.refusal is not None and one.refusal.why is Why.CONSUMER_RACE
        ]
        for one in lost:
            consumers = {write.consumer for write in one.consumers}
            others = {
                id(other): other for name in consumers for other in self.known.of_consumer[name]
            }
            if not any(_is_rival(other, one, consumers) for other in others.values()):
                self._add_fault(
                    min(consumers),
                    "There is no order in which this (the first) lost a race, as nobody else wrote "
                    "its consumers meanwhile:",
                    one,
                    *others.values(),
                )

    # --- Providers ---

    def _is_judged(self, provider: str) -> bool:
        return self.only is None or provider in self.only

    def _provider_events(self) -> dict[str, list[Event[ProviderState, _Part]]]:
        events: dict[str, list[Event[ProviderState, _Part]]] = defaultdict(list)
        operations: Iterable[Operation] = self.history.operations
        if self.only is not None:
            some = {id(one) for name in self.only for one in self.known.of_provider.get(name, ())}
            operations = (one for one in operations if id(one) in some)
        for one in operations:
            for sight in one.sights:
                if isinstance(sight, ProviderSight) and self._is_judged(sight.provider):
                    rule = ProviderSeen(sight)
                    events[sight.provider].append(_event(one, rule, changes=False))
            if not one.writes:
                continue
            if one.outcome is Outcome.REFUSED:
                self._add_refusal(one, events)
            else:
                self._add_effects(one, events)
        return events

    def _add_refusal(
        self, one: Operation, events: dict[str, list[Event[ProviderState, _Part]]]
    ) -> None:
        if one.refusal is None or one.refusal.of is None or not self._is_judged(one.refusal.of):
            return
        change = self._expected_change(one)
        if change is None:
            return
        effect = _effects(one, change).get(one.refusal.of)
        if effect is not None:
            rule = ProviderNotWritten(effect, one.refusal)
            events[one.refusal.of].append(_event(one, rule, changes=False))

    def _add_effects(
        self, one: Operation, events: dict[str, list[Event[ProviderState, _Part]]]
    ) -> None:
        until, optional = one.end, False
        if one.outcome is Outcome.UNKNOWN:
            until, optional = self.happened.get(id(one), one.end), id(one) not in self.happened
        if optional and one.consumers:
            return  # the order of its consumers leaves it out: here it has not happened
        change = self.changes[id(one)]
        for provider, effect in _effects(one, change).items():
            if self._is_judged(provider) and not effect.is_nothing:
                rule = ProviderWritten(effect)
                events[provider].append(_event(one, rule, end=until, optional=optional))

    def _expected_change(self, one: Operation) -> _Change | None:
        """The change of a write that did not happen; None if that cannot be known."""
        change: _Change = {}
        for write in one.consumers:
            if write.seen == ANY:
                return None
            held = {
                held
                for generation, held, since, until in self.past.get(write.consumer, [])
                if generation == write.seen and since <= one.end and until >= one.begin
            }
            if write.seen is None:
                held = {NOTHING_HELD}
            if len(held) != 1:
                return None
            change[write.consumer] = (held.pop(), write.held)
        return change

    # --- Both ---

    def _order(
        self, about: str, events: Sequence[Event[S, _Part]], first: S
    ) -> Found[S, _Part] | None:
        return self._found(about, linearise(events, first))

    def _found(
        self, about: str, outcome: Found[S, _Part] | Stuck[S, _Part] | Undecided
    ) -> Found[S, _Part] | None:
        if isinstance(outcome, Found):
            return outcome
        if isinstance(outcome, Stuck):
            self.verdict.faults.append(Fault(about, partial(self._story, about, outcome)))
        else:
            self.verdict.undecided.append(about)
        return None

    def _add_fault(self, about: str, words: str, *operations: Operation) -> None:
        def tell() -> str:
            return "\n".join([words, self.history.story(operations)] if operations else [words])

        self.verdict.faults.append(Fault(about, tell))

    def _story(self, about: str, stuck: Stuck[S, _Part]) -> str:
        before = _distinct(event.what.operation for event in stuck.order)
        what = "consumer" if isinstance(stuck.state, ConsumerState) else "provider"
        reasons = [f"{short(about)} is then {stuck.state}, and none of these can be next:"]
        for event in sorted(stuck.waiting, key=lambda event: event.end):
            # Events of consumers have rules of consumers, which no type says here.
            judged = event.what.rule.judge(stuck.state)  # type: ignore[arg-type]
            reason = judged if isinstance(judged, str) else "possible, but leads nowhere"
            reasons.append(f"{self.history.story([event.what.operation])}\n    ({reason})")
        return (
            f"There is no order in which {what} {short(about)} could have done this "
            f"(times in ms from the begin):\n{self.history.story(before)}\n" + "\n".join(reasons)
        )


def _by_consumer(history: History) -> dict[str, list[Operation]]:
    found: dict[str, dict[int, Operation]] = defaultdict(dict)
    for one in history.operations:
        for write in one.consumers:
            found[write.consumer][id(one)] = one
        for sight in one.sights:
            if isinstance(sight, ConsumerSight):
                found[sight.consumer][id(one)] = one
    return {consumer: list(ones.values()) for consumer, ones in found.items()}


def _by_provider(
    history: History, of_consumer: Mapping[str, Sequence[Operation]]
) -> dict[str, list[Operation]]:
    """The operations that saw or wrote a provider, or may have changed its allocations, with all
    allocations that their consumers ever had."""
    ever = {
        consumer: {
            provider
            for one in ones
            for write in one.consumers
            if write.consumer == consumer
            for provider, _, _ in write.held
        }
        for consumer, ones in of_consumer.items()
    }
    found: dict[str, list[Operation]] = defaultdict(list)
    for one in history.operations:
        touched = {sight.provider for sight in one.sights if isinstance(sight, ProviderSight)}
        touched |= {write.provider for write in one.providers}
        touched.update(*(ever[write.consumer] for write in one.consumers))
        for provider in touched:
            found[provider].append(one)
    return found


def _is_rival(other: Operation, one: Operation, consumers: Set[str]) -> bool:
    """Whether an operation may have written some consumers while another was running."""
    return (
        other is not one
        and other.outcome is not Outcome.REFUSED
        and any(write.consumer in consumers for write in other.consumers)
        and other.begin < one.end
        and one.begin < other.end
    )


def _events_of(
    consumer: str, operations: Iterable[Operation], happened: Mapping[int, int]
) -> list[Event[ConsumerState, _Part]]:
    return [event for one in operations for event in _consumer_events(one, consumer, happened)]


def _consumer_events(
    one: Operation, consumer: str, happened: Mapping[int, int]
) -> Iterator[Event[ConsumerState, _Part]]:
    for write in one.consumers:
        if write.consumer != consumer:
            continue
        if one.outcome is Outcome.REFUSED:
            if one.refusal is not None:
                yield _event(one, ConsumerNotWritten(write, one.refusal), changes=False)
        else:
            unknown = one.outcome is Outcome.UNKNOWN
            end = happened.get(id(one), one.end)
            optional = unknown and id(one) not in happened
            yield _event(one, ConsumerWritten(write), end=end, optional=optional)
    for sight in one.sights:
        if isinstance(sight, ConsumerSight) and sight.consumer == consumer:
            yield _event(one, ConsumerSeen(sight), changes=False)


def _event(
    one: Operation,
    rule: _Rule[S],
    *,
    end: int | None = None,
    changes: bool = True,
    optional: bool = False,
) -> Event[S, _Part]:
    def apply(state: S) -> S | None:
        judged = rule.judge(state)
        return None if isinstance(judged, str) else judged

    return Event(
        one.begin, one.end if end is None else end, _Part(one, rule), apply, changes, optional
    )


def _effects(one: Operation, change: _Change) -> dict[str, Effect]:
    """The effects of an operation on each provider."""
    delta: dict[str, Counter[str]] = defaultdict(Counter)
    named: dict[str, set[str]] = defaultdict(set)
    claimed: set[str] = set()
    for write in one.consumers:
        before, after = change.get(write.consumer, (NOTHING_HELD, NOTHING_HELD))
        for provider, name, amount in after:
            delta[provider][name] += amount
            named[provider].add(name)
            claimed.add(provider)
        for provider, name, amount in before:
            delta[provider][name] -= amount
            if not after and not write.quiet:
                claimed.add(provider)
    writes = {write.provider: write for write in one.providers}
    return {
        provider: Effect(
            dict(delta[provider]),
            frozenset(named[provider]),
            provider in claimed,
            writes.get(provider),
        )
        for provider in {*delta, *writes}
    }


def _earliest(order: Found[S, _Part], place: int) -> int:
    """The earliest time of an event: after the changes that precede it, and after anything that was
    right only until then. What is right afterwards too may have come afterwards."""
    since = max(event.begin for event in order.order[: place + 1] if event.changes)
    for event in order.order[:place]:
        if event.changes or event.begin <= since:
            continue
        if all(event.apply(state) is None for state in order.states[place:]):
            since = event.begin
    return since


def _latest(order: Sequence[Event[S, _Part]]) -> Iterable[int]:
    """The latest time of each event: before the end of those after it."""
    latest: list[int] = []
    end = NEVER
    for event in reversed(order):
        end = min(end, event.end)
        latest.append(end)
    return reversed(latest)


def _distinct(operations: Iterable[Operation]) -> list[Operation]:
    return list({id(one): one for one in operations}.values())
