# SPDX-License-Identifier: Apache-2.0
"""Lists that are longer than one IN list: every chunk is processed, including the first and the
last.

Here the database cuts lists after two values, in service after hundreds.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from berth.index import Index
from berth.model.errors import (
    CapacityExceeded,
    ConsumerGenerationConflict,
    InventoryInUse,
    LostRace,
    UnknownProviderInAllocation,
    UnknownTraits,
)
from berth.model.ids import ProviderId
from berth.model.inventory import Inventory
from berth.model.shown import UNSET
from berth.store.aggregates import replace_aggregates
from berth.store.allocations import consumer_allocations, delete_allocations
from berth.store.engine.database import Database
from berth.store.inventories import Key, put_inventories
from berth.store.lookups import class_ids
from berth.store.providers import get_provider
from berth.store.reshape import ReshapedInventories, reshape
from berth.store.resource_classes import delete_resource_class, ensure_resource_class
from berth.store.traits import create_trait, list_traits, replace_provider_traits
from berth.store.usages import project_usages
from berth.upkeep import schema
from berth.upkeep.integrity import iter_repaired
from berth.upkeep.integrity.consumers import Owner
from tests.fresh import opened_at
from tests.servers.statements import run
from tests.sql_reads import get_aggregates, get_provider_traits, list_inventories
from tests.store.fleet import (
    add_provider,
    aggregate,
    claim,
    consumer,
    generation,
    held,
    holding,
    move,
    provider,
    restock,
    used,
)
from tests.store.together import together

pytestmark = pytest.mark.engines("sqlite")

#: More than two chunks of two.
FIVE = range(1, 6)


@pytest.fixture
def db(fresh_url: str) -> Iterator[Database]:
    """Five providers with 10 VCPU each."""
    db = opened_at(fresh_url, in_list_max=2)
    for number in FIVE:
        add_provider(db, number, VCPU=10)
    yield db
    db.dispose()


def test_many_consumers_move_and_are_released(db: Database) -> None:
    """One write moves them all: records, allocations, all usages, and new owners, which the next
    write finds. Then one consumer moves from many providers to many; and releases share a write."""
    for seen, amount in ((None, 1), (1, 10)):
        writes = [
            holding(
                n,
                {n if seen is None else 6 - n: {"VCPU": n * amount if seen is None else amount}},
                seen=seen,
                project=f"project-{n}",
                user=f"user-{n}",
                consumer_type=f"TYPE_{n}",
            )
            for n in FIVE
        ]
        claim(db, *writes)
        due = [n if seen is None else amount for n in FIVE]
        assert used(db, *FIVE) == due
        usages = [project_usages(db, f"project-{n}", f"user-{n}") for n in FIVE]
        assert usages == [{"VCPU": each} for each in due]
    claim(db, *(holding(number, {}, seen=2) for number in FIVE))
    assert used(db, *FIVE) == [0] * 5
    assert [consumer_allocations(db, consumer(number)) for number in FIVE] == [None] * 5
    claim(db, holding(1, {number: {"VCPU": 10} for number in FIVE}))
    claim(db, holding(1, {number: {"VCPU": 3} for number in FIVE}, seen=1))
    assert used(db, *FIVE) == [3] * 5
    delete_allocations(db, consumer(1))
    with together(db) as ask:
        asked = [ask(claim, db, holding(n, {n: {"VCPU": n}}, seen=None)) for n in FIVE]
    assert [future.result(30) for future in asked] == [None] * 5
    assert used(db, *FIVE) == [1, 2, 3, 4, 5]
    with together(db) as ask:
        asked = [ask(delete_allocations, db, consumer(number)) for number in FIVE]
    assert [future.result(30) for future in asked] == [None] * 5
    assert used(db, *FIVE) == [0] * 5
    assert schema.check(db) == []


@pytest.mark.parametrize("late", FIVE)
def test_each_of_many_is_judged(db: Database, late: int) -> None:
    """A fault in any chunk is reported: a stale generation, a full provider, an unknown one, one
    class of many in use, or in a reshape one provider of many; a class that has gone since it was
    looked up gets no inventory."""
    claim(db, *(holding(number, {number: {"VCPU": 1}}) for number in FIVE))
    stale = [holding(n, {n: {"VCPU": 2}}, seen=7 if n == late else 1) for n in FIVE]
    with pytest.raises(ConsumerGenerationConflict):
        claim(db, *stale)
    claim(db, holding(10, {late: {"VCPU": 9}}))
    with pytest.raises(CapacityExceeded, match=provider(late)):
        claim(db, holding(11, {n: {"VCPU": 1} for n in FIVE}))
    nowhere = {n if n != late else 99: {"VCPU": 1} for n in FIVE}
    with pytest.raises(UnknownProviderInAllocation, match=provider(99)):
        claim(db, holding(11, nowhere))
    assert used(db, *FIVE) == [10 if number == late else 1 for number in FIVE]

    names = [f"CUSTOM_{number}" for number in FIVE]
    for name in names:
        ensure_resource_class(db, name)
    add_provider(db, 6, **dict.fromkeys(names, 1))
    assert list(list_inventories(db, provider(6)).inventories) == names
    claim(db, holding(12, {6: {names[late - 1]: 1}}))
    with pytest.raises(InventoryInUse, match=f"{names[late - 1]}'"):
        restock(db, 6)
    delete_allocations(db, consumer(12))
    claim(db, holding(12, {6: dict.fromkeys(names, 1)}))
    with pytest.raises(InventoryInUse) as refusal:
        restock(db, 6)
    assert all(name in str(refusal.value) for name in names)
    delete_allocations(db, consumer(12))
    restock(db, 6)

    with db.read() as tx:
        ids = class_ids(tx, names)
    delete_resource_class(db, names[late - 1])
    keys = {Key(ProviderId(1), number): Inventory(1) for number in ids.values()}
    with pytest.raises(LostRace):
        db.write(lambda tx: put_inventories(tx, keys, stored=(), generations={}), attempts=1)

    def reshaped(class_name: str) -> list[ReshapedInventories]:
        stock = {class_name: Inventory(20)}
        return [ReshapedInventories(provider(n), generation(db, n), stock) for n in FIVE]

    reshape(db, reshaped("VCPU"), [])
    assert {list_inventories(db, provider(n)).inventories["VCPU"].total for n in FIVE} == {20}
    claim(db, *(holding(n, {}) for n in FIVE if n != late))
    with pytest.raises(InventoryInUse, match=provider(late)):
        reshape(db, reshaped("DISK_GB"), [])
    claim(db, holding(late, {}), holding(10, {}))
    reshape(db, reshaped("DISK_GB"), [])
    assert {tuple(list_inventories(db, provider(n)).inventories) for n in FIVE} == {("DISK_GB",)}
    assert schema.check(db) == []


def test_many_traits_and_aggregates_come_and_go(db: Database) -> None:
    """They are looked up by name, added, seen by a refresh, and removed."""
    names = [f"CUSTOM_{number}" for number in FIVE]
    uuids = [aggregate(number) for number in FIVE]
    index = Index(db)
    index.snapshot()
    for name in names:
        create_trait(db, name)
    assert sorted(list_traits(db, names=names, prefix=None, associated=None).names) == names
    for number in (1, 2):
        at = provider(number)
        replace_provider_traits(db, at, names, generation(db, number))
        assert sorted(get_provider_traits(db, at).names) == names
        replace_aggregates(db, at, uuids, UNSET)
        assert get_aggregates(db, at).spellings == uuids
    assert set(index.snapshot().names.aggregate_ids) == {*uuids}
    with pytest.raises(UnknownTraits, match=r"CUSTOM_X"):
        replace_provider_traits(db, provider(1), [*names, "CUSTOM_X"], generation(db, 1))
    replace_provider_traits(db, provider(1), [], generation(db, 1))
    replace_aggregates(db, provider(1), [], UNSET)
    assert get_provider_traits(db, provider(1)).names == []
    assert get_aggregates(db, provider(1)).spellings == []


def test_a_large_tree_moves_as_a_whole(db: Database) -> None:
    """Every descendant gets the new root."""
    for number in range(10, 15):
        add_provider(db, number, parent=number - 1 if number > 10 else 1)
    move(db, 1, 2)
    roots = {get_provider(db, provider(number)).root_uuid for number in (1, *range(10, 15))}
    assert roots == {provider(2)}
    assert schema.check(db) == []


def test_many_faults_are_named_and_repaired(db: Database, fresh_url: str) -> None:
    """Faults of usages, and of trees, whose providers are looked up for the message."""
    claim(db, *(holding(number, {number: {"VCPU": number}}) for number in FIVE))
    run(
        fresh_url,
        "UPDATE berth_usages SET used = 9",
        "UPDATE resource_providers SET root_provider_id = NULL",
    )
    sentences = schema.check(db)
    for number in FIVE:
        named = f"provider p{number} ({provider(number)})"
        assert sum(sentence.startswith(f"{named} has no root") for sentence in sentences) == 1
        assert sum(sentence.startswith(f"{named}, VCPU: the sum") for sentence in sentences) == 1
    repaired = list(iter_repaired(db, Owner(), part=2))
    assert [fault.sentence for fault in repaired] == sentences
    assert schema.check(db) == []
    assert used(db, *FIVE) == [1, 2, 3, 4, 5]
    assert [len(held(db, number)) for number in FIVE] == [1] * 5
