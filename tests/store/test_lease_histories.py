# SPDX-License-Identifier: Apache-2.0
"""Random histories of claims with and without leases against a model of plain dicts.

Two processes write and sweep, others are killed with SIGKILL in the middle of a sweep, and time
passes as the history says. After each step every consumer holds exactly what the model says:
nothing is lost, doubled or overcommitted, no claim without a lease, or with one that has not
expired, ever vanishes, and whatever a killed sweep leaves is released by the next. An index that
lives through it knows all. Source: spec/beyond.md 7.3.
"""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from random import Random
from typing import Final, NamedTuple

import pytest
from sqlalchemy import event

from berth.index import Index
from berth.model.errors import AllocationsNotFound, CapacityExceeded
from berth.store import lease_sweep
from berth.store.allocations import consumer_allocations, delete_allocations
from berth.store.engine.database import Database
from berth.store.leases import delete_lease, expiry, put_lease
from berth.store.reshape import reshape
from berth.upkeep import schema
from tests.effort import SEED, repeat_with, scaled
from tests.fresh import opened_at
from tests.index.checking import checked
from tests.store.fleet import add_provider, claim, consumer, holding, provider, used
from tests.store.test_leases import Clock, clock, leases, rows, swept

__all__ = ["clock"]  # a fixture

CONSUMERS: Final = range(1, 7)
CAPACITY: Final = 12
STEPS: Final = 60
#: Steps after which one of them was a sweep that is killed.
_ENOUGH: Final = 4 * STEPS
#: Seconds of leases, and those that pass.
SECONDS: Final = (1, 30, 60, 61)
#: A sweep has about as many statements.
STATEMENTS: Final = 16


class Held(NamedTuple):
    """What a consumer holds; `until` is the time from noon at which its lease expires."""

    generation: int
    amount: int
    until: timedelta | None


class History:
    """A history on two open databases, and its model."""

    def __init__(self, databases: list[Database], url: str, clock: Clock, rng: Random) -> None:
        self.databases, self.url, self.clock, self.rng = databases, url, clock, rng
        self.model: dict[int, Held] = {}
        self.begin = clock.now
        self.killed = 0

    def step(self) -> None:
        """One operation of one process."""
        db, number = self.rng.choice(self.databases), self.rng.choice(CONSUMERS)
        acts = (self.write, self.write, self.release, self.lease, self.end, self.sweep, self.wait)
        self.rng.choice((*acts, self.sweep_and_die))(db, number)

    def write(self, db: Database, number: int) -> None:
        """Claim for a consumer, new or not, with a lease or without, by either route."""
        before, amount = self.model.get(number), self.rng.randint(1, 4)
        seconds = self.rng.choice((None, *SECONDS))
        until = None if seconds is None else expiry(db, seconds)
        seen = before.generation if before else None
        write = holding(number, {1: {"VCPU": amount}}, seen=seen, lease_until=until)
        fits = sum(held.amount for key, held in self.model.items() if key != number) + amount
        by_reshape = self.rng.random() < 0.3
        try:
            reshape(db, [], [write]) if by_reshape else claim(db, write)
        except CapacityExceeded:
            assert fits > CAPACITY
            return
        assert fits <= CAPACITY
        generation = before.generation + 1 if before else 1
        self.model[number] = Held(generation, amount, None if until is None else until - self.begin)

    def release(self, db: Database, number: int) -> None:
        """Release everything."""
        if self.model.pop(number, None) is not None:
            delete_allocations(db, consumer(number))
        else:
            with pytest.raises(AllocationsNotFound):
                delete_allocations(db, consumer(number))

    def lease(self, db: Database, number: int) -> None:
        """Give or renew a lease."""
        seconds = self.rng.choice(SECONDS)
        lease = put_lease(db, consumer(number), seconds)
        assert (lease is not None) == (number in self.model)
        if lease is not None:
            assert lease.expires_at == self.clock.now + timedelta(seconds=seconds)
            until = lease.expires_at - self.begin
            self.model[number] = self.model[number]._replace(until=until)

    def end(self, db: Database, number: int) -> None:
        """End a lease."""
        held = self.model.get(number)
        assert delete_lease(db, consumer(number)) == (held is not None and held.until is not None)
        if held is not None:
            self.model[number] = held._replace(until=None)

    def due(self) -> set[int]:
        """Those whose lease has expired."""
        now = self.clock.now - self.begin
        return {key for key, held in self.model.items() if held.until and held.until <= now}

    def sweep(self, db: Database, _number: int) -> None:
        """Sweep."""
        assert {each.consumer for each in swept(db)} == {consumer(key) for key in self.due()}
        for key in self.due():
            del self.model[key]

    def sweep_and_die(self, db: Database, _number: int) -> None:
        """Sweep in a process that is killed before its statement or COMMIT of some number: who is
        due is released with all that it holds, or stays."""
        left = self.rng.randrange(STATEMENTS)
        if child := os.fork():
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert status in (0, -signal.SIGKILL)
            self.killed += status != 0
            for key in self.due():
                if consumer_allocations(db, consumer(key)) is None:
                    del self.model[key]
            assert status or not self.due()
            return
        status = 1
        try:
            own = opened_at(self.url)

            def listen(*_: object) -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

            event.listen(own.engine, "before_cursor_execute", listen)
            event.listen(own.engine, "commit", listen)
            swept(own)
            status = 0
        finally:
            os._exit(status)

    def wait(self, _db: Database, _number: int) -> None:
        """Let time pass."""
        self.clock.pass_(self.rng.choice(SECONDS))

    def check(self) -> None:
        """Everything is as the model says, to either process."""
        until = {consumer(key): held.until for key, held in self.model.items() if held.until}
        for db in self.databases:
            assert leases(db) == until
            assert used(db, 1) == [sum(held.amount for held in self.model.values())]
            for number in CONSUMERS:
                shown, held = consumer_allocations(db, consumer(number)), self.model.get(number)
                assert (shown is None) == (held is None)
                if shown is not None and held is not None:
                    assert shown.generation == held.generation
                    assert shown.allocations[provider(1)][1] == {"VCPU": held.amount}
        assert rows(self.databases[0]) == len(until)


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_no_claim_without_an_expired_lease_vanishes(
    engine: str, fresh_url: str, db: Database, other: Database, clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Whatever comes in whatever order."""
    # So few that a sweep takes several commits, and several pages.
    monkeypatch.setattr(lease_sweep, "_RELEASED_MAX", 2)
    monkeypatch.setattr(lease_sweep, "_READ_MAX", 3)
    history = History([db, other], fresh_url, clock, Random(f"{SEED} leases"))
    add_provider(db, 1, VCPU=CAPACITY)
    index = Index(other)
    for number in range(scaled(STEPS * (2 if engine == "sqlite" else 1))):
        history.step()
        try:
            history.check()
            index.snapshot()
        except AssertionError as error:
            raise AssertionError(f"after step {number}; {repeat_with()}") from error
    assert history.killed or scaled(STEPS) < _ENOUGH
    assert checked(index) == []
    assert schema.check(db) == []
