# SPDX-License-Identifier: Apache-2.0
"""Random histories of claims with and without leases against a model of plain dicts.

Two processes write and sweep, and time passes as the history says. After each step every consumer
holds exactly what the model says: nothing is lost, doubled or overcommitted, and no claim without a
lease, or with one that has not expired, ever vanishes. Source: spec/beyond.md 7.3.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import pytest

from berth.model.errors import AllocationsNotFound, CapacityExceeded
from berth.model.ids import Generation
from berth.store.allocations import consumer_allocations, delete_allocations
from berth.store.engine.database import Database
from berth.store.leases import delete_lease, expiry, put_lease
from berth.store.reshape import reshape
from berth.upkeep import schema
from tests.effort import SEED, repeat_with, scaled
from tests.store.conftest import Opener
from tests.store.fleet import add_provider, claim, consumer, holding, provider, used
from tests.store.test_leases import Clock, clock, leases, rows, swept

__all__ = ["clock"]  # a fixture

CONSUMERS: Final = range(1, 6)
CAPACITY: Final = 9
STEPS: Final = 60
#: Seconds of leases, and those that pass.
SECONDS: Final = (1, 30, 60, 61)


class Held(NamedTuple):
    """What a consumer holds; `until` is the time from noon at which its lease expires."""

    generation: int
    amount: int
    until: timedelta | None


class History:
    """A history on two open databases, and its model."""

    def __init__(self, databases: list[Database], clock: Clock, rng: Random) -> None:
        self.databases = databases
        self.clock = clock
        self.rng = rng
        self.model: dict[int, Held] = {}
        self.begin = clock.now

    @property
    def now(self) -> timedelta:
        """The time from noon."""
        return self.clock.now - self.begin

    def step(self) -> None:
        """One operation of one process."""
        db, number = self.rng.choice(self.databases), self.rng.choice(CONSUMERS)
        acts = (self.write, self.write, self.release, self.lease, self.end, self.sweep, self.wait)
        self.rng.choice(acts)(db, number)

    def write(self, db: Database, number: int) -> None:
        """Claim for a consumer, new or not, with a lease or without, by either route."""
        before = self.model.get(number)
        amount = self.rng.randint(1, 4)
        seconds = self.rng.choice((None, *SECONDS))
        until = None if seconds is None else expiry(db, seconds)
        write = holding(
            number,
            {1: {"VCPU": amount}},
            seen=before.generation if before else None,
            lease_until=until,
        )
        others = sum(held.amount for key, held in self.model.items() if key != number)
        by_reshape = self.rng.random() < 0.3
        try:
            reshape(db, [], [write]) if by_reshape else claim(db, write)
        except CapacityExceeded:
            assert others + amount > CAPACITY
            return
        assert others + amount <= CAPACITY
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
            until = lease.expires_at - self.begin
            assert until == self.now + timedelta(seconds=seconds)
            self.model[number] = self.model[number]._replace(until=until)

    def end(self, db: Database, number: int) -> None:
        """End a lease."""
        held = self.model.get(number)
        assert delete_lease(db, consumer(number)) == (held is not None and held.until is not None)
        if held is not None:
            self.model[number] = held._replace(until=None)

    def sweep(self, db: Database, number: int) -> None:
        """Sweep."""
        expired = {
            key
            for key, held in self.model.items()
            if held.until is not None and held.until <= self.now
        }
        assert {each.consumer for each in swept(db)} == {consumer(key) for key in expired}
        for key in expired:
            del self.model[key]

    def wait(self, db: Database, number: int) -> None:
        """Let time pass."""
        self.clock.pass_(self.rng.choice(SECONDS))

    def check(self) -> None:
        """Everything is as the model says, to either process."""
        until = {consumer(key): held.until for key, held in self.model.items() if held.until}
        for db in self.databases:
            assert leases(db) == until
            assert used(db, 1) == [sum(held.amount for held in self.model.values())]
            for number in CONSUMERS:
                shown = consumer_allocations(db, consumer(number))
                held = self.model.get(number)
                if held is None:
                    assert shown is None
                    continue
                assert shown is not None and shown.generation == Generation(held.generation)
                ((_, amounts),) = [shown.allocations[provider(1)]]
                assert amounts == {"VCPU": held.amount}
        assert rows(self.databases[0]) == len(until)


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_no_claim_without_an_expired_lease_vanishes(
    engine: str, opened: Opener, clock: Clock, tmp_path: Path
) -> None:
    """Whatever comes in whatever order."""
    history = History([opened(), opened()], clock, Random(f"{SEED} leases"))
    add_provider(history.databases[0], 1, VCPU=CAPACITY)
    for number in range(scaled(STEPS * (4 if engine == "sqlite" else 1))):
        history.step()
        try:
            history.check()
        except AssertionError as error:
            raise AssertionError(f"after step {number}; {repeat_with()}") from error
    assert schema.check(history.databases[0]) == []
