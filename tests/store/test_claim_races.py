# SPDX-License-Identifier: Apache-2.0
"""Races, staged by hand: what happens between the reads and the writes of a transaction.

SQLite itself lets only one writer begin, so a stale view is handed to the guards as they would meet
it on another engine; and whole claims are raced by threads over two open databases.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import delete

from berth.model.consumer import ConsumerWrite
from berth.model.errors import (
    CapacityExceeded,
    ConsumerGenerationConflict,
    ConsumerRace,
    LostRace,
)
from berth.model.ids import ConsumerUUID, Generation
from berth.model.inventory import Inventory
from berth.store import allocations
from berth.store.allocations import delete_allocations
from berth.store.claims import (
    Claim,
    Held,
    apply_claim,
    give_back,
    read_classes,
    read_held,
    read_providers,
)
from berth.store.consumers import read_consumers
from berth.store.engine.database import Database
from berth.store.engine.tables import consumers
from berth.store.engine.transaction import Tx
from berth.store.generations import Bump, bump_generation, bump_generations, pin_provider
from berth.store.inventories import put_inventories, remove_unused, stored_keys
from berth.store.lookups import ProviderRow, get_provider_row
from berth.store.providers import delete_provider
from berth.store.usages import provider_usages
from berth.upkeep import schema
from tests.store.fleet import (
    add_provider,
    claim,
    consumer,
    generation,
    held,
    holding,
    provider,
    restock,
)

#: Those on which somebody can write between two reads of a writer.
SERVERS = pytest.mark.engines("postgresql", "mariadb", "galera")


def seen_of(db: Database, *numbers: int) -> Claim:
    """A claim of one VCPU of p1 for each consumer, with everything about it as it is now."""
    writes = [holding(number, {1: {"VCPU": 1}}) for number in numbers]
    uuids = [write.uuid for write in writes]
    with db.read() as tx:
        return Claim(
            writes,
            read_consumers(tx, uuids),
            read_providers(tx, writes),
            read_classes(tx, writes),
            read_held(tx, uuids),
        )


def apply_once(db: Database, stale: Claim) -> None:
    """Write a claim whose reads are already past."""

    def unit(tx: Tx) -> None:
        bump_generations(tx, [Bump(one) for one in stale.bumped()])
        apply_claim(tx, stale, dict.fromkeys(stale.bumped(), 1))

    db.write(unit, attempts=1)


def test_two_creators_of_one_consumer(db: Database, other: Database) -> None:
    """The second meets the unique key, and is told without the words for a wrong generation."""
    add_provider(db, 1, VCPU=4)
    stale = seen_of(other, 1)
    claim(db, holding(1, {1: {"VCPU": 2}}, seen=None))
    with pytest.raises(ConsumerRace) as refusal:
        apply_once(other, stale)
    assert "consumer generation conflict" not in str(refusal.value)
    assert held(db, 1) == {consumer(1): {"VCPU": 2}}


def test_a_consumer_changed_in_between(db: Database, other: Database) -> None:
    """Its generation, in the WHERE of its update, decides; nothing is applied twice."""
    add_provider(db, 1, VCPU=4)
    claim(db, holding(1, {1: {"VCPU": 1}}))
    stale = seen_of(other, 1)
    claim(db, holding(1, {1: {"VCPU": 2}}))
    with pytest.raises(ConsumerRace):
        apply_once(other, stale)
    delete_allocations(db, consumer(1))
    with pytest.raises(ConsumerRace):
        apply_once(other, stale)
    assert provider_usages(db, provider(1)).usages == {"VCPU": 0}
    assert schema.check(db) == []


def test_a_consumer_moved_away_and_its_room_taken_in_between(db: Database, other: Database) -> None:
    """There is no room for who was to follow it, and yet that is not the reason: its client's view
    of the consumer is out of date, and of nothing else may it be told."""
    add_provider(db, 1, VCPU=1)
    add_provider(db, 2, VCPU=1)
    claim(db, holding(1, {1: {"VCPU": 1}}))
    writes = [holding(1, {}), holding(2, {1: {"VCPU": 1}})]
    uuids = [write.uuid for write in writes]
    with other.read() as tx:
        stored = read_consumers(tx, uuids)
    claim(db, holding(1, {2: {"VCPU": 1}}))
    claim(db, holding(3, {1: {"VCPU": 1}}))
    with other.read() as tx:
        found = (read_providers(tx, writes), read_classes(tx, writes), read_held(tx, uuids))
    with pytest.raises(ConsumerRace) as refusal:
        apply_once(other, Claim(writes, stored, *found))
    assert refusal.value.consumers == (consumer(1),)
    assert schema.check(db) == []


def test_room_taken_in_between(db: Database, other: Database) -> None:
    """Unrelated claims on one provider commute, as long as both fit; the WHERE says when not."""
    add_provider(db, 1, VCPU=2)
    stale, too_late = seen_of(other, 1), seen_of(other, 2)
    claim(db, holding(3, {1: {"VCPU": 1}}))
    apply_once(other, stale)
    with pytest.raises(CapacityExceeded) as refusal:
        apply_once(other, too_late)
    assert (refusal.value.asked, refusal.value.free) == (1, 0)
    assert schema.check(db) == []


def test_a_provider_gone_in_between(db: Database, other: Database) -> None:
    """The bump finds no row."""
    add_provider(db, 1, VCPU=2)
    stale = seen_of(other, 1)
    delete_provider(db, provider(1))
    with pytest.raises(LostRace):
        apply_once(other, stale)


def test_a_provider_moved_in_between(db: Database, other: Database) -> None:
    """Who has seen a generation gets no other one."""
    add_provider(db, 1, VCPU=2)
    with other.read() as tx:
        row = get_provider_row(tx, provider(1))
    restock(db, 1, VCPU=3)
    with pytest.raises(LostRace):
        other.write(lambda tx: bump_generation(tx, row), attempts=1)
    with pytest.raises(LostRace):
        other.write(lambda tx: pin_provider(tx, row), attempts=1)
    assert generation(db, 1) == 2


def test_an_inventory_used_in_between_stays(db: Database, other: Database) -> None:
    """The row of its usage goes only while it says zero."""
    add_provider(db, 1, VCPU=2, DISK_GB=2)
    with other.read() as tx:
        keys = stored_keys(tx, [get_provider_row(tx, provider(1)).id])
    claim(db, holding(1, {1: {"VCPU": 1}}))
    in_use = other.write(lambda tx: remove_unused(tx, keys))
    assert in_use == [min(keys)]


def test_an_inventory_that_came_or_went_in_between(db: Database, other: Database) -> None:
    """Neither written twice nor resurrected."""
    add_provider(db, 1, VCPU=2, DISK_GB=2)
    with other.read() as tx:
        keys = stored_keys(tx, [get_provider_row(tx, provider(1)).id])
    restock(db, 1, VCPU=2)
    wanted = dict.fromkeys(keys, Inventory(1))
    with pytest.raises(LostRace):
        other.write(lambda tx: put_inventories(tx, wanted, stored=keys, generations={}), attempts=1)
    with pytest.raises(LostRace):
        other.write(
            lambda tx: put_inventories(
                tx, wanted, stored=[], generations={key.provider: Generation(9) for key in wanted}
            ),
            attempts=1,
        )
    with pytest.raises(LostRace):
        other.write(lambda tx: remove_unused(tx, keys), attempts=1)
    assert schema.check(db) == []


def test_what_a_consumer_held_is_not_given_back_twice(db: Database, other: Database) -> None:
    """The number of rows that went must be the number that was read."""
    add_provider(db, 1, VCPU=2)
    claim(db, holding(1, {1: {"VCPU": 1}}))
    with other.read() as tx:
        stale = read_held(tx, [consumer(1)]), read_consumers(tx, [consumer(1)])
    delete_allocations(db, consumer(1))
    with pytest.raises(ConsumerRace):
        other.write(lambda tx: give_back(tx, *stale))
    assert provider_usages(db, provider(1)).usages == {"VCPU": 0}


def test_what_is_held_by_a_consumer_that_was_made_in_between_is_not_given_back(
    db: Database, other: Database
) -> None:
    """Its record, which nobody has read, would stay. Where there is none, as in very old data, it
    goes."""
    add_provider(db, 1, VCPU=2)
    claim(db, holding(1, {1: {"VCPU": 1}}))
    with other.read() as tx:
        late = read_held(tx, [consumer(1)])
    with pytest.raises(ConsumerRace):
        other.write(lambda tx: give_back(tx, late, {}))
    assert held(db, 1) == {consumer(1): {"VCPU": 1}}
    db.write(lambda tx: tx.connection.execute(delete(consumers)).rowcount)
    other.write(lambda tx: give_back(tx, late, {}))
    assert provider_usages(db, provider(1)).usages == {"VCPU": 0}


@contextmanager
def written_between(
    monkeypatch: pytest.MonkeyPatch, other: Database, write: ConsumerWrite
) -> Iterator[None]:
    """Somebody else writes a consumer when one of the two has been read, its record or what it
    holds, and the other not yet."""
    readers: dict[str, Callable[[Tx, Collection[ConsumerUUID]], Any]] = {
        "read_consumers": read_consumers,
        "read_held": read_held,
    }
    looks: list[str] = []

    def between(name: str, tx: Tx, uuids: Collection[ConsumerUUID]) -> Any:
        looks.append(name)
        if len(looks) == 2:
            claim(other, write)
        return readers[name](tx, uuids)

    with monkeypatch.context() as patched:
        for name in readers:
            patched.setattr(allocations, name, partial(between, name))
        yield
    assert {*looks[:2]} == {*readers}


@SERVERS
@pytest.mark.parametrize("before", [{1: {"VCPU": 1}}, {2: {"VCPU": 1}}, None])
def test_what_a_deleted_consumer_got_meanwhile_goes_with_it(
    db: Database,
    other: Database,
    monkeypatch: pytest.MonkeyPatch,
    before: dict[int, dict[str, int]] | None,
) -> None:
    """Nothing of it stays in use; who deletes has asked for no generation, and is told of none."""
    add_provider(db, 1, VCPU=4)
    add_provider(db, 2, VCPU=4)
    if before is not None:
        claim(db, holding(1, before))
    with written_between(monkeypatch, other, holding(1, {1: {"VCPU": 3}})):
        delete_allocations(db, consumer(1))
    assert held(db, 1) == {}
    assert schema.check(db) == []


@SERVERS
def test_who_is_emptied_while_it_is_made_leaves_nothing_behind(
    db: Database, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record would stay, and refuse the next who makes it."""
    add_provider(db, 1, VCPU=4)
    made = holding(1, {1: {"VCPU": 3}})
    with written_between(monkeypatch, other, made), pytest.raises(ConsumerRace):
        claim(db, holding(1, {}))
    assert held(db, 1) == {consumer(1): {"VCPU": 3}}
    assert schema.check(db) == []


def test_a_claim_is_retried_until_it_wins(db: Database) -> None:
    """Lost races are hidden from a client that sent no provider generation, within bounds."""
    add_provider(db, 1, VCPU=4)
    runs: list[int] = []

    def loses_twice(tx: Tx) -> int:
        runs.append(len(runs))
        row = get_provider_row(tx, provider(1))
        stale = ProviderRow(row.id, row.uuid, Generation(row.generation - 1))
        return bump_generation(tx, row if len(runs) == 3 else stale)

    assert db.write(loses_twice, attempts=3) == 2
    assert db.retries["lost race"] == 2
    runs.clear()
    with pytest.raises(LostRace):
        db.write(loses_twice, attempts=2)
    runs.clear()
    with pytest.raises(LostRace):
        db.write(loses_twice, attempts=0)
    assert len(runs) == 1


def test_crowds_never_overcommit(db: Database, other: Database) -> None:
    """Eight threads on two databases want twenty-four of ten; exactly ten get one."""
    add_provider(db, 1, VCPU=10)
    start = Barrier(8)

    def claims(thread: int) -> int:
        start.wait()
        won = 0
        for turn in range(3):
            try:
                claim((db, other)[thread % 2], holding(thread * 10 + turn, {1: {"VCPU": 1}}))
                won += 1
            except CapacityExceeded:
                pass
        return won

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claims, range(8))) == 10
    assert provider_usages(db, provider(1)).usages == {"VCPU": 10}
    assert generation(db, 1) == 11
    assert schema.check(db) == []


def test_of_writers_with_one_view_of_a_consumer_one_wins(db: Database, other: Database) -> None:
    """Every other one is told that its view is out of date."""
    add_provider(db, 1, VCPU=100)
    start = Barrier(6)

    def write(thread: int) -> bool:
        start.wait()
        try:
            claim((db, other)[thread % 2], holding(1, {1: {"VCPU": thread + 1}}, seen=None))
        except (ConsumerGenerationConflict, ConsumerRace):
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(write, range(6))) == 1
    assert schema.check(db) == []


def test_stale_reads_cannot_empty_a_consumer(db: Database, other: Database) -> None:
    """Not even when the old allocations look the same again."""
    add_provider(db, 1, VCPU=4)
    claim(db, holding(1, {1: {"VCPU": 1}}))
    with other.read() as tx:
        stored = read_consumers(tx, [consumer(1)])
        row = read_held(tx, [consumer(1)])
    claim(db, holding(1, {1: {"VCPU": 1}}))
    assert stored[consumer(1)].generation == 1
    emptying = Claim([holding(1, {})], stored, {}, {}, [Held(*one) for one in row])
    with pytest.raises(ConsumerRace):
        apply_once(other, emptying)
    assert held(db, 1) == {consumer(1): {"VCPU": 1}}
