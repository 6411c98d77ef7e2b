# SPDX-License-Identifier: Apache-2.0
"""Races of leases, staged: a sweep against renewals, against other sweeps, and against writes of
the consumer, in every order. Source: spec/beyond.md 7.3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from threading import Barrier
from typing import Any

import pytest

from berth.model.ids import Generation
from berth.store import lease_sweep
from berth.store.allocations import delete_allocations
from berth.store.claim_reads import ClaimFacts, read_claim_facts, read_release_facts
from berth.store.claims import Claim, release, write_claim
from berth.store.consumer_lists import get_consumer
from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from berth.store.lease_sweep import Expired
from berth.store.leases import Lease, delete_lease, expiry, get_lease, put_lease
from berth.upkeep import schema
from tests.store.conftest import Opener
from tests.store.fleet import add_provider, claim, consumer, holding, used
from tests.store.statements import cut_before
from tests.store.test_leases import VCPU, Clock, clock, leases, rows, swept
from tests.store.together import race

__all__ = ["clock"]  # a fixture

EVERY = pytest.mark.engines("sqlite", "postgresql", "mariadb", "galera")
#: Those on which somebody can write between two reads of a writer.
SERVERS = pytest.mark.engines("postgresql", "mariadb", "galera")


def reclaim(db: Database, number: int) -> None:
    """Release what the consumer holds, and claim for it again."""
    delete_allocations(db, consumer(number))
    claim(db, holding(number, VCPU))


def write(db: Database, number: int, until: datetime | None = None) -> None:
    """Write a consumer at its generation."""
    claim(db, holding(number, VCPU, project="web", seen=1, lease_until=until))


#: What another process may do to a consumer: whether it holds something after that and a sweep,
#: and whether it then has a lease.
ACTS: dict[str, tuple[Callable[[Database, int], object], bool, bool]] = {
    "renew": (lambda db, n: put_lease(db, consumer(n), 60), True, True),
    # As if the clock had gone back: it expires in the same second as before.
    "renew to the same time": (lambda db, n: put_lease(db, consumer(n), 0), True, True),
    "end": (lambda db, n: delete_lease(db, consumer(n)), True, False),
    "end and give again": (
        lambda db, n: (delete_lease(db, consumer(n)), put_lease(db, consumer(n), 60)),
        True,
        True,
    ),
    "write": (write, True, False),
    "write with a lease": (lambda db, n: write(db, n, expiry(db, 60)), True, True),
    "release": (lambda db, n: delete_allocations(db, consumer(n)), False, False),
    "release and claim again": (reclaim, True, False),
    "sweep": (lambda db, n: swept(db), False, False),
}

#: Another sweep leaves nothing for the others.
AT_ONCE = pytest.mark.parametrize(
    "acts", [[*ACTS][:-1], ["sweep"]], ids=["writes", "another sweep"]
)


def make_due(db: Database, clock: Clock, consumers: int) -> None:
    """A host, and consumers, whose leases have just expired."""
    add_provider(db, 1, VCPU=100)
    until = expiry(db, 60)
    claim(db, *(holding(n, VCPU, project="web", lease_until=until) for n in range(consumers)))
    clock.pass_(60)


def check(db: Database, acts: Sequence[str]) -> None:
    """Everything is as it is after the acts, each on the consumer of its number."""
    _, holds, has_lease = zip(*(ACTS[act] for act in acts), strict=True)
    shown = [get_consumer(db, consumer(number)) is not None for number in range(len(acts))]
    assert dict(zip(acts, shown, strict=True)) == dict(zip(acts, holds, strict=True))
    leased = leases(db)
    shown = [consumer(number) in leased for number in range(len(acts))]
    assert dict(zip(acts, shown, strict=True)) == dict(zip(acts, has_lease, strict=True))
    assert (used(db, 1), rows(db)) == ([sum(holds)], sum(has_lease))
    assert schema.check(db) == []


@EVERY
@AT_ONCE
def test_what_comes_before_a_sweep_wins(
    db: Database, other: Database, clock: Clock, acts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep has read that leases are due; then it releases nothing, and nothing is lost."""
    make_due(db, clock, len(acts))
    expire = lease_sweep._expire

    def late(where: Database, due: list[Lease]) -> list[Expired]:
        if where is db:
            for number, act in enumerate(acts):
                ACTS[act][0](other, number)
        return expire(where, due)

    monkeypatch.setattr(lease_sweep, "_expire", late)
    assert swept(db) == []
    check(db, acts)


@SERVERS
@AT_ONCE
def test_what_comes_in_the_middle_of_a_sweep_wins(
    db: Database, other: Database, clock: Clock, acts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the reads of a sweep's transaction and its writes."""
    make_due(db, clock, len(acts))
    left = dict(enumerate(acts))

    def late(tx: Tx, facts: ClaimFacts, **options: Any) -> object:
        while left:
            number, act = left.popitem()
            ACTS[act][0](other, number)
        return release(tx, facts, **options)

    monkeypatch.setattr(lease_sweep, "release", late)
    swept(db)
    check(db, acts)


@EVERY
def test_what_comes_after_a_sweep_finds_nothing(
    db: Database, other: Database, clock: Clock
) -> None:
    """The consumers are gone."""
    make_due(db, clock, 2)
    assert {each.consumer for each in swept(db)} == {consumer(0), consumer(1)}
    assert put_lease(other, consumer(0), 60) is None and not delete_lease(other, consumer(1))
    assert (leases(db), rows(db), used(db, 1)) == ({}, 0, [0])


@EVERY
def test_ten_workers_sweep(opened: Opener, clock: Clock) -> None:
    """Each consumer is released once, and a renewal that came first keeps its own."""
    databases = [opened() for _ in range(10)]
    db = databases[0]
    add_provider(db, 1, VCPU=100)
    claim(db, *(holding(n, VCPU, lease_until=expiry(db, 60)) for n in range(1, 21)))
    clock.pass_(60)
    put_lease(db, consumer(20), 60)
    begin = Barrier(len(databases))

    def worker(each: Database) -> list[Expired]:
        begin.wait()
        return swept(each)

    with ThreadPoolExecutor(len(databases)) as pool:
        released = [expired for part in pool.map(worker, databases) for expired in part]
    assert sorted(each.consumer for each in released) == [consumer(n) for n in range(1, 20)]
    assert (used(db, 1), leases(db)) == ([1], {consumer(20): timedelta(seconds=120)})
    assert schema.check(db) == []


@pytest.mark.engines("sqlite", "postgresql")
def test_a_sweep_that_is_cut_off_leaves_everything_to_the_next(
    db: Database, other: Database, clock: Clock
) -> None:
    """Before any of its statements: the consumer holds what it held, and its lease is still due."""
    make_due(db, clock, 1)
    for number in count():
        with cut_before(db, number) as cut:
            released = swept(db)
        if not cut:
            break
        assert (used(other, 1), leases(other)) == ([1], {consumer(0): timedelta(seconds=60)})
    assert [each.consumer for each in released] == [consumer(0)] and number > 5
    assert (used(other, 1), rows(other), schema.check(other)) == ([0], 0, [])


def test_a_lease_given_between_the_read_and_the_write_of_a_claim(
    db: Database, other: Database, clock: Clock
) -> None:
    """The write ends it: it is of the generation before."""
    add_provider(db, 1, VCPU=100)
    claim(db, holding(1, VCPU))
    write = holding(1, {1: {"VCPU": 2}}, seen=1)
    with db.read() as tx:
        stale = Claim([write], read_claim_facts(tx, [write]))
    put_lease(other, consumer(1), 60)
    db.write(lambda tx: write_claim(tx, stale, dict.fromkeys(stale.bumped(), 1)), attempts=1)
    assert leases(db) == {} and get_lease(db, consumer(1)) is None
    clock.pass_(60)
    assert (swept(db), used(db, 1)) == ([], [2])
    put_lease(other, consumer(1), 60)
    assert leases(db) == {consumer(1): timedelta(seconds=120)}


@SERVERS
def test_a_lease_given_between_the_read_and_the_write_of_a_release(
    db: Database, other: Database, clock: Clock
) -> None:
    """It counts for no later consumer with the same uuid."""
    add_provider(db, 1, VCPU=100)
    claim(db, holding(1, VCPU))
    with db.read() as tx:
        stale = read_release_facts(tx, [consumer(1)])
    put_lease(other, consumer(1), 60)
    db.write(lambda tx: release(tx, stale), attempts=1)
    claim(db, holding(1, VCPU))
    assert leases(db) == {}
    clock.pass_(60)
    assert (swept(db), used(db, 1), rows(db)) == ([], [1], 0)
    claim(db, holding(1, VCPU, seen=1, lease_until=expiry(db, 60)))
    assert leases(db) == {consumer(1): timedelta(seconds=120)}


def test_two_give_a_lease_at_once(db: Database, other: Database, clock: Clock) -> None:
    """Both succeed; the later one counts."""
    add_provider(db, 1, VCPU=100)
    claim(db, holding(1, VCPU))
    outcome = race(*(partial(put_lease, each, consumer(1), 60) for each in (db, other)))
    assert outcome == [None, None]
    assert (leases(db), rows(db)) == ({consumer(1): timedelta(seconds=60)}, 1)
    stored = get_consumer(db, consumer(1))
    assert stored is not None and stored.generation == Generation(1)
