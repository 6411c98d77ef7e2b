# SPDX-License-Identifier: Apache-2.0
"""Reshapes: inventories and allocations change together, and only the result is checked."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from berth.model.consumer import ConsumerWrite
from berth.model.errors import (
    BerthError,
    CapacityExceeded,
    ConsumerGenerationConflict,
    InventoryInUse,
    NoInventory,
    ProviderGenerationConflict,
    ReshapedProviderNotFound,
    UnknownClassInAllocation,
    UnknownClassInInventory,
    UnknownProviderInAllocation,
)
from berth.model.ids import Generation
from berth.model.inventory import Inventory
from berth.store.engine.database import Database
from berth.store.reshape import ReshapedInventories, reshape
from berth.upkeep import schema
from tests.sql_reads import list_inventories
from tests.store.fleet import (
    add_provider,
    claim,
    consumer,
    generation,
    held,
    holding,
    provider,
)


def having(
    db: Database, number: int, stock: Mapping[str, int], *, seen: int | None = None
) -> ReshapedInventories:
    """The new inventories of a provider, with its current generation unless given."""
    return ReshapedInventories(
        provider(number),
        generation(db, number) if seen is None else Generation(seen),
        {name: Inventory(total) for name, total in stock.items()},
    )


@pytest.fixture
def fleet(db: Database) -> Database:
    """p1 has VCPU and disk, p2 has nothing yet; c1 has allocations of both classes."""
    add_provider(db, 1, VCPU=4, DISK_GB=10)
    add_provider(db, 2, parent=1)
    claim(db, holding(1, {1: {"VCPU": 4, "DISK_GB": 5}}))
    return db


def test_a_class_moves_with_its_allocations(fleet: Database) -> None:
    """p1 keeps another class: both providers are incremented by three, the consumer by one."""
    before = generation(fleet, 1), generation(fleet, 2)
    reshape(
        fleet,
        [having(fleet, 1, {"DISK_GB": 10}), having(fleet, 2, {"VCPU": 4})],
        [holding(1, {1: {"DISK_GB": 5}, 2: {"VCPU": 4}}, seen=1)],
    )
    assert (generation(fleet, 1), generation(fleet, 2)) == (before[0] + 3, before[1] + 3)
    assert held(fleet, 1) == {consumer(1): {"DISK_GB": 5}}
    assert held(fleet, 2) == {consumer(1): {"VCPU": 4}}
    assert set(list_inventories(fleet, provider(1)).inventories) == {"DISK_GB"}
    assert schema.check(fleet) == []


@pytest.mark.parametrize(
    ("stock", "writes", "steps"),
    [
        ({"VCPU": 4, "DISK_GB": 10}, [], 2),
        ({"VCPU": 4, "DISK_GB": 10}, [holding(1, {1: {"VCPU": 1}})], 3),
        ({"VCPU": 4, "DISK_GB": 10}, [holding(1, {})], 3),
        ({}, [holding(1, {})], 2),
    ],
)
def test_how_far_a_provider_moves(
    fleet: Database, stock: dict[str, int], writes: list[ConsumerWrite], steps: int
) -> None:
    """By one for new inventories, one for allocations on it, and one for removing old
    inventories."""
    before = generation(fleet, 1)
    reshape(fleet, [having(fleet, 1, stock)], writes)
    assert generation(fleet, 1) == before + steps


@pytest.mark.parametrize("amounts", [{"VCPU": 1}, {"VCPU": 4, "DISK_GB": 5}])
def test_an_empty_provider_given_nothing_moves_once(
    fleet: Database, amounts: dict[str, int]
) -> None:
    """By one, as does a provider that is only in the claims, whether or not they change anything
    there."""
    before = generation(fleet, 1)
    reshape(fleet, [having(fleet, 2, {})], [holding(1, {1: amounts})])
    assert (generation(fleet, 1), generation(fleet, 2)) == (before + 1, 1)
    assert schema.check(fleet) == []


def test_shrinking_below_use_needs_no_allocations(fleet: Database) -> None:
    """It is over capacity afterwards; allocations that do not grow are accepted."""
    reshape(fleet, [having(fleet, 1, {"VCPU": 1, "DISK_GB": 10})], [])
    for amounts in ({"VCPU": 4, "DISK_GB": 5}, {"VCPU": 3, "DISK_GB": 6}):
        reshape(
            fleet,
            [having(fleet, 1, {"VCPU": 1, "DISK_GB": 10})],
            [holding(1, {1: amounts})],
        )
        assert schema.check(fleet) == []
    with pytest.raises(CapacityExceeded):
        reshape(
            fleet,
            [having(fleet, 1, {"VCPU": 2, "DISK_GB": 10})],
            [holding(1, {1: {"VCPU": 4}})],
        )
    assert held(fleet, 1) == {consumer(1): {"VCPU": 3, "DISK_GB": 6}}


def test_which_fault_wins(fleet: Database) -> None:
    """A request with every fault gets the first error; each row repairs one fault. Nothing is
    changed."""
    claim(fleet, holding(2, {1: {"DISK_GB": 1}}))
    first_generation = generation(fleet, 1)
    bad, good = {1: {"VCPU": 9, "NOPE": 1}, 9: {"VCPU": 1}}, {1: {"VCPU": 2}}
    rows: list[
        tuple[
            list[tuple[int, dict[str, int], int]], dict[int, dict[str, int]], int, type[BerthError]
        ]
    ] = [
        ([(1, {"X": 1}, 0), (8, {}, 0)], bad, 0, ProviderGenerationConflict),
        ([(1, {"X": 1}, first_generation), (8, {}, 0)], bad, 0, ReshapedProviderNotFound),
        ([(1, {"X": 1}, first_generation)], bad, 0, ConsumerGenerationConflict),
        ([(1, {"X": 1}, first_generation)], bad, 1, UnknownProviderInAllocation),
        ([(1, {"X": 1}, first_generation)], {1: {"NOPE": 1}}, 1, UnknownClassInInventory),
        ([(1, {"VCPU": 1}, first_generation)], {1: {"NOPE": 1}}, 1, UnknownClassInAllocation),
        ([(1, {"VCPU": 1}, first_generation)], {1: {"PCPU": 1, "VCPU": 9}}, 1, NoInventory),
        ([(1, {"VCPU": 1}, first_generation)], {1: {"VCPU": 9}}, 1, CapacityExceeded),
        ([(1, {"VCPU": 4}, first_generation)], good, 1, InventoryInUse),
    ]
    for stocks, wanted, seen, refusal in rows:
        inventories = [
            having(fleet, number, stock, seen=at)
            if number == 1
            else ReshapedInventories(provider(number), Generation(at), {})
            for number, stock, at in stocks
        ]
        with pytest.raises(refusal):
            reshape(fleet, inventories, [holding(1, wanted, seen=seen)])
    assert generation(fleet, 1) == first_generation
    assert set(list_inventories(fleet, provider(1)).inventories) == {"VCPU", "DISK_GB"}
    assert schema.check(fleet) == []


def test_a_refusal_names_the_classes_of_one_provider(fleet: Database) -> None:
    """If several providers have inventories in use, it names the oldest one's, in any order."""
    add_provider(fleet, 3, VCPU=4, MEMORY_MB=64)
    claim(fleet, holding(2, {3: {"MEMORY_MB": 1}}))
    with pytest.raises(InventoryInUse) as refusal:
        reshape(fleet, [having(fleet, 3, {"VCPU": 4}), having(fleet, 1, {})], [])
    assert f"'VCPU, DISK_GB' on resource provider '{provider(1)}'" in str(refusal.value)


def test_a_removed_class_may_be_claimed_until_it_goes(fleet: Database) -> None:
    """The claims are checked while the old inventories still exist; then the removal is refused."""
    with pytest.raises(InventoryInUse) as refusal:
        reshape(fleet, [having(fleet, 1, {"DISK_GB": 10})], [holding(2, {1: {"DISK_GB": 1}})])
    assert "'VCPU' on resource provider" in str(refusal.value)
