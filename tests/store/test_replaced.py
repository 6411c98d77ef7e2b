# SPDX-License-Identifier: Apache-2.0
"""What writes replaced, as the audit log is told: exactly, and without a statement more."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import pytest

from berth.model.drain import DrainName, Effect
from berth.model.ids import ClassId, Generation, ProviderId
from berth.model.inventory import Inventory
from berth.store import lease_sweep
from berth.store.allocations import delete_allocations, release_consumer, replace_allocations
from berth.store.drains import delete_drain, put_drain
from berth.store.engine.database import Database
from berth.store.inventories import (
    Key,
    ReplacedInventories,
    delete_inventories,
    delete_inventory,
    replace_inventories,
)
from berth.store.leases import put_lease
from berth.store.lookups import class_ids, get_provider_row
from berth.store.replaced import Holder, ReplacedAllocations, ReplacedDrain
from berth.store.reshape import ReshapedInventories, reshape
from tests.store.fleet import add_provider, claim, consumer, generation, holding, provider
from tests.store.statements import counted_statements
from tests.store.together import together

#: Seconds for one write.
TIMEOUT: Final = 20

VCPU, MEMORY_MB = ClassId(0), ClassId(1)


@pytest.fixture
def fleet(db: Database) -> Database:
    """Two hosts; consumer 1 is web/job-17, and consumer 2 has the same name in another project."""
    add_provider(db, 1, VCPU=8, MEMORY_MB=64)
    add_provider(db, 2, VCPU=8)
    claim(db, holding(1, {1: {"VCPU": 2, "MEMORY_MB": 8}}, project="web", name="job-17"))
    claim(db, holding(2, {2: {"VCPU": 1}}, project="attic", user="bob", name="job-17"))
    return db


HOLDERS = {
    consumer(1): Holder("web", "user", "job-17"),
    consumer(2): Holder("attic", "bob", "job-17"),
}


def key(db: Database, number: int, class_id: ClassId = VCPU) -> Key:
    """The key of an inventory."""
    with db.read() as tx:
        return Key(get_provider_row(tx, provider(number)).id, class_id)


def test_a_claim_tells_what_its_consumers_had(fleet: Database) -> None:
    """Of all of them, new ones included; and of nobody else."""
    replaced = ReplacedAllocations()
    writes = [
        holding(1, {2: {"VCPU": 3}}, seen=1, project="new"),
        holding(2, {}, seen=1, project="attic", user="bob"),
        holding(3, {1: {"VCPU": 1}}, seen=None),
    ]
    replace_allocations(fleet, writes, attempts=1, replaced=replaced)
    assert replaced.holders == HOLDERS
    assert set(replaced.allocations) == {
        (consumer(1), key(fleet, 1), 2),
        (consumer(1), key(fleet, 1, MEMORY_MB), 8),
        (consumer(2), key(fleet, 2), 1),
    }


@pytest.mark.parametrize(
    "release",
    [
        lambda db, replaced: delete_allocations(db, consumer(1), replaced=replaced),
        lambda db, replaced: release_consumer(db, consumer(1), Generation(1), replaced=replaced),
    ],
    ids=["at any generation", "at a generation"],
)
def test_a_release_tells_what_the_consumer_had(
    fleet: Database, release: Callable[[Database, ReplacedAllocations], None]
) -> None:
    """And whose it was."""
    replaced = ReplacedAllocations()
    expected = {(consumer(1), key(fleet, 1), 2), (consumer(1), key(fleet, 1, MEMORY_MB), 8)}
    release(fleet, replaced)
    assert set(replaced.allocations) == expected
    assert replaced.holders == {consumer(1): HOLDERS[consumer(1)]}


def test_releases_that_share_a_commit_are_told_apart(fleet: Database) -> None:
    """Each request gets its own consumer's allocations."""
    expected = [{(consumer(1), key(fleet, 1), 2)}, {(consumer(2), key(fleet, 2), 1)}]
    both = [ReplacedAllocations(), ReplacedAllocations()]
    with together(fleet) as ask:
        asked = [
            ask(partial(delete_allocations, replaced=replaced), fleet, consumer(number))
            for number, replaced in enumerate(both, start=1)
        ]
        ask(delete_allocations, fleet, consumer(9))
    assert [each.result(TIMEOUT) for each in asked] == [None, None]
    for replaced, one_of_each in zip(both, expected, strict=True):
        assert one_of_each <= set(replaced.allocations)
        (own,) = {each[0] for each in one_of_each}
        assert {each.consumer for each in replaced.allocations} == {own} == replaced.holders.keys()


def test_claims_of_new_consumers_replace_nothing(fleet: Database) -> None:
    """Also if an earlier run has noted something, before the claims shared a commit."""
    stale = ReplacedAllocations(holders=dict(HOLDERS))
    with together(fleet) as ask:
        asked = [
            ask(
                partial(replace_allocations, attempts=1, replaced=stale if number == 11 else None),
                fleet,
                [holding(number, {1: {"VCPU": 1}})],
            )
            for number in (10, 11, 12)
        ]
    assert [each.result(TIMEOUT) for each in asked] == [None] * 3
    assert stale == ReplacedAllocations()


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_a_sweep_tells_what_the_consumers_of_each_commit_had(
    fleet: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is that commit's turn; and the consumers can be told apart."""
    noon = datetime(2026, 11, 24, 12)
    monkeypatch.setattr(Database, "clock", lambda db: noon)
    for number in (1, 2):
        put_lease(fleet, consumer(number), 60)
    monkeypatch.setattr(Database, "clock", lambda db: noon + timedelta(seconds=60))
    monkeypatch.setattr(lease_sweep, "_RELEASED_MAX", 1)
    expected = {
        consumer(1): {(consumer(1), key(fleet, 1), 2), (consumer(1), key(fleet, 1, MEMORY_MB), 8)},
        consumer(2): {(consumer(2), key(fleet, 2), 1)},
    }
    replaced, every = ReplacedAllocations(), ReplacedAllocations()
    for [expired] in lease_sweep.sweep(fleet, replaced=replaced):
        assert set(replaced.allocations) == expected.pop(expired.consumer)
        assert replaced.holders == {expired.consumer: HOLDERS[expired.consumer]}
        every.add(replaced)
    assert (expected, every.holders) == ({}, HOLDERS)
    assert {*every.holders} == {uuid for each in every.each() for uuid in each.holders}
    assert sum(len(each.allocations) for each in every.each()) == 3


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_a_drain_tells_what_it_was(fleet: Database) -> None:
    """Before it was created, replaced and deleted; and nothing if there was none."""
    name, replaced = DrainName("rack-7"), ReplacedDrain()

    def put(number: int, effect: Effect) -> None:
        put_drain(
            fleet,
            name,
            [provider(number)],
            effect=effect,
            reason="why",
            created_by="alice",
            replaced=replaced,
        )

    def was() -> tuple[Effect | None, set[ProviderId]]:
        effect = None if replaced.drain is None else replaced.drain.effect
        return effect, {*replaced.providers}

    put(1, Effect.EXCLUDE)
    assert was() == (None, set())
    put(2, Effect.NONE)
    assert was() == (Effect.EXCLUDE, {key(fleet, 1).provider})
    assert delete_drain(fleet, name, replaced=replaced)
    assert was() == (Effect.NONE, {key(fleet, 2).provider})
    put(1, Effect.NONE)
    assert was() == (None, set())


def test_inventories_tell_what_the_provider_had(fleet: Database) -> None:
    """All of them, whatever is written."""
    stored = {key(fleet, 1): Inventory(8), key(fleet, 1, MEMORY_MB): Inventory(64)}
    replaced = ReplacedInventories()
    wanted = {"VCPU": Inventory(16), "MEMORY_MB": Inventory(32), "DISK_GB": Inventory(9)}
    seen = generation(fleet, 1)
    replace_inventories(fleet, provider(1), seen, wanted, replaced=replaced)
    assert replaced.inventories == stored
    with fleet.read() as tx:
        disk = key(fleet, 1, class_ids(tx, ["DISK_GB"])["DISK_GB"])
    now = {key(fleet, 1): Inventory(16), key(fleet, 1, MEMORY_MB): Inventory(32)}
    delete_inventory(fleet, provider(1), "DISK_GB", replaced=replaced)
    assert replaced.inventories == now | {disk: Inventory(9)}
    delete_allocations(fleet, consumer(1))
    delete_inventories(fleet, provider(1), replaced=replaced)
    assert replaced.inventories == now


def test_a_reshape_tells_both(fleet: Database) -> None:
    """Inventories of its providers, allocations of its consumers."""
    allocations, inventories = ReplacedAllocations(), ReplacedInventories()
    expected = {(consumer(2), key(fleet, 2), 1)}
    reshaped = ReshapedInventories(provider(2), generation(fleet, 2), {"VCPU": Inventory(4)})
    writes = [holding(2, {2: {"VCPU": 2}}, seen=1, project="attic", user="bob")]
    reshape(
        fleet,
        [reshaped],
        writes,
        replaced_allocations=allocations,
        replaced_inventories=inventories,
    )
    assert set(allocations.allocations) == expected
    assert allocations.holders == {consumer(2): HOLDERS[consumer(2)]}
    assert inventories.inventories == {key(fleet, 2): Inventory(8)}


def statements(db: Database, number: int, *, is_told: bool) -> list[str]:
    """Those of a claim of a new consumer, of a move, and of a release."""
    replaced = ReplacedAllocations() if is_told else None
    with counted_statements(db) as sent:
        for place in (1, 2):
            write = holding(number, {place: {"VCPU": 1}})
            replace_allocations(db, [write], attempts=1, replaced=replaced)
        delete_allocations(db, consumer(number), replaced=replaced)
    return sent


def test_telling_takes_no_statement_more(fleet: Database) -> None:
    """It only makes one of them wider."""
    statements(fleet, 4, is_told=False)
    told, silent = (statements(fleet, 5, is_told=is_told) for is_told in (True, False))
    assert len(told) == len(silent) > 6
