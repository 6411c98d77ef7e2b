# SPDX-License-Identifier: Apache-2.0
"""Reshapes: everything moves at once, judged by what comes, not by what was."""

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
from berth.store.inventories import list_inventories
from berth.store.reshape import ReshapedInventories, reshape
from berth.upkeep import schema
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
    """What a provider shall have, as seen just now unless said otherwise."""
    return ReshapedInventories(
        provider(number),
        generation(db, number) if seen is None else Generation(seen),
        {name: Inventory(total) for name, total in stock.items()},
    )


@pytest.fixture
def fleet(db: Database) -> Database:
    """p1 has VCPU (a whole host's) and disk, p2 has nothing yet; c1 holds of both classes."""
    add_provider(db, 1, VCPU=4, DISK_GB=10)
    add_provider(db, 2, parent=1)
    claim(db, holding(1, {1: {"VCPU": 4, "DISK_GB": 5}}))
    return db


def test_a_class_moves_with_its_allocations(fleet: Database) -> None:
    """From a provider that keeps others: three steps each; the consumer one."""
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
    """One for new inventories, one for being claimed on, one for the removal of old ones."""
    before = generation(fleet, 1)
    reshape(fleet, [having(fleet, 1, stock)], writes)
    assert generation(fleet, 1) == before + steps


def test_an_empty_provider_given_nothing_moves_once(fleet: Database) -> None:
    """And one that is only in the claims, too."""
    before = generation(fleet, 1)
    reshape(fleet, [having(fleet, 2, {})], [holding(1, {1: {"VCPU": 1}})])
    assert (generation(fleet, 1), generation(fleet, 2)) == (before + 1, 1)


def test_shrinking_below_use_needs_no_allocations(fleet: Database) -> None:
    """Over capacity then, what makes nothing worse still passes."""
    reshape(fleet, [having(fleet, 1, {"VCPU": 1, "DISK_GB": 10})], [])
    reshape(
        fleet,
        [having(fleet, 1, {"VCPU": 1, "DISK_GB": 10})],
        [holding(1, {1: {"VCPU": 3, "DISK_GB": 6}})],
    )
    with pytest.raises(CapacityExceeded):
        reshape(
            fleet,
            [having(fleet, 1, {"VCPU": 2, "DISK_GB": 10})],
            [holding(1, {1: {"VCPU": 4}})],
        )
    assert held(fleet, 1) == {consumer(1): {"VCPU": 3, "DISK_GB": 6}}


def test_which_fault_wins(fleet: Database) -> None:
    """Each row repairs one fault of a request that has them all; nothing is ever changed."""
    claim(fleet, holding(2, {1: {"DISK_GB": 1}}))
    one = generation(fleet, 1)
    bad, good = {1: {"VCPU": 9, "NOPE": 1}, 9: {"VCPU": 1}}, {1: {"VCPU": 2}}
    rows: list[
        tuple[
            list[tuple[int, dict[str, int], int]], dict[int, dict[str, int]], int, type[BerthError]
        ]
    ] = [
        ([(1, {"X": 1}, 0), (8, {}, 0)], bad, 0, ProviderGenerationConflict),
        ([(1, {"X": 1}, one), (8, {}, 0)], bad, 0, ReshapedProviderNotFound),
        ([(1, {"X": 1}, one)], bad, 0, ConsumerGenerationConflict),
        ([(1, {"X": 1}, one)], bad, 1, UnknownProviderInAllocation),
        ([(1, {"X": 1}, one)], {1: {"NOPE": 1}}, 1, UnknownClassInInventory),
        ([(1, {"VCPU": 1}, one)], {1: {"NOPE": 1}}, 1, UnknownClassInAllocation),
        ([(1, {"VCPU": 1}, one)], {1: {"PCPU": 1, "VCPU": 9}}, 1, NoInventory),
        ([(1, {"VCPU": 1}, one)], {1: {"VCPU": 9}}, 1, CapacityExceeded),
        ([(1, {"VCPU": 4}, one)], good, 1, InventoryInUse),
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
    assert generation(fleet, 1) == one
    assert set(list_inventories(fleet, provider(1)).inventories) == {"VCPU", "DISK_GB"}
    assert schema.check(fleet) == []


def test_a_refusal_names_the_classes_of_one_provider(fleet: Database) -> None:
    """Of several whose inventories are in use the oldest, whatever the order of the request."""
    add_provider(fleet, 3, VCPU=4, MEMORY_MB=64)
    claim(fleet, holding(2, {3: {"MEMORY_MB": 1}}))
    with pytest.raises(InventoryInUse) as refusal:
        reshape(fleet, [having(fleet, 3, {"VCPU": 4}), having(fleet, 1, {})], [])
    assert refusal.value.provider == provider(1)
    assert refusal.value.resource_classes == ("VCPU", "DISK_GB")


def test_a_removed_class_may_be_claimed_until_it_goes(fleet: Database) -> None:
    """Then it is in use: claims are judged while the old inventories still stand."""
    with pytest.raises(InventoryInUse) as refusal:
        reshape(fleet, [having(fleet, 1, {"DISK_GB": 10})], [holding(2, {1: {"DISK_GB": 1}})])
    assert refusal.value.resource_classes == ("VCPU",)
