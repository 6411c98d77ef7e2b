# SPDX-License-Identifier: Apache-2.0
"""Races, staged by hand: what another process commits between the reads and the writes of a claim.

SQLite lets only one writer begin, so these tests pass stale reads to the writing half, as it would
get them on another engine. Others race whole claims in threads over two open databases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import cycle, repeat
from threading import Event
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, delete
from sqlalchemy.exc import DBAPIError

from berth.model.consumer import ConsumerWrite
from berth.model.errors import (
    AllocationsNotFound,
    CapacityExceeded,
    ConsumerRace,
    LostRace,
    UnitViolation,
)
from berth.model.ids import Generation
from berth.model.inventory import Inventory
from berth.store import allocations
from berth.store.allocations import delete_allocations
from berth.store.claim_reads import ClaimFacts, read_claim_facts, read_release_facts
from berth.store.claims import Claim, release, write_claim, write_claim_of_bumped
from berth.store.engine.database import Database
from berth.store.engine.tables import consumers
from berth.store.engine.transaction import Tx
from berth.store.generations import bump_generation, pinning
from berth.store.inventories import put_inventories, remove_unused, stored_keys
from berth.store.lookups import ProviderRow, get_provider_row
from berth.store.providers import delete_provider
from berth.upkeep import schema
from tests.e2e.serving import wait_until
from tests.sql_reads import provider_usages
from tests.store.fleet import (
    add_provider,
    claim,
    consumer,
    generation,
    held,
    holding,
    provider,
    restock,
    used,
)
from tests.store.together import race

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")

#: Those on which somebody can write between two reads of a writer.
SERVERS = pytest.mark.engines("postgresql", "mariadb", "galera")


def seen_of(db: Database, *numbers: int) -> Claim:
    """A claim of one VCPU of p1 for each consumer, with the facts as they are now."""
    writes = [holding(number, {1: {"VCPU": 1}}) for number in numbers]
    with db.read() as tx:
        return Claim(writes, read_claim_facts(tx, writes))


def apply_once(db: Database, stale: Claim) -> None:
    """Write a claim from facts that were read earlier."""

    def unit(tx: Tx) -> None:
        write_claim(tx, stale, dict.fromkeys(stale.bumped(), 1))

    db.write(unit, attempts=1)


def test_two_creators_of_one_consumer(db: Database, other: Database) -> None:
    """The second one violates the unique key; its error does not mention a wrong generation."""
    add_provider(db, 1, VCPU=4)
    stale = seen_of(other, 1)
    claim(db, holding(1, {1: {"VCPU": 2}}, seen=None))
    with pytest.raises(ConsumerRace) as refusal:
        apply_once(other, stale)
    assert "consumer generation conflict" not in str(refusal.value)
    assert held(db, 1) == {consumer(1): {"VCPU": 2}}


def test_a_consumer_changed_in_between(db: Database, other: Database) -> None:
    """The UPDATE's WHERE compares the consumer's generation; nothing is written twice."""
    add_provider(db, 1, VCPU=4)
    claim(db, holding(1, {1: {"VCPU": 1}}))
    stale = seen_of(other, 1)
    claim(db, holding(1, {1: {"VCPU": 2}}))
    with pytest.raises(ConsumerRace):
        apply_once(other, stale)
    delete_allocations(db, consumer(1))
    with pytest.raises(ConsumerRace):
        apply_once(other, stale)
    assert used(db, 1) == [0]
    assert schema.check(db) == []


def test_a_consumer_moved_away_and_its_room_taken_in_between(db: Database, other: Database) -> None:
    """There is no capacity left for a second consumer either, but the error is the stale consumer:
    its client decided from an outdated view."""
    add_provider(db, 1, VCPU=1)
    add_provider(db, 2, VCPU=1)
    claim(db, holding(1, {1: {"VCPU": 1}}))
    writes = [holding(1, {}), holding(2, {1: {"VCPU": 1}})]
    with other.read() as tx:
        before = read_claim_facts(tx, writes)
    claim(db, holding(1, {2: {"VCPU": 1}}))
    claim(db, holding(3, {1: {"VCPU": 1}}))
    with other.read() as tx:
        # As where a list of names takes two statements.
        facts = replace(read_claim_facts(tx, writes), consumers=before.consumers)
    with pytest.raises(ConsumerRace) as refusal:
        apply_once(other, Claim(writes, facts))
    assert f"of consumer {consumer(1)} were changed" in str(refusal.value)
    assert schema.check(db) == []


def test_a_reshape_whose_consumer_moved_away_lost_a_race(db: Database, other: Database) -> None:
    """What the consumer held and the room as it is now never were there together, so a lack of
    capacity would be that of a state which never existed."""
    add_provider(db, 1, VCPU=2)
    add_provider(db, 2, VCPU=1)
    claim(db, holding(1, {1: {"VCPU": 1}}))
    writes = [holding(1, {}), holding(2, {1: {"VCPU": 2}})]
    with other.read() as tx:
        stale = Claim(writes, read_claim_facts(tx, writes))
    claim(db, holding(1, {2: {"VCPU": 1}}))
    claim(db, holding(3, {1: {"VCPU": 2}}))

    def unit(tx: Tx) -> None:
        bump_generation(tx, get_provider_row(tx, provider(1)))
        write_claim_of_bumped(tx, stale, {})

    with pytest.raises(ConsumerRace):
        other.write(unit, attempts=1)
    assert schema.check(db) == []


def test_room_taken_in_between(db: Database, other: Database) -> None:
    """Claims on one provider do not conflict while both fit; the WHERE refuses the one that does
    not."""
    add_provider(db, 1, VCPU=2)
    stale, too_late = seen_of(other, 1), seen_of(other, 2)
    claim(db, holding(3, {1: {"VCPU": 1}}))
    apply_once(other, stale)
    with pytest.raises(CapacityExceeded) as refusal:
        apply_once(other, too_late)
    assert refusal.value.hint == "1 asked, 0 free."
    assert schema.check(db) == []


def test_a_provider_moved_or_gone_in_between(db: Database, other: Database) -> None:
    """A write with the generation that its client read is refused after another write; and a claim
    finds no row to update of a provider that is gone."""
    add_provider(db, 1, VCPU=2)
    stale = seen_of(other, 1)
    with other.read() as tx:
        row = get_provider_row(tx, provider(1))
    restock(db, 1, VCPU=3)
    for write in (
        lambda tx: bump_generation(tx, row),
        lambda tx: tx.change_all([pinning(tx, row)]),
    ):
        with pytest.raises(LostRace):
            other.write(write, attempts=1)
    assert generation(db, 1) == 2
    delete_provider(db, provider(1))
    with pytest.raises(LostRace):
        apply_once(other, stale)


def test_an_inventory_that_came_went_or_was_used_in_between(db: Database, other: Database) -> None:
    """It is neither written twice nor created again, and removed only if its usage is 0."""
    add_provider(db, 1, VCPU=2, DISK_GB=2)
    with other.read() as tx:
        keys = stored_keys(tx, [get_provider_row(tx, provider(1)).id])
    restock(db, 1, VCPU=2)
    wanted = dict.fromkeys(keys, Inventory(1))
    generations = {key.provider: Generation(9) for key in wanted}
    for write in (
        lambda tx: put_inventories(tx, wanted, stored=keys, generations={}),
        lambda tx: put_inventories(tx, wanted, stored=[], generations=generations),
    ):
        with pytest.raises(LostRace):
            other.write(write, attempts=1)
    with pytest.raises(LostRace):
        other.write(lambda tx: remove_unused(tx, keys), attempts=1)
    assert schema.check(db) == []
    claim(db, holding(1, {1: {"VCPU": 1}}))
    assert other.write(lambda tx: remove_unused(tx, keys)) == [min(keys)]


def test_what_a_consumer_held_is_given_back_once(db: Database, other: Database) -> None:
    """The number of deleted rows must be the number that was read; and of a consumer that was made
    since, whose record was not read, the record would stay behind. Old data without a record is
    deleted."""
    add_provider(db, 1, VCPU=2)
    claim(db, holding(1, {1: {"VCPU": 1}}))
    with other.read() as tx:
        stale = read_release_facts(tx, [consumer(1)])
    late = replace(stale, consumers={})
    with pytest.raises(ConsumerRace):
        other.write(lambda tx: release(tx, late))
    assert held(db, 1) == {consumer(1): {"VCPU": 1}}
    delete_allocations(db, consumer(1))
    with pytest.raises(ConsumerRace):
        other.write(lambda tx: release(tx, stale))
    assert used(db, 1) == [0]
    claim(db, holding(1, {1: {"VCPU": 1}}))
    db.write(lambda tx: tx.connection.execute(delete(consumers)).rowcount)
    other.write(lambda tx: release(tx, late))
    assert used(db, 1) == [0]


@contextmanager
def written_between(
    monkeypatch: pytest.MonkeyPatch, other: Database, write: ConsumerWrite
) -> Iterator[None]:
    """Another process writes a consumer after the claim has read it, and before it writes."""
    reads: list[str] = []

    def between(
        name: str, read: Callable[..., ClaimFacts], tx: Tx, *args: Any, **options: Any
    ) -> ClaimFacts:
        facts = read(tx, *args, **options)
        reads.append(name)
        if len(reads) == 1:
            claim(other, write)
        return facts

    with monkeypatch.context() as patched:
        for name in ("read_claim_facts", "read_release_facts"):
            patched.setattr(allocations, name, partial(between, name, getattr(allocations, name)))
        yield
    assert reads


@SERVERS
@pytest.mark.parametrize("before", [{1: {"VCPU": 1}}, {2: {"VCPU": 1}}])
def test_what_a_deleted_consumer_got_meanwhile_goes_with_it(
    db: Database,
    other: Database,
    monkeypatch: pytest.MonkeyPatch,
    before: dict[int, dict[str, int]],
) -> None:
    """DELETE removes allocations that were added after the read: it has no generation to conflict
    with."""
    add_provider(db, 1, VCPU=4)
    add_provider(db, 2, VCPU=4)
    claim(db, holding(1, before))
    with written_between(monkeypatch, other, holding(1, {1: {"VCPU": 3}})):
        delete_allocations(db, consumer(1))
    assert held(db, 1) == {}
    assert schema.check(db) == []


@SERVERS
@pytest.mark.parametrize("is_deleted", [True, False])
def test_who_is_made_after_it_was_read_is_not_released(
    db: Database, other: Database, monkeypatch: pytest.MonkeyPatch, is_deleted: bool
) -> None:
    """By DELETE or by empty allocations: it did not exist at the read, which reads the record and
    the allocations in one statement."""
    add_provider(db, 1, VCPU=4)
    with written_between(monkeypatch, other, holding(1, {1: {"VCPU": 3}})):
        if is_deleted:
            with pytest.raises(AllocationsNotFound):
                delete_allocations(db, consumer(1))
        else:
            claim(db, holding(1, {}))
    assert held(db, 1) == {consumer(1): {"VCPU": 3}}
    assert schema.check(db) == []


@SERVERS
def test_a_claim_passes_where_another_has_moved_the_provider_since_it_was_read(
    db: Database, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch finds another generation; the claim is then checked against the current
    inventory."""
    add_provider(db, 1, VCPU=4, MEMORY_MB=8)
    with written_between(monkeypatch, other, holding(2, {1: {"VCPU": 2, "MEMORY_MB": 4}})):
        claim(db, holding(1, {1: {"VCPU": 2, "MEMORY_MB": 4}}))
    assert provider_usages(db, provider(1)).usages == {"VCPU": 4, "MEMORY_MB": 8}
    assert not db.retries
    with (
        written_between(monkeypatch, other, holding(2, {1: {"VCPU": 1}})),
        pytest.raises(CapacityExceeded) as refusal,
    ):
        claim(db, holding(3, {1: {"VCPU": 1, "MEMORY_MB": 5}}))
    assert "5" in str(refusal.value.hint) and "4" in str(refusal.value.hint)
    assert schema.check(db) == []


@SERVERS
def test_an_inventory_that_shrank_since_a_claim_was_read_is_the_one_that_counts(
    db: Database, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current inventory decides, including its units."""
    add_provider(db, 1, VCPU=4)

    def read_and_shrink(tx: Tx, writes: Sequence[ConsumerWrite], *record: Any) -> ClaimFacts:
        facts = read_claim_facts(tx, writes, *record)
        restock(other, 1, VCPU=Inventory(4, max_unit=1))
        return facts

    monkeypatch.setattr(allocations, "read_claim_facts", read_and_shrink)
    with pytest.raises(UnitViolation):
        claim(db, holding(1, {1: {"VCPU": 2}}))
    claim(db, holding(1, {1: {"VCPU": 1}}))
    assert schema.check(db) == []


def test_a_claim_is_retried_until_it_wins(db: Database) -> None:
    """A client that sent no provider generation does not see lost races; the retries are
    bounded."""
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
    """Eight threads on two databases want 24 of 10 VCPU; exactly ten claims succeed."""
    add_provider(db, 1, VCPU=10)
    outcomes = []
    for turn in range(3):
        writes = [holding(10 * turn + number, {1: {"VCPU": 1}}) for number in range(8)]
        outcomes += race(*map(partial, repeat(claim), cycle((db, other)), writes))
    assert outcomes.count(None) == 10 and outcomes.count(CapacityExceeded) == 14
    assert used(db, 1) == [10]
    assert generation(db, 1) == 11
    assert schema.check(db) == []


def test_stale_reads_cannot_empty_a_consumer(db: Database, other: Database) -> None:
    """Not even if the new allocations are equal to the old ones; nor one that was made since, whose
    record would stay, so that the next client that creates it would be refused."""
    add_provider(db, 1, VCPU=4)
    claim(db, holding(1, {1: {"VCPU": 1}}))
    with other.read() as tx:
        stale = read_claim_facts(tx, [holding(1, {})])
    claim(db, holding(1, {1: {"VCPU": 1}}))
    assert stale.consumers[consumer(1)].generation == 1
    for facts in (stale, replace(stale, consumers={})):
        with pytest.raises(ConsumerRace):
            apply_once(other, Claim([holding(1, {})], facts))
    assert held(db, 1) == {consumer(1): {"VCPU": 1}}
    assert schema.check(db) == []


@pytest.mark.engines("postgresql")
def test_a_claim_that_locks_out_of_order_gives_up_before_there_is_a_deadlock(
    db: Database, other: Database
) -> None:
    """PostgreSQL detects a deadlock only after a second, in which both transactions stand still.

    The claim has locked p2 and still needs p1, whose generation was not as it had read; another
    transaction has locked p1, and needs p2.
    """
    add_provider(db, 1, VCPU=4)
    add_provider(db, 2, VCPU=4)
    writes = [holding(1, {1: {"VCPU": 1}, 2: {"VCPU": 1}})]
    with other.read() as tx:
        stale = Claim(writes, read_claim_facts(tx, writes))
    claim(db, holding(2, {1: {"VCPU": 1}}))
    states: list[str | None] = []
    given_up = Event()

    def unit(tx: Tx) -> None:
        try:
            write_claim(tx, stale, dict.fromkeys(stale.bumped(), 1))
        except DBAPIError as error:
            states.append(getattr(error.orig, "sqlstate", None))
            given_up.set()
            raise

    def waits(connection: Connection) -> bool:
        waiting = connection.exec_driver_sql("SELECT 1 FROM pg_locks WHERE NOT granted")
        return waiting.first() is not None

    lock = "SELECT 1 FROM berth_usages WHERE resource_provider_id = {} FOR UPDATE"
    with db.read() as tx:
        first, second = (get_provider_row(tx, provider(number)).id for number in (1, 2))
    with ThreadPoolExecutor(1) as pool, db.engine.connect() as connection:
        connection.exec_driver_sql(lock.format(first))
        claimed = pool.submit(other.write, unit)
        wait_until(lambda: given_up.is_set() or waits(connection), "the claim waits for p1")
        connection.exec_driver_sql(lock.format(second))
        connection.rollback()
        claimed.result()
    assert set(states) == {"55P03"}
    assert used(db, 1) == [2]
    assert schema.check(db) == []
