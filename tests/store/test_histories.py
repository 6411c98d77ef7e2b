# SPDX-License-Identifier: Apache-2.0
"""Random histories of claims, releases, restocks and reshapes against a model of plain dicts.

After each step, no provider exceeds its capacity, the usages equal the sums of the allocations,
every generation is as predicted, and every refusal is the one that the model predicts.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from berth.model.consumer import ConsumerWrite
from berth.model.errors import (
    AllocationsNotFound,
    BerthError,
    CapacityExceeded,
    ConsumerGenerationConflict,
    InventoryInUse,
    NoInventory,
    ProviderGenerationConflict,
    UnitViolation,
)
from berth.model.ids import Generation
from berth.model.inventory import Inventory
from berth.model.sentinels import UNSET, Sentinel
from berth.store.allocations import (
    consumer_allocations,
    delete_allocations,
    provider_allocations,
)
from berth.store.inventories import replace_inventories
from berth.store.reshape import ReshapedInventories, reshape
from berth.store.usages import TypeUsages, project_usages_by_type
from berth.upkeep import schema
from tests.effort import scaled
from tests.fresh import Fresh, opened_at
from tests.sql_reads import list_inventories, provider_usages
from tests.store.fleet import add_provider, claim, consumer, holding, provider

PROVIDERS = range(1, 4)
CONSUMERS = range(1, 4)
CLASSES = ("VCPU", "MEMORY_MB")

PROJECTS = ("one project", "another project")
USERS = ("one user", "another user")

Amounts = dict[str, int]
Wish = dict[int, Amounts]
Stock = dict[str, Inventory]

amounts = st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 6), min_size=1)
wishes = st.dictionaries(st.sampled_from(PROVIDERS), amounts)
writes = st.dictionaries(st.sampled_from(CONSUMERS), wishes, min_size=1)
stocks = st.dictionaries(
    st.sampled_from(CLASSES),
    st.builds(
        Inventory,
        total=st.integers(2, 10),
        reserved=st.integers(0, 2),
        max_unit=st.integers(3, 6),
        step_size=st.sampled_from([1, 1, 2]),
        allocation_ratio=st.sampled_from([1.0, 1.0, 1.5]),
    ),
)


class Owner(NamedTuple):
    """Whose a consumer is; `type` may be UNSET, which keeps the one that it has."""

    project: str
    user: str
    type: str | Literal[Sentinel.UNSET] | None


owners = st.lists(
    st.builds(
        Owner,
        st.sampled_from(PROJECTS),
        st.sampled_from(USERS),
        st.sampled_from(["INSTANCE", "MIGRATION", None, UNSET]),
    ),
    min_size=len(CONSUMERS),
    max_size=len(CONSUMERS),
)


@dataclass
class Ledger:
    """The model: what the database should contain, implemented in the slow and obvious way."""

    stock: dict[int, Stock] = field(default_factory=lambda: {place: {} for place in PROVIDERS})
    generations: Counter[int] = field(default_factory=Counter)
    held: dict[int, Wish] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)
    owners: dict[int, Owner] = field(default_factory=dict)

    def used(self, place: int, name: str, holders: dict[int, Wish]) -> int:
        """The sum of the allocations on one inventory."""
        return sum(wish.get(place, {}).get(name, 0) for wish in holders.values())

    def refusal(self, wanted: dict[int, Wish], stock: dict[int, Stock]) -> type[BerthError] | None:
        """Why these claims are refused, given some inventories.

        First a provider that lacks all classes of the request, including those that a consumer
        leaves; then the first amount of the request that is not allowed.
        """
        items = [
            (place, name, amount)
            for wish in wanted.values()
            for place, some in wish.items()
            for name, amount in some.items()
        ]
        let_go = [self.held.get(number, {}) for number, wish in wanted.items() if not wish]
        classes = {name for _, name, _ in items}.union(
            name for wish in let_go for some in wish.values() for name in some
        )
        if any(classes.isdisjoint(stock[place]) for place, _, _ in items):
            return NoInventory
        others = {number: wish for number, wish in self.held.items() if number not in wanted}
        asked: Counter[tuple[int, str]] = Counter()
        for place, name, amount in items:
            if name not in stock[place]:
                return NoInventory
            if not stock[place][name].allows_unit(amount):
                return UnitViolation
            asked[place, name] += amount
            then = self.used(place, name, others) + asked[place, name]
            is_more = then > self.used(place, name, self.held)
            if is_more and not stock[place][name].has_capacity_for(then):
                return CapacityExceeded
        return None

    def bumped(self, wanted: dict[int, Wish]) -> set[int]:
        """The providers whose generations such claims increment."""
        named = {place for wish in wanted.values() for place in wish}
        left = {
            place
            for number, wish in wanted.items()
            if not wish
            for place in self.held.get(number, {})
        }
        return named | left

    def hold(self, wanted: dict[int, Wish], owners: Sequence[Owner]) -> None:
        """Apply the claims."""
        for number, wish in wanted.items():
            if wish:
                self.held[number] = wish
                self.seen[number] = self.seen.get(number, 0) + 1
                self.owners[number] = self._kept_type(number, owners[number - 1])
            else:
                self.held.pop(number, None)
                self.seen.pop(number, None)
                self.owners.pop(number, None)

    def _kept_type(self, number: int, owner: Owner) -> Owner:
        before = self.owners[number].type if number in self.owners else None
        return owner._replace(type=before) if owner.type is UNSET else owner

    def usages(self, project: str, user: str | None) -> dict[str, TypeUsages]:
        """What a project or one of its users has, by the type of consumer."""
        amounts: dict[str, Counter[str]] = {}
        counts: Counter[str] = Counter()
        for number, owner in self.owners.items():
            if owner.project != project or user not in (None, owner.user):
                continue
            name = str(owner.type or "unknown")
            counts[name] += 1
            amounts.setdefault(name, Counter()).update(merged(self.held[number]))
        return {name: TypeUsages(dict(some), counts[name]) for name, some in amounts.items()}


class Histories(RuleBasedStateMachine):
    """A database and its ledger."""

    fresh: ClassVar[Fresh]
    in_list_max: ClassVar[int | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        url = type(self).fresh(Path(self.folder.name))
        self.db = opened_at(url, in_list_max=type(self).in_list_max)
        self.ledger = Ledger()
        for number in PROVIDERS:
            add_provider(self.db, number)

    def teardown(self) -> None:
        """Delete the database."""
        self.db.dispose()
        self.folder.cleanup()

    @rule(place=st.sampled_from(PROVIDERS), stock=stocks, stale=st.sampled_from([0, 0, 0, 1]))
    def restocks(self, place: int, stock: Stock, stale: int) -> None:
        """Replace a provider's inventories."""
        ledger = self.ledger
        seen = Generation(ledger.generations[place] + stale)
        gone = [name for name in ledger.stock[place] if name not in stock]
        refusal: type[BerthError] | None = None
        if stale:
            refusal = ProviderGenerationConflict
        elif any(ledger.used(place, name, ledger.held) for name in gone):
            refusal = InventoryInUse
        if refusal:
            with pytest.raises(refusal):
                replace_inventories(self.db, provider(place), seen, stock)
            return
        replace_inventories(self.db, provider(place), seen, stock)
        ledger.stock[place] = stock
        ledger.generations[place] += 1

    @rule(wanted=writes, owners=owners, stale=st.sampled_from([0, 0, 0, 1]))
    def claims(self, wanted: dict[int, Wish], owners: list[Owner], stale: int) -> None:
        """Replace the allocations of some consumers, and their owners."""
        seen = {number: count + stale for number, count in self.ledger.seen.items()}
        requests = self.requests(wanted, owners, seen)
        refusal = self.ledger.refusal(wanted, self.ledger.stock)
        if stale and any(number in self.ledger.seen for number in wanted):
            refusal = ConsumerGenerationConflict
        if refusal:
            with pytest.raises(refusal):
                claim(self.db, *requests)
            return
        claim(self.db, *requests)
        self.ledger.generations.update(self.ledger.bumped(wanted))
        self.ledger.hold(wanted, owners)

    def requests(
        self, wanted: dict[int, Wish], owners: Sequence[Owner], seen: Mapping[int, int]
    ) -> list[ConsumerWrite]:
        """The claims of these consumers, each for its new owner."""
        return [
            holding(
                number,
                wish,
                seen=seen.get(number),
                project=owners[number - 1].project,
                user=owners[number - 1].user,
                consumer_type=owners[number - 1].type,
            )
            for number, wish in wanted.items()
        ]

    @rule(one=st.sampled_from(CONSUMERS))
    def releases(self, one: int) -> None:
        """Remove all allocations of a consumer; no generation changes."""
        if one not in self.ledger.held:
            with pytest.raises(AllocationsNotFound):
                delete_allocations(self.db, consumer(one))
            return
        delete_allocations(self.db, consumer(one))
        self.ledger.hold({one: {}}, ())

    @precondition(lambda self: self.ledger.held)
    @rule(
        reshaped=st.dictionaries(st.sampled_from(PROVIDERS), stocks, min_size=1),
        owners=owners,
        data=st.data(),
    )
    def reshapes(
        self, reshaped: dict[int, Stock], owners: list[Owner], data: st.DataObject
    ) -> None:
        """Replace inventories and allocations in one request; often all move to one provider."""
        ledger = self.ledger
        target = data.draw(st.sampled_from(PROVIDERS))
        moved = {number: {target: merged(wish)} for number, wish in ledger.held.items()}
        wanted = data.draw(st.one_of(st.just(moved), writes, st.just({})))
        between = {**ledger.stock}
        for place, stock in reshaped.items():
            between[place] = {**ledger.stock[place], **stock}
        refusal = ledger.refusal(wanted, between)
        after = {**ledger.held, **wanted}
        if refusal is None and any(
            ledger.used(place, name, after)
            for place, stock in reshaped.items()
            for name in ledger.stock[place]
            if name not in stock
        ):
            refusal = InventoryInUse
        inventories = [
            ReshapedInventories(provider(place), Generation(ledger.generations[place]), stock)
            for place, stock in reshaped.items()
        ]
        requests = self.requests(wanted, owners, ledger.seen)
        if refusal:
            with pytest.raises(refusal):
                reshape(self.db, inventories, requests)
            return
        reshape(self.db, inventories, requests)
        ledger.generations.update(ledger.bumped(wanted))
        for place, stock in reshaped.items():
            ledger.generations[place] += 2 if stock else 1
            ledger.stock[place] = stock
        ledger.hold(wanted, owners)

    @invariant()
    def the_database_is_in_order(self) -> None:
        """`berth db check` finds no fault."""
        assert schema.check(self.db) == []

    @invariant()
    def providers_are_as_in_the_ledger(self) -> None:
        """Generation, inventories, usage, consumers."""
        for place in PROVIDERS:
            listed = list_inventories(self.db, provider(place))
            assert listed.generation == self.ledger.generations[place]
            assert listed.inventories == self.ledger.stock[place]
            assert provider_usages(self.db, provider(place)).usages == {
                name: self.ledger.used(place, name, self.ledger.held)
                for name in self.ledger.stock[place]
            }
            holders = provider_allocations(self.db, provider(place)).consumers
            assert holders == {
                consumer(number): (self.ledger.seen[number], wish[place])
                for number, wish in self.ledger.held.items()
                if place in wish
            }

    @invariant()
    def projects_are_as_in_the_ledger(self) -> None:
        """What each uses, and each of its users, by type."""
        for project, user in product(PROJECTS, (None, *USERS)):
            found = project_usages_by_type(self.db, project, user, None)
            assert found == self.ledger.usages(project, user)

    @invariant()
    def consumers_are_as_in_the_ledger(self) -> None:
        """Generation and allocations; a consumer without allocations has no record."""
        for number in CONSUMERS:
            allocations = consumer_allocations(self.db, consumer(number))
            if number not in self.ledger.held:
                assert allocations is None
                continue
            assert allocations is not None and allocations.generation == self.ledger.seen[number]
            assert {place: some for place, (_, some) in allocations.allocations.items()} == {
                provider(place): some for place, some in self.ledger.held[number].items()
            }


def merged(wish: Wish) -> Amounts:
    """The sum of all amounts of a request."""
    total: Counter[str] = Counter()
    for some in wish.values():
        total.update(some)
    return dict(total)


class HistoriesInChunks(Histories):
    """The same with lists that are cut after every second value."""

    in_list_max = 2


def test_random_histories(engine: str, fresh: Fresh) -> None:
    """A few histories."""
    run_histories(Histories, fresh, examples=scaled(12 if engine == "sqlite" else 5))


@pytest.mark.engines("sqlite")
def test_random_histories_in_chunks(fresh: Fresh) -> None:
    """Nearly all of their lists have more values than one chunk."""
    run_histories(HistoriesInChunks, fresh, examples=scaled(8))


def run_histories(histories: type[Histories], fresh: Fresh, *, examples: int) -> None:
    """Run some histories, each on a database of its own."""
    histories.fresh = staticmethod(fresh)
    run_state_machine_as_test(
        histories,
        settings=settings(
            max_examples=examples,
            stateful_step_count=12,
            suppress_health_check=list(HealthCheck),
        ),
    )
