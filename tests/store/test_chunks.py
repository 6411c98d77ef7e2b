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
from berth.model.filters import ProviderFilters
from berth.model.ids import ProviderId
from berth.model.inventory import Inventory
from berth.model.sentinels import UNSET
from berth.store.aggregates import replace_aggregates
from berth.store.allocations import consumer_allocations, delete_allocations
from berth.store.engine.database import Database
from berth.store.inventories import Key, put_inventories
from berth.store.lookups import class_ids
from berth.store.providers import get_provider, update_provider
from berth.store.reshape import ReshapedInventories, reshape
from berth.store.resource_classes import delete_resource_class, ensure_resource_class
from berth.store.traits import create_trait, list_traits, replace_provider_traits
from berth.store.usages import project_usages
from berth.upkeep import schema
from tests.fresh import opened_at
from tests.servers.statements import run
from tests.sql_reads import (
    get_aggregates,
    get_provider_traits,
    list_inventories,
    provider_usages,
)
from tests.store.fleet import (
    add_provider,
    aggregate,
    claim,
    consumer,
    generation,
    held,
    holding,
    provider,
    restock,
)
from tests.store.listing import list_providers
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


def used(db: Database) -> list[int]:
    """The usage of each provider."""
    return [provider_usages(db, provider(number)).usages["VCPU"] for number in FIVE]


def test_what_many_consumers_held_is_given_back_when_they_move(db: Database) -> None:
    """One write moves them all: their records, their allocations and all usages are updated."""
    claim(db, *(holding(number, {number: {"VCPU": number}}) for number in FIVE))
    assert used(db) == [1, 2, 3, 4, 5]
    claim(db, *(holding(number, {6 - number: {"VCPU": 10}}, seen=1) for number in FIVE))
    assert used(db) == [10] * 5
    claim(db, *(holding(number, {}, seen=2) for number in FIVE))
    assert used(db) == [0] * 5
    assert [consumer_allocations(db, consumer(number)) for number in FIVE] == [None] * 5
    assert schema.check(db) == []


@pytest.mark.parametrize("late", FIVE)
def test_each_of_many_is_judged(db: Database, late: int) -> None:
    """A fault in any chunk is reported: a stale generation, a full provider, an unknown one."""
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
    assert used(db) == [10 if number == late else 1 for number in FIVE]


def test_one_consumer_moves_from_many_providers_to_many(db: Database) -> None:
    """All allocations on the former providers are released."""
    claim(db, holding(1, {number: {"VCPU": 10} for number in FIVE}))
    claim(db, holding(1, {number: {"VCPU": 3} for number in FIVE}, seen=1))
    assert used(db) == [3] * 5
    delete_allocations(db, consumer(1))
    assert used(db) == [0] * 5


def test_claims_and_releases_that_share_a_transaction(db: Database) -> None:
    """Five of each kind share the transaction."""
    with together(db) as ask:
        asked = [ask(claim, db, holding(n, {n: {"VCPU": n}}, seen=None)) for n in FIVE]
    assert [future.result(30) for future in asked] == [None] * 5
    assert used(db) == [1, 2, 3, 4, 5]
    with together(db) as ask:
        asked = [ask(delete_allocations, db, consumer(number)) for number in FIVE]
    assert [future.result(30) for future in asked] == [None] * 5
    assert used(db) == [0] * 5
    assert schema.check(db) == []


def test_many_projects_users_and_types_in_one_write(db: Database) -> None:
    """The write creates the new owners, and the next write finds them."""
    for seen in (None, 1):
        claim(
            db,
            *(
                holding(
                    number,
                    {number: {"VCPU": number}},
                    seen=seen,
                    project=f"project-{number}",
                    user=f"user-{number}",
                    consumer_type=f"TYPE_{number}",
                )
                for number in FIVE
            ),
        )
        for number in FIVE:
            assert project_usages(db, f"project-{number}", f"user-{number}") == {"VCPU": number}


@pytest.mark.parametrize("late", FIVE)
def test_many_inventories_go_only_if_none_is_in_use(db: Database, late: int) -> None:
    """If one of the classes is in use, all inventories stay."""
    stock = {f"CUSTOM_{number}": number for number in FIVE}
    for name in stock:
        ensure_resource_class(db, name)
    restock(db, 1, **stock)
    assert list(list_inventories(db, provider(1)).inventories) == list(stock)
    claim(db, holding(1, {1: {f"CUSTOM_{late}": 1}}))
    with pytest.raises(InventoryInUse, match=f"CUSTOM_{late}'"):
        restock(db, 1)
    delete_allocations(db, consumer(1))
    restock(db, 1)
    for name in stock:
        delete_resource_class(db, name)


@pytest.mark.parametrize("late", FIVE)
def test_a_class_that_goes_meanwhile_gets_no_inventory(db: Database, late: int) -> None:
    """RACE: the class is deleted after it was looked up and before the inventory is written."""
    for number in FIVE:
        ensure_resource_class(db, f"CUSTOM_{number}")
    with db.read() as tx:
        ids = class_ids(tx, [f"CUSTOM_{number}" for number in FIVE])
    delete_resource_class(db, f"CUSTOM_{late}")
    keys = {Key(ProviderId(1), number): Inventory(1) for number in ids.values()}
    with pytest.raises(LostRace):
        db.write(lambda tx: put_inventories(tx, keys, stored=(), generations={}), attempts=1)


def test_a_refusal_names_every_class_in_use(db: Database) -> None:
    """It names every class that is in use."""
    stock = {f"CUSTOM_{number}": number for number in FIVE}
    for name in stock:
        ensure_resource_class(db, name)
    restock(db, 1, **stock)
    claim(db, holding(1, {1: dict.fromkeys(stock, 1)}))
    with pytest.raises(InventoryInUse) as refusal:
        restock(db, 1)
    assert all(name in str(refusal.value) for name in stock)


@pytest.mark.parametrize("late", FIVE)
def test_a_reshape_of_many_providers(db: Database, late: int) -> None:
    """In each chunk, existing inventories are updated and those in use stay."""

    def reshaped(class_name: str) -> list[ReshapedInventories]:
        stock = {class_name: Inventory(20)}
        return [ReshapedInventories(provider(n), generation(db, n), stock) for n in FIVE]

    claim(db, holding(1, {late: {"VCPU": 1}}))
    reshape(db, reshaped("VCPU"), [])
    assert {list_inventories(db, provider(n)).inventories["VCPU"].total for n in FIVE} == {20}
    with pytest.raises(InventoryInUse, match=provider(late)):
        reshape(db, reshaped("DISK_GB"), [])
    delete_allocations(db, consumer(1))
    reshape(db, reshaped("DISK_GB"), [])
    assert {tuple(list_inventories(db, provider(n)).inventories) for n in FIVE} == {("DISK_GB",)}
    assert schema.check(db) == []


def test_many_traits_come_and_go(db: Database) -> None:
    """They are looked up by name, added, used in a filter, and removed."""
    names = [f"CUSTOM_{number}" for number in FIVE]
    for name in names:
        create_trait(db, name)
    replace_provider_traits(db, provider(1), names, generation(db, 1))
    assert sorted(get_provider_traits(db, provider(1)).names) == names
    traits = list_traits(db, names=names, prefix=None, associated=None)
    assert sorted(traits.names) == names
    any_of, all_of = (frozenset(names),), tuple(frozenset({name}) for name in names)
    for required in (any_of, all_of):
        wanted = ProviderFilters(required=required)
        assert [row.uuid for row in list_providers(db, wanted)] == [provider(1)]
    with pytest.raises(UnknownTraits, match=r"CUSTOM_X"):
        replace_provider_traits(db, provider(1), [*names, "CUSTOM_X"], generation(db, 1))
    replace_provider_traits(db, provider(1), [], generation(db, 1))
    assert get_provider_traits(db, provider(1)).names == []


def test_any_of_many_will_do(db: Database) -> None:
    """Each provider has one of the traits and is in one of the aggregates."""
    for number in FIVE:
        create_trait(db, f"CUSTOM_{number}")
        replace_provider_traits(db, provider(number), [f"CUSTOM_{number}"], generation(db, number))
        replace_aggregates(db, provider(number), [aggregate(number)], UNSET)
    traits = frozenset(f"CUSTOM_{number}" for number in FIVE)
    aggregates = frozenset(aggregate(number) for number in FIVE)
    for wanted, expected in (
        (ProviderFilters(required=(traits,)), list(FIVE)),
        (ProviderFilters(forbidden=traits), []),
        (ProviderFilters(member_of=(aggregates,)), list(FIVE)),
        (ProviderFilters(not_member_of=aggregates), []),
    ):
        assert [row.uuid for row in list_providers(db, wanted)] == [provider(n) for n in expected]


def test_many_aggregates_come_and_go(db: Database) -> None:
    """They are looked up, joined, used in a filter, and left."""
    uuids = [aggregate(number) for number in FIVE]
    for number in (1, 2):
        replace_aggregates(db, provider(number), uuids, UNSET)
        assert get_aggregates(db, provider(number)).spellings == uuids
    for uuid in uuids:
        wanted = ProviderFilters(member_of=(frozenset({aggregate(99), aggregate(98), uuid}),))
        assert [row.uuid for row in list_providers(db, wanted)] == [
            provider(1),
            provider(2),
        ]
    replace_aggregates(db, provider(1), [], UNSET)
    assert get_aggregates(db, provider(1)).spellings == []


def test_many_aggregates_that_are_new_to_the_index(db: Database) -> None:
    """A refresh reads each aggregate that the index does not have."""
    index = Index(db)
    index.snapshot()
    replace_aggregates(db, provider(1), [aggregate(number) for number in FIVE], UNSET)
    assert set(index.snapshot().names.aggregate_ids) == {aggregate(number) for number in FIVE}


def test_a_large_tree_moves_as_a_whole(db: Database) -> None:
    """Every descendant gets the new root."""
    for number in range(10, 15):
        add_provider(db, number, parent=number - 1 if number > 10 else 1)
    update_provider(db, provider(1), name="p1", parent_uuid=provider(2), may_reparent=True)
    roots = {get_provider(db, provider(number)).root_uuid for number in (1, *range(10, 15))}
    assert roots == {provider(2)}
    assert schema.check(db) == []


def test_many_faults_are_named_and_repaired(db: Database) -> None:
    """Faults of usages, and of trees, whose providers are looked up for the message."""
    claim(db, *(holding(number, {number: {"VCPU": number}}) for number in FIVE))
    run(str(db.engine.url), "UPDATE berth_usages SET used = 9")
    run(str(db.engine.url), "UPDATE resource_providers SET root_provider_id = NULL")
    sentences = schema.check(db)
    for number in FIVE:
        named = f"provider p{number} ({provider(number)})"
        assert sum(sentence.startswith(f"{named} has no root") for sentence in sentences) == 1
        assert sum(sentence.startswith(f"{named}, VCPU: the sum") for sentence in sentences) == 1
    repaired = list(schema.iter_repaired(db, schema.Owner(), part=2))
    assert [fault.sentence for fault in repaired] == sentences
    assert schema.check(db) == []
    assert used(db) == [1, 2, 3, 4, 5]
    assert [len(held(db, number)) for number in FIVE] == [1] * 5
