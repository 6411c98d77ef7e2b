# SPDX-License-Identifier: Apache-2.0
"""Random histories of claims, releases, restocks and reshapes against a model of plain dicts.

After each step: no provider holds more than it may, the sums agree with the allocations, every
generation is the predicted one, and a refusal is exactly the one that the model gives.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

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
from berth.store.allocations import (
    consumer_allocations,
    delete_allocations,
    provider_allocations,
)
from berth.store.inventories import list_inventories, replace_inventories
from berth.store.reshape import ReshapedInventories, reshape
from berth.store.usages import provider_usages
from berth.upkeep import schema
from tests.fresh import Fresh, opened_at
from tests.store.fleet import add_provider, claim, consumer, holding, provider

PROVIDERS = range(1, 4)
CONSUMERS = range(1, 4)
CLASSES = ("VCPU", "MEMORY_MB")

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


@dataclass
class Ledger:
    """The twin: what the database should hold, kept the slow and obvious way."""

    stock: dict[int, Stock] = field(default_factory=lambda: {one: {} for one in PROVIDERS})
    generations: Counter[int] = field(default_factory=Counter)
    held: dict[int, Wish] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)

    def used(self, place: int, name: str, holders: dict[int, Wish]) -> int:
        """The sum of what is held of one inventory."""
        return sum(wish.get(place, {}).get(name, 0) for wish in holders.values())

    def refusal(self, wanted: dict[int, Wish], stock: dict[int, Stock]) -> type[BerthError] | None:
        """Why these claims cannot be, judged by some stock.

        First a provider without any class of the request, those included that a consumer lets go;
        then the first amount of the request that cannot be.
        """
        items = [
            (place, name, amount)
            for wish in wanted.values()
            for place, some in wish.items()
            for name, amount in some.items()
        ]
        let_go = [self.held.get(one, {}) for one, wish in wanted.items() if not wish]
        classes = {name for _, name, _ in items}.union(
            name for wish in let_go for some in wish.values() for name in some
        )
        if any(classes.isdisjoint(stock[place]) for place, _, _ in items):
            return NoInventory
        others = {one: wish for one, wish in self.held.items() if one not in wanted}
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
        """The providers that such claims move."""
        named = {place for wish in wanted.values() for place in wish}
        left = {
            place for one, wish in wanted.items() if not wish for place in self.held.get(one, {})
        }
        return named | left

    def hold(self, wanted: dict[int, Wish]) -> None:
        """Let the claims be."""
        for one, wish in wanted.items():
            if wish:
                self.held[one] = wish
                self.seen[one] = self.seen.get(one, 0) + 1
            else:
                self.held.pop(one, None)
                self.seen.pop(one, None)


class Histories(RuleBasedStateMachine):
    """One database and its ledger."""

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
        """Leave nothing behind."""
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

    @rule(wanted=writes, stale=st.sampled_from([0, 0, 0, 1]))
    def claims(self, wanted: dict[int, Wish], stale: int) -> None:
        """Replace what some consumers hold."""
        requests = [
            holding(
                one, wish, seen=self.ledger.seen[one] + stale if one in self.ledger.seen else None
            )
            for one, wish in wanted.items()
        ]
        refusal = self.ledger.refusal(wanted, self.ledger.stock)
        if stale and any(one in self.ledger.seen for one in wanted):
            refusal = ConsumerGenerationConflict
        if refusal:
            with pytest.raises(refusal):
                claim(self.db, *requests)
            return
        claim(self.db, *requests)
        self.ledger.generations.update(self.ledger.bumped(wanted))
        self.ledger.hold(wanted)

    @rule(one=st.sampled_from(CONSUMERS))
    def releases(self, one: int) -> None:
        """Take everything from a consumer; no provider moves."""
        if one not in self.ledger.held:
            with pytest.raises(AllocationsNotFound):
                delete_allocations(self.db, consumer(one))
            return
        delete_allocations(self.db, consumer(one))
        self.ledger.hold({one: {}})

    @precondition(lambda self: self.ledger.held)
    @rule(reshaped=st.dictionaries(st.sampled_from(PROVIDERS), stocks, min_size=1), data=st.data())
    def reshapes(self, reshaped: dict[int, Stock], data: st.DataObject) -> None:
        """Replace inventories and allocations at once; often all moves to one provider."""
        ledger = self.ledger
        target = data.draw(st.sampled_from(PROVIDERS))
        moved = {one: {target: merged(wish)} for one, wish in ledger.held.items()}
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
        requests = [holding(one, wish, seen=ledger.seen.get(one)) for one, wish in wanted.items()]
        if refusal:
            with pytest.raises(refusal):
                reshape(self.db, inventories, requests)
            return
        reshape(self.db, inventories, requests)
        ledger.generations.update(ledger.bumped(wanted))
        for place, stock in reshaped.items():
            ledger.generations[place] += 2 if stock else 1
            ledger.stock[place] = stock
        ledger.hold(wanted)

    @invariant()
    def the_database_is_in_order(self) -> None:
        """By its own rules."""
        assert schema.check(self.db) == []

    @invariant()
    def providers_are_as_in_the_ledger(self) -> None:
        """Generation, inventories, usage, holders."""
        for place in PROVIDERS:
            found = list_inventories(self.db, provider(place))
            assert found.generation == self.ledger.generations[place]
            assert found.inventories == self.ledger.stock[place]
            assert provider_usages(self.db, provider(place)).usages == {
                name: self.ledger.used(place, name, self.ledger.held)
                for name in self.ledger.stock[place]
            }
            holders = provider_allocations(self.db, provider(place)).consumers
            assert holders == {
                consumer(one): (self.ledger.seen[one], wish[place])
                for one, wish in self.ledger.held.items()
                if place in wish
            }

    @invariant()
    def consumers_are_as_in_the_ledger(self) -> None:
        """Generation and allocations; nothing of those that hold nothing."""
        for one in CONSUMERS:
            found = consumer_allocations(self.db, consumer(one))
            if one not in self.ledger.held:
                assert found is None
                continue
            assert found is not None and found.generation == self.ledger.seen[one]
            assert {place: some for place, (_, some) in found.allocations.items()} == {
                provider(place): some for place, some in self.ledger.held[one].items()
            }


def merged(wish: Wish) -> Amounts:
    """All amounts of a wish together."""
    total: Counter[str] = Counter()
    for some in wish.values():
        total.update(some)
    return dict(total)


class HistoriesInChunks(Histories):
    """The same, with lists that are cut after every second value."""

    in_list_max = 2


def test_random_histories(engine: str, fresh: Fresh) -> None:
    """A few seconds' worth of them."""
    run_histories(Histories, fresh, examples=25 if engine == "sqlite" else 6)


@pytest.mark.engines("sqlite")
def test_random_histories_in_chunks(fresh: Fresh) -> None:
    """Consumers, providers and keys are more than one list holds, nearly always."""
    run_histories(HistoriesInChunks, fresh, examples=15)


def run_histories(histories: type[Histories], fresh: Fresh, *, examples: int) -> None:
    """Play some, each on a database of its own."""
    histories.fresh = staticmethod(fresh)
    run_state_machine_as_test(
        histories,
        settings=settings(
            max_examples=examples,
            stateful_step_count=12,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
