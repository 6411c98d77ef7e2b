# SPDX-License-Identifier: Apache-2.0
"""The sequential rules of a consumer and of a provider, one event at a time; every history must be
an interleaving of them.

A rule is applied to a state: it returns the next state, or a sentence that says what is wrong.
Source: spec/rest-api.md 5, 10 and 12, spec/commit-rules.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.proof.history import (
    ANY,
    NOTHING_HELD,
    ConsumerSight,
    ConsumerWrite,
    Held,
    ProviderSight,
    ProviderWrite,
    Refusal,
    Why,
    shown_held,
)


class ConsumerState(NamedTuple):
    """A consumer; without a generation it does not exist."""

    generation: int | None = None
    held: Held = NOTHING_HELD

    def __str__(self) -> str:
        if self.generation is None:
            return "unknown"
        return f"at generation {self.generation}, holds {shown_held(self.held)}"


class ProviderState(NamedTuple):
    """A provider; `used` has an entry for each inventory."""

    exists: bool = False
    generation: int = 0
    used: frozenset[tuple[str, int]] = frozenset()
    capacities: frozenset[tuple[str, int]] = frozenset()
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    parent: str | None = None

    def __str__(self) -> str:
        if not self.exists:
            return "does not exist"
        used = dict(self.used)
        stock = [f"{name} {used.get(name, 0)}/{of}" for name, of in sorted(self.capacities)]
        return f"at generation {self.generation}, used {', '.join(stock) or 'of nothing'}"


@dataclass(frozen=True, slots=True)
class ConsumerWritten:
    """A consumer's part of an accepted write."""

    write: ConsumerWrite

    def judge(self, state: ConsumerState) -> ConsumerState | str:
        """The generation that was sent must be the consumer's."""
        write = self.write
        if write.seen == ANY:
            if state.generation is None:
                return "it was accepted, though the consumer held nothing"
        elif write.seen != state.generation:
            return f"it was accepted from generation {write.seen}"
        if not write.held:
            return ConsumerState()
        return ConsumerState((state.generation or 0) + 1, write.held)


@dataclass(frozen=True, slots=True)
class ConsumerNotWritten:
    """A consumer's part of a refused write."""

    write: ConsumerWrite
    refusal: Refusal

    def judge(self, state: ConsumerState) -> ConsumerState | str:
        """Each refusal must be right at some moment."""
        why = self.refusal.why
        if why is Why.ABSENT and self.write.seen == ANY:
            return state if state.generation is None else "it was refused: nothing held"
        if self.write.seen == ANY:
            return state
        agrees = self.write.seen == state.generation
        if why is Why.CONSUMER_MOVED and self.refusal.of == self.write.consumer:
            return "it was refused for its generation, which is this" if agrees else state
        if why in (Why.NO_ROOM, Why.NO_INVENTORY) and not agrees:
            return f"it was refused, but not for its generation {self.write.seen}"
        return state


@dataclass(frozen=True, slots=True)
class ConsumerSeen:
    """A consumer in a response."""

    sight: ConsumerSight

    def judge(self, state: ConsumerState) -> ConsumerState | str:
        """It must be the current state."""
        on = self.sight.on
        held = state.held
        if on is not None:
            held = frozenset(one for one in held if one[0] == on)
        generation = state.generation if held or on is None else None
        if (self.sight.generation, self.sight.held) == (generation, held):
            return state
        return f"it showed generation {self.sight.generation}, {shown_held(self.sight.held)}"


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of an operation on one provider.

    `delta`: the change of the usage by resource class, 0 for a class that stays the same. `named`:
    the resource classes of new allocations. `claimed`: whether a claim increments its generation.
    """

    delta: Mapping[str, int] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    claimed: bool = False
    write: ProviderWrite | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether the provider does not change."""
        return not self.claimed and self.write is None and not any(self.delta.values())


@dataclass(frozen=True, slots=True)
class ProviderWritten:
    """A provider's part of an accepted write."""

    effect: Effect

    def judge(self, state: ProviderState) -> ProviderState | str:
        """The increase must fit, and the generation that was sent must be the provider's."""
        write = self.effect.write
        if write is not None and write.life == "created":
            return self._created(write, state)
        if not state.exists:
            return "it was accepted, though the provider does not exist"
        if write is not None and write.seen not in (ANY, state.generation):
            return f"it was accepted from generation {write.seen}"
        if write is not None and write.life == "deleted":
            return "deleted while in use" if _sum(state.used) else ProviderState()
        return self._changed(write, state)

    def _created(self, write: ProviderWrite, state: ProviderState) -> ProviderState | str:
        if state.exists:
            return "it was created, though it exists"
        return ProviderState(exists=True, parent=write.parent)

    def _changed(self, write: ProviderWrite | None, state: ProviderState) -> ProviderState | str:
        capacities = write.stock(state.capacities) if write else state.capacities
        used = _added(state, dict(capacities), self.effect)
        if isinstance(used, str):
            return used
        after = state._replace(
            generation=state.generation + self.effect.claimed + _steps(write, state),
            capacities=capacities,
            used=used,
        )
        if write is None:
            return after
        if write.answered not in (None, after.generation):
            return f"it answered generation {write.answered} instead of {after.generation}"
        return after._replace(
            traits=after.traits if write.traits is None else write.traits,
            aggregates=after.aggregates if write.aggregates is None else write.aggregates,
            parent=after.parent if write.parent is None else write.parent,
        )


@dataclass(frozen=True, slots=True)
class ProviderNotWritten:
    """A refusal that names this provider as the reason."""

    effect: Effect
    refusal: Refusal

    def judge(self, state: ProviderState) -> ProviderState | str:
        """Each refusal must be right at some moment."""
        judges: dict[Why, Callable[[ProviderState], bool]] = {
            Why.NO_ROOM: self._no_room,
            Why.NO_INVENTORY: self._no_inventory,
            Why.PROVIDER_MOVED: self._moved,
            Why.IN_USE: self._in_use,
            Why.HAS_INVENTORY: lambda state: self._one() in dict(state.capacities),
            Why.ABSENT: lambda state: not state.exists,
        }
        right = judges.get(self.refusal.why)
        if right is None or right(state):
            return state
        return f"it was refused: {self.refusal.why.value}"

    def _no_room(self, state: ProviderState) -> bool:
        capacities, used = self._capacities(state), dict(state.used)
        return any(
            more > 0 and name in capacities and used.get(name, 0) + more > capacities[name]
            for name, more in self.effect.delta.items()
        )

    def _no_inventory(self, state: ProviderState) -> bool:
        if (name := self._one()) is not None:
            return name not in dict(state.capacities)
        return not self.effect.named <= self._capacities(state).keys()

    def _moved(self, state: ProviderState) -> bool:
        write = self.effect.write
        return write is None or not state.exists or write.seen != state.generation

    def _in_use(self, state: ProviderState) -> bool:
        kept = self._capacities(state)
        if self.effect.write is not None and self.effect.write.life == "deleted":
            kept = {}
        return any(amount and name not in kept for name, amount in state.used)

    def _one(self) -> str | None:
        """The only inventory that is written."""
        write = self.effect.write
        return write.one[0] if write is not None and write.one is not None else None

    def _capacities(self, state: ProviderState) -> dict[str, int]:
        write = self.effect.write
        return dict(state.capacities if write is None else write.stock(state.capacities))


@dataclass(frozen=True, slots=True)
class ProviderSeen:
    """A provider in a response."""

    sight: ProviderSight

    def judge(self, state: ProviderState) -> ProviderState | str:
        """It must be the current state."""
        sight = self.sight
        if sight.no_room is not None:
            return f"it showed {_told(sight)}" if _has_room(state, *sight.no_room) else state
        if sight.gone or not state.exists:
            return state if sight.gone and not state.exists else f"it showed {_told(sight)}"
        pairs = (
            (sight.generation, state.generation),
            (sight.traits, state.traits),
            (sight.aggregates, state.aggregates),
            (sight.parent, state.parent),
        )
        agrees = (
            all(told is None or told == so for told, so in pairs)
            and _agree(sight.used, state.used, whole=sight.whole)
            and _agree(sight.capacities, state.capacities, whole=sight.whole)
            and (sight.room is None or _has_room(state, *sight.room))
        )
        return state if agrees else f"it showed {_told(sight)}"


def _steps(write: ProviderWrite | None, state: ProviderState) -> int:
    """The increments of the generation: traits that stay the same make none (7.5)."""
    if write is None or (write.traits is not None and write.traits == state.traits):
        return 0
    return write.steps


def _added(
    state: ProviderState, capacities: Mapping[str, int], effect: Effect
) -> frozenset[tuple[str, int]] | str:
    """The usage afterwards, or why it is impossible."""
    if not effect.named <= capacities.keys():
        return f"it was accepted without an inventory of {set(effect.named - capacities.keys())}"
    used = dict(state.used)
    for name, more in effect.delta.items():
        used[name] = used.get(name, 0) + more
        if used[name] < 0:
            return f"it gave back more {name} than was used"
        if more > 0 and used[name] > capacities[name]:
            return f"it was accepted and makes {used[name]} of {capacities[name]} {name}"
    for name in used.keys() - capacities.keys():
        if used[name]:
            return f"it takes away an inventory of which {used[name]} {name} are used"
    return frozenset((name, used.get(name, 0)) for name in capacities)


def _agree(
    told: frozenset[tuple[str, int]] | None, so: frozenset[tuple[str, int]], *, whole: bool
) -> bool:
    return told is None or (told == so if whole else told <= so)


def _has_room(state: ProviderState, name: str, amount: int) -> bool:
    """Whether a claim for this amount fits."""
    capacity = dict(state.capacities).get(name, 0)
    return state.exists and dict(state.used).get(name, 0) + amount <= capacity


def _sum(amounts: frozenset[tuple[str, int]]) -> int:
    return sum(amount for _, amount in amounts)


def _told(sight: ProviderSight) -> str:
    if sight.gone:
        return "that it does not exist"
    told = {
        "generation": sight.generation,
        "used": None if sight.used is None else dict(sight.used),
        "capacity": None if sight.capacities is None else dict(sight.capacities),
        "traits": None if sight.traits is None else sorted(sight.traits),
        "aggregates": None if sight.aggregates is None else sorted(sight.aggregates),
        "parent": sight.parent,
        "room for": sight.room,
        "no room for": sight.no_room,
    }
    return ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)
