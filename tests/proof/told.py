# SPDX-License-Identifier: Apache-2.0
"""Histories written by hand, and histories of a plain sequential model, to test the checker.

`a1` and `a2` have 8 VCPU each and are at generation 1 at the begin. Times are small integers; an
operation without a response has no end.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Final

from compare import wire
from compare.histories.dice import Dice
from compare.histories.picture import Consumer, Picture
from compare.histories.picture import Provider as Place
from compare.histories.queries import show_candidates
from compare.script.step import Step, request
from tests.proof.answers import Sights
from tests.proof.history import (
    ANY,
    NEVER,
    ROOT,
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
from tests.proof.load import STEPS, Rules
from tests.proof.meaning import OLDEST_MINOR, meaning_of, shown
from tests.proof.model.plain_model import PlainModel, Provider, Record
from tests.proof.model.plain_server import PlainServer
from tests.proof.wire import Answer

CAPACITY = 8
_STOCK = frozenset({("VCPU", CAPACITY)})
BEGIN = {provider_uuid(number): Begin(1, _STOCK, parent=ROOT) for number in (1, 2)}

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


class Simulation:
    """Clients of the plain model with overlapping requests: each takes effect at one moment of its
    span. They send the same histories as those of a service.
    """

    def __init__(self, seed: int, *, steps: int, lost: float) -> None:
        self.operations: list[Operation] = []
        self.model = PlainModel()
        for uuid, begin in BEGIN.items():
            stock = {name: Record(total) for name, total in begin.capacities}
            self.model.providers[uuid] = Provider(uuid, uuid, None, begin.generation, stock)
        self._server = PlainServer(self.model)
        self._rng = random.Random(seed)
        self._lost = lost
        self._clients = [_Client(seed, number) for number in range(5)]
        for now in range(10, 10 * steps + 10, 10):
            self._step(now)
        self._end = 10 * steps + 1000

    def end(self) -> list[Operation]:
        """Read everything that was ever written."""
        consumers = {write.consumer for one in self.operations for write in one.consumers}
        providers = {write.provider for one in self.operations for write in one.providers}
        paths = [f"/allocations/{uuid}" for uuid in sorted(consumers)]
        for uuid in sorted(providers | BEGIN.keys()):
            paths += [
                f"/resource_providers/{uuid}{part}" for part in ("", "/inventories", "/usages")
            ]
        span = self._end, self._end + 1
        return [self._asked("the end", span, request("GET", path)) for path in paths]

    def holders(self) -> list[str]:
        """The names of the shared consumers that hold something."""
        return [name for name in CONSUMERS if uuid(name) in self.model.consumers]

    def free(self, provider: str) -> int:
        """The amount of VCPU that is free."""
        record = self.model.providers[uuid(provider)].inventories.get("VCPU", Record(0))
        return int(record.capacity) - self.model.used(uuid(provider), "VCPU")

    def generation(self, provider: str) -> int:
        """The generation of a provider."""
        return self.model.providers[uuid(provider)].generation

    def _step(self, now: int) -> None:
        free = [client for client in self._clients if client.free_at < now]
        if not free:
            return
        client = self._rng.choice(free)
        begin = self._rng.randint(max(client.free_at + 1, now - 60), now)
        client.free_at = now + self._rng.randint(0, 60)
        step = client.next_step()
        is_lost = step.method != "GET" and self._rng.random() < self._lost
        if is_lost and self._rng.random() < 0.5:
            consumers, providers, _ = meaning_of(step)
            one = _operation(
                (begin, None), str(step), None, consumers=consumers, providers=providers
            )
            self.operations.append(one)
            return
        span = (begin, None) if is_lost else (begin, client.free_at)
        self.operations.append(self._asked(client.name, span, step, client.picture))

    def _asked(
        self, client: str, span: Span, step: Step, picture: Picture | None = None
    ) -> Operation:
        due = self._server.answer(step)
        consumers, providers, _ = meaning_of(step)
        answer = Answer(due.status, due.body)
        refused = None if due.status < 400 else Refusal(Why.OTHER)
        sights: Sights = ()
        if due.status == 200 and step.method == "GET":
            sights = shown(step, answer)
        if picture is not None and span[1] is not None:
            picture.learn(step, wire.Answer(due.status, {}, json.dumps(due.body).encode()))
            for name in CONSUMERS:
                self._show(picture, uuid(name))
        return replace(
            _operation(
                span, str(step), refused, consumers=consumers, providers=providers, sights=sights
            ),
            client=client,
        )

    def _show(self, picture: Picture, consumer: str) -> None:
        """What a client knows of a shared consumer, now and then of late."""
        if self._rng.random() < 0.7:
            picture.consumers.pop(consumer, None)
            if held := self.model.consumers.get(consumer):
                amounts = {provider: dict(some) for provider, some in held.held.items()}
                picture.consumers[consumer] = Consumer(consumer, held.generation, amounts)


class _Client:
    """A client: what it knows, and since when it waits for nothing."""

    def __init__(self, seed: int, number: int) -> None:
        self.name = f"client{number}"
        self.free_at = 0
        consumers = [uuid(name) for name in CONSUMERS]
        self.picture = Picture(f"P{number}P", few=2, shared=consumers)
        for provider, begin in BEGIN.items():
            known = Place(provider, provider, None, begin.generation)
            known.inventories = {name: {"total": total} for name, total in begin.capacities}
            self.picture.providers[provider] = known
        self._dice = Dice(f"{seed}.{number}", since=OLDEST_MINOR)
        others = {*consumers} - {*consumers[number : number + 1]}
        self._rules = Rules(BEGIN.keys(), others, _STEPS)

    def next_step(self) -> Step:
        """Its next request."""
        return self._rules.next_step(self._dice, self.picture)


CONSUMERS: Final = ("c1", "c2", "c3", "c4")

#: The plain model has no candidates.
_STEPS: Final = {step: weight for step, weight in STEPS.items() if step is not show_candidates}
