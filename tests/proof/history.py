# SPDX-License-Identifier: Apache-2.0
"""A history: the operations of many clients on one fleet, as they saw them; `checker.py` checks it.

An operation has a begin and an end on the machine's clock (`time.monotonic_ns`, the same in all
processes), the changes that it requested, its outcome, and what its response showed. Nothing here
knows how berth works: it uses only what clients can see.

Names in stories are short: the provider `a0000000-0000-4000-8000-000000000003` is `a3`, and the
consumer `c0000000-0000-4000-8000-000000000012` is `c12`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Final, Literal, NamedTuple

#: The end of an operation whose answer never came.
NEVER: Final = 1 << 62

#: As the parent of a provider: it is a root.
ROOT: Final = "none"

#: As `seen` of a write that does not look at a generation.
ANY: Final = "any"
Seen = int | None | Literal["any"]

#: What a consumer holds: (provider, resource class, amount).
Held = frozenset[tuple[str, str, int]]
NOTHING_HELD: Final[Held] = frozenset()


class Outcome(Enum):
    """The outcome of an operation."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    #: The connection died, or the service said that it does not know.
    UNKNOWN = "unknown"


class Why(Enum):
    """The reason of a refusal, as far as the history can confirm it."""

    CONSUMER_MOVED = "a consumer is at another generation"
    PROVIDER_MOVED = "a provider is at another generation"
    NO_ROOM = "not so much is free"
    NO_INVENTORY = "there is no such inventory"
    IN_USE = "it is in use"
    HAS_INVENTORY = "there is such an inventory"
    ABSENT = "there is no such thing"
    NO_PLACE = "no place was found"
    CONSUMER_RACE = "somebody else wrote a consumer at the same time"
    #: Of names, trees or numbers, which nothing here models: nothing is concluded from it.
    NOT_JUDGED = "for a reason that is not judged"
    #: Anything else.
    OTHER = "for another reason"


class Refusal(NamedTuple):
    """A refusal; `of` is the provider or consumer that the response names, and `said` its text if
    the reason is unknown."""

    why: Why
    of: str | None = None


class ConsumerWrite(NamedTuple):
    """The new allocations of a consumer.

    `seen`: the generation that was sent, None for a new consumer, ANY for a DELETE. `quiet`: the
    generations of the providers that it leaves do not change (DELETE).
    """

    consumer: str
    seen: Seen
    held: Held
    quiet: bool = False


class ProviderWrite(NamedTuple):
    """A change of a provider itself; None leaves a part as it is.

    `steps`: the increments of its generation, without those for claims of the same request.
    `one`: a resource class, and its new capacity, None if its inventory is deleted.
    """

    provider: str
    seen: Seen
    steps: int = 1
    capacities: frozenset[tuple[str, int]] | None = None
    traits: frozenset[str] | None = None
    aggregates: frozenset[str] | None = None
    parent: str | None = None
    life: Literal["created", "deleted"] | None = None
    one: tuple[str, int | None] | None = None
    #: The generation that the answer told, if it did.
    answered: int | None = None

    def stock(self, before: frozenset[tuple[str, int]]) -> frozenset[tuple[str, int]]:
        """The capacities afterwards."""
        if self.capacities is not None:
            return self.capacities
        if self.one is None:
            return before
        name, capacity = self.one
        others = {(other, of) for other, of in before if other != name}
        return frozenset(others if capacity is None else others | {(name, capacity)})


class ConsumerSight(NamedTuple):
    """A consumer in a response; without a generation and allocations it is unknown.

    `on` names the only provider that was read; None: all.
    """

    consumer: str
    generation: int | None
    held: Held
    on: str | None = None


class ProviderSight(NamedTuple):
    """A provider in a response; None for parts that it does not show. `gone`: it is unknown.

    `used` and `capacities` are by resource class; `whole` says that there are no other classes.
    `room` is the amount for which it was a candidate, `no_room` the amount for which it was not.
    """

    provider: str
    generation: int | None = None
    used: frozenset[tuple[str, int]] | None = None
    capacities: frozenset[tuple[str, int]] | None = None
    whole: bool = False
    traits: frozenset[str] | None = None
    aggregates: frozenset[str] | None = None
    parent: str | None = None
    gone: bool = False
    room: tuple[str, int] | None = None
    no_room: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One request of one client, from before it was sent until after its response."""

    client: str
    text: str
    begin: int
    end: int
    outcome: Outcome
    consumers: tuple[ConsumerWrite, ...] = ()
    providers: tuple[ProviderWrite, ...] = ()
    refusal: Refusal | None = None
    sights: tuple[ConsumerSight | ProviderSight, ...] = ()

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return bool(self.consumers or self.providers)


@dataclass(frozen=True, slots=True)
class Begin:
    """A provider before the first operation, without allocations."""

    generation: int
    capacities: frozenset[tuple[str, int]]
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class History:
    """All operations on a fleet that no other client uses."""

    begin: Mapping[str, Begin]
    operations: tuple[Operation, ...]

    @classmethod
    def ended(
        cls, begin: Mapping[str, Begin], operations: Iterable[Operation], last: Operation
    ) -> History:
        """The history without operations that were running at its end."""
        finished = (
            replace(operation, end=last.begin) if operation.end == NEVER else operation
            for operation in operations
        )
        return cls(begin, (*finished, last))

    def keep(self, path: Path) -> None:
        """Write the history to a file, so that it can be checked again."""
        path.write_bytes(pickle.dumps(self))

    def story(self, operations: Iterable[Operation]) -> str:
        """Some operations in the order of their begin, one per line, in milliseconds."""
        zero = min((operation.begin for operation in self.operations), default=0)
        return "\n".join(
            _line(operation, zero)
            for operation in sorted(operations, key=lambda operation: operation.begin)
        )


def provider_uuid(number: int) -> str:
    """The uuid of a provider of this suite."""
    return f"a0000000-0000-4000-8000-{number:012d}"


def consumer_uuid(number: int) -> str:
    """The uuid of a consumer of this suite."""
    return f"c0000000-0000-4000-8000-{number:012d}"


def aggregate_uuid(number: int) -> str:
    """The uuid of an aggregate of this suite."""
    return f"b0000000-0000-4000-8000-{number:012d}"


def short(uuid: str) -> str:
    """The short name of a uuid."""
    return f"{uuid[0]}{int(uuid[-12:])}" if uuid[1:24] == "0000000-0000-4000-8000-" else uuid


def holding(amounts: Mapping[str, Mapping[str, int]]) -> Held:
    """Allocations, from amounts by class by provider."""
    return frozenset(
        (provider, name, amount)
        for provider, of_provider in amounts.items()
        for name, amount in of_provider.items()
    )


def shown_held(held: Held) -> str:
    """Allocations as text."""
    parts = [f"{short(provider)}:{name}={amount}" for provider, name, amount in sorted(held)]
    return " ".join(parts) or "nothing"


def _line(one: Operation, zero: int) -> str:
    end = "?" if one.outcome is Outcome.UNKNOWN else f"{(one.end - zero) / 1e6:.2f}"
    span = f"{(one.begin - zero) / 1e6:10.2f} .. {end:>9}"
    why = f", {one.refusal.why.value}" if one.refusal else ""
    if one.refusal and one.refusal.of:
        why += f": {short(one.refusal.of)}"
    return f"{span}  {one.client:<8} {one.text}  -> {one.outcome.value}{why}"
