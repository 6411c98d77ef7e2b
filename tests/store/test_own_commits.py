# SPDX-License-Identifier: Apache-2.0
"""An index takes over what its own process claims and releases without reading it again, as long as
nobody else has committed in between."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from uuid import uuid4

import pytest
from sqlalchemy import insert

from berth.index import Index
from berth.model.consumer import ConsumerWrite
from berth.model.errors import AllocationsNotFound, CapacityExceeded
from berth.model.ids import ConsumerUUID, Generation, ProviderUUID
from berth.model.shown import UNSET
from berth.store.allocations import delete_allocations, replace_allocations
from berth.store.engine import transaction
from berth.store.engine.database import Database
from berth.store.engine.tables import consumers
from berth.store.index_feed import writer_heads
from berth.store.providers import update_provider
from tests.effort import scaled
from tests.index.checking import checked
from tests.store.statements import counted_statements
from tests.world_in_store import build_in_store
from tests.worlds import consumer_uuid, provider_uuid, world

FLEET = world("cn1  MEMORY_MB=64\n  numa1  VCPU=4\ncn2  VCPU=9  DISK_GB=100")
HOSTS = ("numa1", "cn2")
ONE_VCPU = MappingProxyType({"VCPU": 1})


def claim(db: Database, host: str, vm: object, amounts: Mapping[str, int] = ONE_VCPU) -> None:
    """Allocate something for a consumer that must be new."""
    uuid = ConsumerUUID(consumer_uuid(f"vm{vm}"))
    allocations = {ProviderUUID(provider_uuid(host)): amounts}
    write = ConsumerWrite(uuid, allocations, "p", "u", generation=None)
    replace_allocations(db, [write], attempts=1)


def release(db: Database, vm: object) -> None:
    """Delete what a consumer has."""
    delete_allocations(db, ConsumerUUID(consumer_uuid(f"vm{vm}")))


def rename(db: Database, host: str, name: str) -> None:
    """Change a provider in what is not its usage."""
    uuid = ProviderUUID(provider_uuid(host))
    update_provider(db, uuid, name=name, parent_uuid=UNSET, may_reparent=False)


@pytest.mark.parametrize("others", [False, True])
def test_own_claims_are_not_read_again(db: Database, other: Database, others: bool) -> None:
    """Unless another process has committed something too: its index follows the journal."""
    build_in_store(FLEET, db)
    claim(db, "cn2", "before")
    index = Index(db)
    index.snapshot()
    claim(db, "cn2", 1)
    claim(db, "numa1", 2)
    release(db, 1)
    if others:
        claim(other, "cn2", 3)
    with counted_statements(db) as statements:
        index.snapshot()
    read = {match[1] for each in statements for match in re.finditer(r"FROM (\w+)", each)}
    assert ({"berth_journal", "resource_providers"} <= read) == others
    assert index.counts.usages == 2
    assert checked(index) == []


@pytest.mark.parametrize(("own_max", "moves_max"), [(3, 256), (64, 1)])
def test_what_a_process_remembers_is_bounded(
    db: Database, monkeypatch: pytest.MonkeyPatch, own_max: int, moves_max: int
) -> None:
    """By the number of commits, and by the usages of each: up to the bound the index reads nothing,
    and beyond it the journal."""
    monkeypatch.setattr(transaction, "_OWN_MAX", own_max)
    monkeypatch.setattr(transaction, "_MOVES_MAX", moves_max)
    build_in_store(FLEET, db)
    index = Index(db)
    index.snapshot()

    def reads_after(*claimed: Mapping[str, int]) -> bool:
        for amounts in claimed:
            claim(db, "cn2", uuid4(), amounts)
        with counted_statements(db) as statements:
            index.snapshot()
        assert checked(index) == []
        return any("FROM berth_journal" in each for each in statements)

    one, two = {"VCPU": 1}, {"VCPU": 1, "DISK_GB": 1}
    assert not reads_after(one, one, one)
    assert reads_after(one, one, one, one) == (own_max == 3)
    assert reads_after(two) == (moves_max == 1)
    assert not reads_after(one)


@pytest.mark.parametrize("seed", range(scaled(10)))
def test_an_index_follows_its_own_process_and_others(
    db: Database, other: Database, seed: int
) -> None:
    """Through claims, releases and other changes by either, in any order; it is asked now and
    then."""
    build_in_store(FLEET, db)
    index = Index(db)
    rng = random.Random(seed)
    for number in range(40):
        by, host = rng.choice((db, db, other)), rng.choice(HOSTS)
        match rng.randrange(8):
            case 0:
                rename(by, host, f"{host} {number}")
            case 1:
                index.snapshot()
            case 2:
                assert checked(index) == []
            case 3 | 4:
                with suppress(AllocationsNotFound):
                    release(by, rng.randrange(number + 1))
            case _:
                with suppress(CapacityExceeded):
                    claim(by, host, number)
    assert checked(index) == []


def test_a_consumer_that_has_nothing_is_emptied_without_a_commit_of_note(db: Database) -> None:
    """OpenStack Placement can leave such a record. The clock row stays this process's."""
    build_in_store(FLEET, db)
    claim(db, "cn2", 1)

    def writers() -> int:
        with db.read() as tx:
            return len(writer_heads(tx))

    before = writers()
    for number in (2, 3):
        left = {"project_id": 1, "user_id": 1, "generation": 0}
        uuid = ConsumerUUID(consumer_uuid(f"vm{number}"))
        with db.engine.begin() as connection:
            connection.execute(insert(consumers).values(uuid=uuid, **left))
        empty = ConsumerWrite(uuid, {}, "p", "u", generation=Generation(0))
        replace_allocations(db, [empty], attempts=1)
        claim(db, "cn2", f"after {number}")
    assert writers() == before
