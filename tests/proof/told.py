# SPDX-License-Identifier: Apache-2.0
"""Histories written by hand, and histories of a plain sequential model, to test the checker.

`a1` and `a2` have 8 VCPU each and are at generation 1 at the begin. Times are small integers; an
operation without a response has no end.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.proof.history import (
    ANY,
    NEVER,
    Begin,
    ConsumerSight,
    ConsumerWrite,
    Held,
    History,
    Operation,
    Outcome,
    ProviderSight,
    ProviderWrite,
    Refusal,
    Seen,
    Why,
    consumer_uuid,
    provider_uuid,
)

CAPACITY = 8
BEGIN = {provider_uuid(number): Begin(1, frozenset({("VCPU", CAPACITY)})) for number in (1, 2)}

Span = tuple[int, int | None]


def history(*operations: Operation) -> History:
    """The operations of some clients on `a1` and `a2`."""
    return History(BEGIN, operations)


def uuid(name: str) -> str:
    """The uuid of `a1` or `c12`."""
    number = int(name[1:])
    return provider_uuid(number) if name[0] == "a" else consumer_uuid(number)


def held(text: str) -> Held:
    """`"a1:2 a2:1"`: amounts of VCPU by provider."""
    pairs = (part.split(":") for part in text.split())
    return frozenset((uuid(provider), "VCPU", int(amount)) for provider, amount in pairs)


def claim(
    span: Span, wanted: dict[str, tuple[Seen, str]], refused: Refusal | None = None
) -> Operation:
    """A claim for consumers, each with the generation that the client saw."""
    writes = tuple(
        ConsumerWrite(uuid(consumer), seen, held(text)) for consumer, (seen, text) in wanted.items()
    )
    return _operation(span, f"claim {wanted}", refused, consumers=writes)


def release(span: Span, consumer: str, refused: Refusal | None = None) -> Operation:
    """DELETE a consumer's allocations."""
    write = ConsumerWrite(uuid(consumer), ANY, frozenset(), quiet=True)
    return _operation(span, f"release {consumer}", refused, consumers=(write,))


def stock(
    span: Span,
    provider: str,
    seen: int,
    capacity: int,
    refused: Refusal | None = None,
    answered: int | None = None,
) -> Operation:
    """PUT the inventory of a provider."""
    capacities = frozenset({("VCPU", capacity)})
    write = ProviderWrite(uuid(provider), seen, capacities=capacities, answered=answered)
    text = f"stock {provider} from {seen}: {capacity}"
    return _operation(span, text, refused, providers=(write,))


def no_room(provider: str) -> Refusal:
    """A refusal: the capacity is exceeded."""
    return Refusal(Why.NO_ROOM, uuid(provider))


def consumer_moved(consumer: str) -> Refusal:
    """A refusal: the consumer is at another generation."""
    return Refusal(Why.CONSUMER_MOVED, uuid(consumer))


def provider_moved(provider: str) -> Refusal:
    """A refusal: the provider is at another generation."""
    return Refusal(Why.PROVIDER_MOVED, uuid(provider))


def sees_consumer(span: Span, consumer: str, generation: int | None, text: str = "") -> Operation:
    """A read of a consumer."""
    sight = ConsumerSight(uuid(consumer), generation, held(text))
    return _operation(span, f"see {consumer} at {generation}: {text}", None, sights=(sight,))


def sees_provider(
    span: Span,
    provider: str,
    generation: int | None = None,
    used: int | None = None,
    capacity: int | None = None,
) -> Operation:
    """A read of a provider."""
    sight = ProviderSight(
        uuid(provider),
        generation,
        None if used is None else frozenset({("VCPU", used)}),
        None if capacity is None else frozenset({("VCPU", capacity)}),
    )
    text = f"see {provider} at {generation}: used {used}, capacity {capacity}"
    return _operation(span, text, None, sights=(sight,))


def sees_offer(span: Span, provider: str, amount: int, *, offered: bool) -> Operation:
    """A candidates query for an amount, and whether a provider is among the candidates."""
    wanted = ("VCPU", amount)
    sight = ProviderSight(
        uuid(provider), room=wanted if offered else None, no_room=None if offered else wanted
    )
    return _operation(span, f"offered {provider}:{amount} {offered}", None, sights=(sight,))


def _operation(
    span: Span,
    text: str,
    refused: Refusal | None,
    *,
    consumers: tuple[ConsumerWrite, ...] = (),
    providers: tuple[ProviderWrite, ...] = (),
    sights: tuple[ConsumerSight | ProviderSight, ...] = (),
) -> Operation:
    begin, end = span
    outcome = Outcome.ACCEPTED
    if end is None:
        outcome = Outcome.UNKNOWN
    elif refused is not None:
        outcome = Outcome.REFUSED
    return Operation(
        "somebody",
        text,
        begin,
        NEVER if end is None else end,
        outcome,
        consumers,
        providers,
        refused,
        sights,
    )


@dataclass
class Model:
    """A model of a service that handles one request at a time."""

    generation: dict[str, int] = field(default_factory=lambda: {"a1": 1, "a2": 1})
    capacity: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("a1", "a2"), CAPACITY))
    #: consumer -> (generation, amount by provider)
    consumers: dict[str, tuple[int, dict[str, int]]] = field(default_factory=dict)

    def used(self, provider: str) -> int:
        """The sum of a provider's allocations."""
        return sum(amounts.get(provider, 0) for _, amounts in self.consumers.values())

    def generation_of(self, consumer: str) -> int | None:
        """A consumer's generation, None if it does not exist."""
        return self.consumers[consumer][0] if consumer in self.consumers else None

    def text_of(self, consumer: str) -> str:
        """A consumer's allocations, in the form of `held`."""
        _, amounts = self.consumers.get(consumer, (0, {}))
        return " ".join(f"{provider}:{amount}" for provider, amount in amounts.items())

    def claim(self, wanted: dict[str, tuple[Seen, dict[str, int]]]) -> Refusal | None:
        """Apply all of it; returns the reason if it is refused."""
        for consumer, (seen, _) in wanted.items():
            if seen != self.generation_of(consumer):
                return consumer_moved(consumer)
        before = {provider: self.used(provider) for provider in self.generation}
        kept = dict(self.consumers)
        bumped = set()
        for consumer, (_, amounts) in wanted.items():
            generation, old = self.consumers.pop(consumer, (0, {}))
            bumped |= set(amounts or old)
            if amounts:
                self.consumers[consumer] = (generation + 1, amounts)
        for provider, used in before.items():
            if used < self.used(provider) > self.capacity[provider]:
                self.consumers = kept
                return no_room(provider)
        for provider in bumped:
            self.generation[provider] += 1
        return None

    def stock(self, provider: str, seen: int, capacity: int) -> Refusal | None:
        """Set a provider's inventory."""
        if seen != self.generation[provider]:
            return provider_moved(provider)
        self.generation[provider] += 1
        self.capacity[provider] = capacity
        return None


class Simulation:
    """Clients of a model with overlapping requests: each takes effect at one moment of its span.

    Only one client empties a consumer, as `checker` requires.
    """

    def __init__(self, rng: random.Random, *, steps: int, lost: float) -> None:
        self.operations: list[Operation] = []
        self.model = Model()
        self._rng = rng
        self._lost = lost
        #: When each client is free again.
        self._free = [0] * 5
        self._now = 0
        self._client = 0
        #: What was true at some moments: a client sends what it saw some time before.
        self._seen: list[tuple[dict[str, int | None], dict[str, int]]] = []
        for _ in range(steps):
            self._step()

    def end(self) -> list[Operation]:
        """Read everything at the end."""
        after = (self._now + 1000, self._now + 1001)
        model = self.model
        return [
            *(
                sees_consumer(after, name, model.generation_of(name), model.text_of(name))
                for name in CONSUMERS
            ),
            *(
                sees_provider(
                    after,
                    name,
                    model.generation[name],
                    model.used(name),
                    model.capacity[name],
                )
                for name in PROVIDERS
            ),
        ]

    def _step(self) -> None:
        self._now += 10
        free = [place for place, since in enumerate(self._free) if since < self._now]
        self._remember()
        if not free:
            return
        client = self._rng.choice(free)
        begin = self._rng.randint(max(self._free[client] + 1, self._now - 60), self._now)
        end = self._now + self._rng.randint(0, 60)
        self._free[client] = end
        act: Callable[[Span], None] = self._rng.choice(
            (self._claim, self._claim, self._swap, self._release, self._stock, self._look)
        )
        self._client = client
        act((begin, end))

    def _remember(self) -> None:
        self._seen.append(
            (
                {name: self.model.generation_of(name) for name in CONSUMERS},
                dict(self.model.generation),
            )
        )

    def _seen_lately(self) -> tuple[dict[str, int | None], dict[str, int]]:
        return self._rng.choice(self._seen[-3:])

    def _claim(self, span: Span) -> None:
        name = self._rng.choice(CONSUMERS)
        seen = self._seen_lately()[0][name]
        amounts = {
            provider: self._rng.randint(1, 4) for provider in PROVIDERS if self._rng.random() < 0.6
        }
        if amounts or (seen is not None and self._owns(name)):
            self._send_claim(span, {name: (seen, amounts)})

    def _swap(self, span: Span) -> None:
        one, other = self._rng.sample(CONSUMERS, 2)
        if one not in self.model.consumers or other not in self.model.consumers:
            return
        self._send_claim(
            span,
            {
                one: (self.model.generation_of(one), self.model.consumers[other][1]),
                other: (self.model.generation_of(other), self.model.consumers[one][1]),
            },
        )

    def _send_claim(self, span: Span, wanted: dict[str, tuple[Seen, dict[str, int]]]) -> None:
        lost = self._rng.random() < self._lost
        refused = None if lost and self._rng.random() < 0.5 else self.model.claim(wanted)
        texts = {
            name: (seen, " ".join(f"{provider}:{amount}" for provider, amount in amounts.items()))
            for name, (seen, amounts) in wanted.items()
        }
        self.operations.append(claim((span[0], None) if lost else span, texts, refused))

    def _release(self, span: Span) -> None:
        name = self._rng.choice(CONSUMERS)
        if not self._owns(name):
            return
        known = self.model.consumers.pop(name, None)
        refused = None if known else Refusal(Why.ABSENT)
        self.operations.append(release(span, name, refused))

    def _owns(self, consumer: str) -> bool:
        return CONSUMERS.index(consumer) == self._client

    def _stock(self, span: Span) -> None:
        name = self._rng.choice(PROVIDERS)
        seen = self._seen_lately()[1][name]
        capacity = self._rng.randint(4, CAPACITY)
        lost = self._rng.random() < self._lost
        refused = (
            None if lost and self._rng.random() < 0.5 else self.model.stock(name, seen, capacity)
        )
        span = (span[0], None) if lost else span
        self.operations.append(stock(span, name, seen, capacity, refused))

    def _look(self, span: Span) -> None:
        model = self.model
        if self._rng.random() < 0.5:
            name = self._rng.choice(CONSUMERS)
            look = sees_consumer(span, name, model.generation_of(name), model.text_of(name))
        else:
            name = self._rng.choice(PROVIDERS)
            look = sees_provider(
                span, name, model.generation[name], model.used(name), model.capacity[name]
            )
        self.operations.append(look)


CONSUMERS = ("c1", "c2", "c3", "c4")
PROVIDERS = ("a1", "a2")
