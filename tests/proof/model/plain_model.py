# SPDX-License-Identifier: Apache-2.0
"""The rules of Placement, written as simply as possible with dicts and loops.

Written from spec/rest-api.md alone; the numbers in the docstrings are its sections. A write either
changes this object and returns what the response contains, or raises `Refusal` and changes nothing.
The model does not check schemas and syntax: its requests are well-formed at their microversion,
which is given as its minor number.

Reads are in `plain_reads`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from tests.worlds import standard_classes, standard_traits

T = TypeVar("T")

UNDEFINED: Final = "placement.undefined_code"
CONCURRENT_UPDATE: Final = "placement.concurrent_update"
DUPLICATE_NAME: Final = "placement.duplicate_name"
INVENTORY_IN_USE: Final = "placement.inventory.inuse"
PROVIDER_IN_USE: Final = "placement.resource_provider.inuse"
CANNOT_DELETE_PARENT: Final = "placement.resource_provider.cannot_delete_parent"
PROVIDER_NOT_FOUND: Final = "placement.resource_provider.not_found"

#: The project and user of consumers that were written below 1.8, as configured by default.
INCOMPLETE: Final = "00000000-0000-0000-0000-000000000000"


class Refusal(Exception):
    """The request is refused, and nothing changes."""

    def __init__(self, status: int, code: str = UNDEFINED) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code


class Keep:
    """The type of `KEEP`: a field that a request leaves out keeps its value."""

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Final = Keep()


@dataclass(frozen=True, slots=True)
class Record:
    """One inventory (5)."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2147483647
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> float:
        """The usable amount."""
        return (self.total - self.reserved) * self.allocation_ratio

    def has_unit(self, amount: int) -> bool:
        """Whether one allocation may have this amount."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0


@dataclass(slots=True)
class Provider:
    """One provider."""

    uuid: str
    name: str
    parent: str | None
    generation: int = 0
    inventories: dict[str, Record] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)


#: What is held: provider -> class -> amount.
Held = Mapping[str, Mapping[str, int]]


@dataclass(slots=True)
class Consumer:
    """One consumer, with allocations; without any it does not exist."""

    generation: int
    project: str
    user: str
    type: str | None
    held: Held


@dataclass(frozen=True, slots=True)
class Claim:
    """The new allocations of a consumer.

    `seen` applies from 1.28 on, `type` from 1.38 on; project and user from 1.8 on.
    """

    held: Held
    seen: int | None
    project: str
    user: str
    type: str


Claims = Mapping[str, Claim]


class PlainModel:
    """The state of a deployment."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlainModel) and vars(self) == vars(other)

    def __init__(self) -> None:
        self.providers: dict[str, Provider] = {}
        self.consumers: dict[str, Consumer] = {}
        self.classes = set(standard_classes())
        self.traits = set(standard_traits())

    # --- Providers (4) ---------------------------------------------------------------------------

    def create_provider(self, uuid: str, name: str, parent: str | None) -> None:
        """4.2."""
        if parent is not None and (parent == uuid or parent not in self.providers):
            raise Refusal(400)
        if uuid in self.providers or self._has_name(name):
            raise Refusal(409, DUPLICATE_NAME)
        self.providers[uuid] = Provider(uuid, name, parent)

    def update_provider(self, minor: int, uuid: str, name: str, parent: str | Keep | None) -> None:
        """4.4."""
        provider = self.provider(uuid)
        if not isinstance(parent, Keep):
            if parent is not None and (
                parent not in self.providers or uuid in self.lineage(parent)
            ):
                raise Refusal(400)
            if provider.parent not in (None, parent) and minor < 37:
                raise Refusal(400)
        if provider.name != name and self._has_name(name):
            raise Refusal(409, DUPLICATE_NAME)
        provider.name = name
        if not isinstance(parent, Keep):
            provider.parent = parent

    def delete_provider(self, uuid: str) -> None:
        """4.5."""
        self.provider(uuid)
        if any(provider.parent == uuid for provider in self.providers.values()):
            raise Refusal(409, CANNOT_DELETE_PARENT)
        if any(uuid in consumer.held for consumer in self.consumers.values()):
            raise Refusal(409, PROVIDER_IN_USE)
        del self.providers[uuid]

    # --- Inventories (5) -------------------------------------------------------------------------

    def add_inventory(self, minor: int, uuid: str, name: str, record: Record) -> None:
        """5.2."""
        provider = self.provider(uuid)
        self._check_records(minor, {name: record})
        if name in provider.inventories:
            raise Refusal(409, CONCURRENT_UPDATE)
        provider.inventories[name] = record
        provider.generation += 1

    def replace_inventories(
        self, minor: int, uuid: str, seen: int, records: Mapping[str, Record]
    ) -> None:
        """5.3."""
        provider = self._provider_at(uuid, seen)
        self._check_records(minor, records)
        self._check_unused(uuid, provider.inventories.keys() - records.keys(), INVENTORY_IN_USE)
        provider.inventories = dict(records)
        provider.generation += 1

    def update_inventory(self, minor: int, uuid: str, name: str, seen: int, record: Record) -> None:
        """5.6. An unknown class is a 404, one without inventory a 400."""
        provider = self._provider_at(uuid, seen)
        self._check_capacity(minor, record)
        if name not in self.classes:
            raise Refusal(404)
        if name not in provider.inventories:
            raise Refusal(400)
        provider.inventories[name] = record
        provider.generation += 1

    def delete_inventory(self, uuid: str, name: str) -> None:
        """5.7."""
        provider = self.provider(uuid)
        if name not in provider.inventories:
            raise Refusal(404)
        self._check_unused(uuid, {name}, CONCURRENT_UPDATE)
        del provider.inventories[name]
        provider.generation += 1

    def delete_inventories(self, minor: int, uuid: str) -> None:
        """5.4."""
        if minor < 5:
            raise Refusal(405)
        provider = self.provider(uuid)
        self._check_unused(uuid, provider.inventories.keys(), INVENTORY_IN_USE)
        provider.inventories = {}
        provider.generation += 1

    # --- Aggregates and traits (6, 7) ------------------------------------------------------------

    def replace_aggregates(
        self, minor: int, uuid: str, seen: int, aggregates: Iterable[str]
    ) -> None:
        """6. Below 1.19 generations are neither checked nor incremented."""
        provider = self.provider(uuid) if minor < 19 else self._provider_at(uuid, seen)
        provider.aggregates = set(aggregates)
        provider.generation += minor >= 19

    def replace_traits(self, uuid: str, seen: int, traits: Iterable[str]) -> None:
        """7.5. The generation changes only if the set does."""
        provider = self._provider_at(uuid, seen)
        wanted = set(traits)
        if not wanted <= self.traits:
            raise Refusal(400)
        provider.generation += wanted != provider.traits
        provider.traits = wanted

    def delete_traits(self, uuid: str) -> None:
        """7.5."""
        provider = self.provider(uuid)
        provider.generation += bool(provider.traits)
        provider.traits = set()

    def define_trait(self, name: str) -> bool:
        """7.3. Returns whether it is new."""
        is_new = name not in self.traits
        self.traits.add(name)
        return is_new

    def delete_trait(self, name: str) -> None:
        """7.4."""
        if name not in self.traits:
            raise Refusal(404)
        if not name.startswith("CUSTOM_"):
            raise Refusal(400)
        if any(name in provider.traits for provider in self.providers.values()):
            raise Refusal(409)
        self.traits.remove(name)

    # --- Resource classes (8) --------------------------------------------------------------------

    def create_class(self, name: str) -> None:
        """8, POST."""
        if name in self.classes:
            raise Refusal(409)
        self.classes.add(name)

    def define_class(self, name: str) -> bool:
        """8, PUT from 1.7 on. Returns whether it is new."""
        is_new = name not in self.classes
        self.classes.add(name)
        return is_new

    def rename_class(self, name: str, new: str) -> None:
        """8, PUT below 1.7. Its inventories get the new name."""
        if name not in self.classes:
            raise Refusal(404)
        if not name.startswith("CUSTOM_"):
            raise Refusal(400)
        if new != name and new in self.classes:
            raise Refusal(409)
        self.classes = self.classes - {name} | {new}
        for provider in self.providers.values():
            provider.inventories = _renamed(provider.inventories, name, new)
        for consumer in self.consumers.values():
            consumer.held = {
                uuid: _renamed(some, name, new) for uuid, some in consumer.held.items()
            }

    def delete_class(self, name: str) -> None:
        """8, DELETE."""
        if name not in self.classes:
            raise Refusal(404)
        if not name.startswith("CUSTOM_"):
            raise Refusal(400)
        if any(name in provider.inventories for provider in self.providers.values()):
            raise Refusal(409)
        self.classes.remove(name)

    # --- Allocations (10) ------------------------------------------------------------------------

    def claim(self, minor: int, claims: Claims) -> None:
        """10.3 and 10.4: all or nothing."""
        self._check_consumers(minor, claims)
        self._check_providers(claims)
        stock = {uuid: provider.inventories for uuid, provider in self.providers.items()}
        self._check_claims(claims, stock)
        for uuid in self._involved(claims):
            self.providers[uuid].generation += 1
        self._hold(minor, claims)

    def release(self, uuid: str) -> None:
        """10.5. No provider's generation changes."""
        if uuid not in self.consumers:
            raise Refusal(404)
        del self.consumers[uuid]

    # --- Reshaping (12) --------------------------------------------------------------------------

    def reshape(
        self,
        minor: int,
        inventories: Mapping[str, tuple[int, Mapping[str, Record]]],
        claims: Claims,
    ) -> None:
        """12, in the order of its table."""
        for uuid, (seen, _) in inventories.items():
            if uuid not in self.providers:
                raise Refusal(400, PROVIDER_NOT_FOUND)
            if self.providers[uuid].generation != seen:
                raise Refusal(409, CONCURRENT_UPDATE)
        self._check_consumers(minor, claims)
        self._check_providers(claims)
        if any(name not in self.classes for _, new in inventories.values() for name in new):
            raise Refusal(400)
        stock = {uuid: dict(provider.inventories) for uuid, provider in self.providers.items()}
        for uuid, (_, new) in inventories.items():
            stock[uuid].update(new)
        self._check_claims(claims, stock)
        for uuid, (_, new) in inventories.items():
            gone = stock[uuid].keys() - new.keys()
            if any(self.used(uuid, name, claims) for name in gone):
                raise Refusal(409, INVENTORY_IN_USE)
        for uuid in self._involved(claims):
            self.providers[uuid].generation += 1
        for uuid, (_, new) in inventories.items():
            self.providers[uuid].inventories = dict(new)
            self.providers[uuid].generation += 2 if new else 1
        self._hold(minor, claims)

    # --- Facts -----------------------------------------------------------------------------------

    def provider(self, uuid: str) -> Provider:
        """A provider, or 404."""
        if uuid not in self.providers:
            raise Refusal(404)
        return self.providers[uuid]

    def lineage(self, uuid: str) -> Iterator[str]:
        """A provider, its parent, and so on up to the root."""
        place: str | None = uuid
        while place is not None:
            yield place
            place = self.providers[place].parent

    def root(self, uuid: str) -> str:
        """The root of a provider's tree."""
        return list(self.lineage(uuid))[-1]

    def used(self, uuid: str, name: str, claims: Claims | None = None) -> int:
        """The usage of a class on a provider; after some claims, if given."""
        held = {consumer: present.held for consumer, present in self.consumers.items()}
        held |= {consumer: claim.held for consumer, claim in (claims or {}).items()}
        return sum(some.get(uuid, {}).get(name, 0) for some in held.values())

    # --- What is checked -------------------------------------------------------------------------

    def _has_name(self, name: str) -> bool:
        return any(provider.name == name for provider in self.providers.values())

    def _provider_at(self, uuid: str, seen: int) -> Provider:
        provider = self.provider(uuid)
        if provider.generation != seen:
            raise Refusal(409, CONCURRENT_UPDATE)
        return provider

    def _check_records(self, minor: int, records: Mapping[str, Record]) -> None:
        for record in records.values():
            self._check_capacity(minor, record)
        if any(name not in self.classes for name in records):
            raise Refusal(400)

    def _check_capacity(self, minor: int, record: Record) -> None:
        """5: it is above 0, from 1.26 on at least 0."""
        capacity = int(record.capacity)
        if capacity < 0 or (capacity == 0 and minor < 26):
            raise Refusal(400)

    def _check_unused(self, uuid: str, names: Iterable[str], code: str) -> None:
        if any(self.used(uuid, name) for name in names):
            raise Refusal(409, code)

    def _check_consumers(self, minor: int, claims: Claims) -> None:
        """10.3, the table of consumer generations."""
        for uuid, claim in claims.items():
            present = self.consumers.get(uuid)
            if minor >= 28 and claim.seen != (present.generation if present else None):
                raise Refusal(409, CONCURRENT_UPDATE)

    def _check_providers(self, claims: Claims) -> None:
        if any(uuid not in self.providers for claim in claims.values() for uuid in claim.held):
            raise Refusal(400)

    def _check_claims(self, claims: Claims, stock: Mapping[str, Mapping[str, Record]]) -> None:
        """10.6, points 3 to 5."""
        wanted = [
            (uuid, name, amount)
            for claim in claims.values()
            for uuid, some in claim.held.items()
            for name, amount in some.items()
        ]
        if any(name not in self.classes for _, name, _ in wanted):
            raise Refusal(400)
        for uuid, name, amount in wanted:
            record = stock[uuid].get(name)
            if record is None or not record.has_unit(amount):
                raise Refusal(409)
            after = self.used(uuid, name, claims)
            if after > record.capacity and after > self.used(uuid, name):
                raise Refusal(409)

    # --- What is changed -------------------------------------------------------------------------

    def _involved(self, claims: Claims) -> set[str]:
        """The providers that claims increment (1.15): the named ones, and those of emptied
        consumers."""
        named = {uuid for claim in claims.values() for uuid in claim.held}
        left = {
            uuid
            for consumer, claim in claims.items()
            if not claim.held and consumer in self.consumers
            for uuid in self.consumers[consumer].held
        }
        return named | left

    def _hold(self, minor: int, claims: Claims) -> None:
        for uuid, claim in claims.items():
            present = self.consumers.pop(uuid, None)
            if not claim.held:
                continue
            self.consumers[uuid] = Consumer(
                generation=present.generation + 1 if present else 1,
                project=claim.project if minor >= 8 else INCOMPLETE,
                user=claim.user if minor >= 8 else INCOMPLETE,
                type=claim.type if minor >= 38 else present.type if present else None,
                held=claim.held,
            )


def _renamed(values: Mapping[str, T], old: str, new: str) -> dict[str, T]:
    return {new if name == old else name: value for name, value in values.items()}
