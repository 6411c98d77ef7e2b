# SPDX-License-Identifier: Apache-2.0
"""Races of leases, staged: a sweep against renewals, against other sweeps, and against writes of
the consumer, in every order. Source: spec/beyond.md 7.3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import event

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
from tests.store.fleet import add_provider, claim, consumer, holding
from tests.store.test_leases import VCPU, Clock, clock, leases, rows, swept, used

__all__ = ["clock"]  # a fixture

EVERY = pytest.mark.engines("sqlite", "postgresql", "mariadb", "galera")
#: Those on which somebody can write between two reads of a writer.
SERVERS = pytest.mark.engines("postgresql", "mariadb", "galera")


@pytest.fixture
def due(db: Database, clock: Clock) -> Database:
    """A host, and consumer 1, whose lease has just expired."""
    add_provider(db, 1, VCPU=100)
    claim(db, holding(1, VCPU, project="web", lease_until=expiry(db, 60)))
    clock.pass_(60)
    return db


def reclaim(db: Database) -> None:
    """Release what the consumer holds, and claim for it again."""
    delete_allocations(db, consumer(1))
    claim(db, holding(1, VCPU))


#: What another process may do to the consumer: whether it holds something after that and a sweep,
#: and whether it then has a lease.
ACTS: dict[str, tuple[Callable[[Database], object], bool, bool]] = {
    "renew": (lambda db: put_lease(db, consumer(1), 60), True, True),
    # As if the clock had gone back: it expires in the same second as before.
    "renew to the same time": (lambda db: put_lease(db, consumer(1), 0), True, True),
    "end": (lambda db: delete_lease(db, consumer(1)), True, False),
    "end and give again": (
        lambda db: (delete_lease(db, consumer(1)), put_lease(db, consumer(1), 60)),
        True,
        True,
    ),
    "write": (lambda db: claim(db, holding(1, VCPU, project="web", seen=1)), True, False),
    "write with a lease": (
        lambda db: claim(db, holding(1, VCPU, project="web", seen=1, lease_until=expiry(db, 60))),
        True,
        True,
    ),
    "release": (lambda db: delete_allocations(db, consumer(1)), False, False),
    "release and claim again": (lambda db: reclaim(db), True, False),
    "sweep": (lambda db: swept(db), False, False),
}


@EVERY
@pytest.mark.parametrize("act", ACTS)
def test_what_comes_before_a_sweep_wins(
    due: Database, other: Database, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep has read that the lease is due; then it releases nothing, and nothing is lost."""
    run, holds, has_lease = ACTS[act]
    expire = lease_sweep._expire

    def late(db: Database, leases: list[Lease], replaced: None) -> list[Expired]:
        if db is due:
            run(other)
        return expire(db, leases, replaced)

    monkeypatch.setattr(lease_sweep, "_expire", late)
    assert swept(due) == []
    assert (get_consumer(due, consumer(1)) is not None, bool(leases(due))) == (holds, has_lease)
    assert (used(due), rows(due)) == (int(holds), int(has_lease))
    assert schema.check(due) == []


@SERVERS
@pytest.mark.parametrize("act", ACTS)
def test_what_comes_in_the_middle_of_a_sweep_wins(
    due: Database, other: Database, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the reads of a sweep's transaction and its writes."""
    run, holds, has_lease = ACTS[act]
    ran: list[int] = []

    def late(tx: Tx, facts: ClaimFacts, **options: Any) -> object:
        if not ran:
            ran.append(1)
            run(other)
        return release(tx, facts, **options)

    monkeypatch.setattr(lease_sweep, "release", late)
    swept(due)
    assert (get_consumer(due, consumer(1)) is not None, bool(leases(due))) == (holds, has_lease)
    assert (used(due), rows(due)) == (int(holds), int(has_lease))
    assert schema.check(due) == []


@EVERY
@pytest.mark.parametrize("act", ["renew", "end"])
def test_what_comes_after_a_sweep_finds_nothing(due: Database, other: Database, act: str) -> None:
    """The consumer is gone."""
    assert [each.consumer for each in swept(due)] == [consumer(1)]
    assert not ACTS[act][0](other)
    assert (leases(due), rows(due), used(due)) == ({}, 0, 0)


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
    assert (used(db), leases(db)) == (1, {consumer(20): timedelta(seconds=120)})
    assert schema.check(db) == []


class Cut(Exception):
    """The process that sweeps ends here."""


@contextmanager
def cut_before(db: Database, number: int) -> Iterator[None]:
    """Cut off a process before its statement of this number."""
    left = number

    def die(*_arguments: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Cut

    event.listen(db.engine, "before_cursor_execute", die)
    try:
        yield
    finally:
        event.remove(db.engine, "before_cursor_execute", die)


@pytest.mark.engines("sqlite", "postgresql")
def test_a_sweep_that_is_cut_off_leaves_everything_to_the_next(
    due: Database, other: Database
) -> None:
    """Before any of its statements: the consumer holds what it held, and its lease is still due."""
    for number in count(1):
        try:
            with cut_before(due, number):
                released = swept(due)
            break
        except Cut:
            assert (used(other), leases(other)) == (1, {consumer(1): timedelta(seconds=60)})
    assert [each.consumer for each in released] == [consumer(1)] and number > 5
    assert (used(other), rows(other), schema.check(other)) == (0, 0, [])


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
    assert (swept(db), used(db)) == ([], 2)
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
    assert (swept(db), used(db), rows(db)) == ([], 1, 0)
    claim(db, holding(1, VCPU, seen=1, lease_until=expiry(db, 60)))
    assert leases(db) == {consumer(1): timedelta(seconds=120)}


def test_two_give_a_lease_at_once(db: Database, other: Database, clock: Clock) -> None:
    """Both succeed; the later one counts."""
    add_provider(db, 1, VCPU=100)
    claim(db, holding(1, VCPU))
    begin = Barrier(2)

    def give(each: Database) -> None:
        begin.wait()
        assert put_lease(each, consumer(1), 60) is not None

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(give, (db, other)))
    assert (leases(db), rows(db)) == ({consumer(1): timedelta(seconds=60)}, 1)
    stored = get_consumer(db, consumer(1))
    assert stored is not None and stored.generation == Generation(1)
