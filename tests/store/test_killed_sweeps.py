# SPDX-License-Identifier: Apache-2.0
"""Processes that sweep are killed with SIGKILL in the middle, while clients claim, renew, write and
release: every consumer with an expired lease is released once, and no other loses anything.

Source: spec/beyond.md 7.3.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import pytest

from berth.index import Index
from berth.model.errors import AllocationsNotFound, ConcurrentUpdate
from berth.model.ids import ConsumerUUID
from berth.store.allocations import delete_allocations
from berth.store.engine.database import Database
from berth.store.leases import delete_lease, expiry, put_lease
from berth.upkeep import schema
from tests.effort import SEED, repeat_with, scaled
from tests.index.checking import checked
from tests.sql_reads import provider_usages
from tests.store.conftest import Opener
from tests.store.fleet import add_provider, claim, consumer, held, holding, provider
from tests.store.test_leases import Clock, clock, rows, swept

__all__ = ["clock"]  # a fixture

ROOT: Final = Path(__file__).parent.parent.parent

PROVIDERS: Final = (1, 2, 3)
CLIENTS: Final = 3
#: Processes that sweep at once.
SWEEPERS: Final = 2
#: What each client has in each round: consumers whose lease expires, of which it leaves about half
#: alone, and consumers whose lease does not expire, or that have none.
DUE, OTHERS = 8, 4
#: A sweep of what one round leaves over has more statements than this.
STATEMENTS: Final = 60
TIMEOUT_S: Final = 120

EVERY = pytest.mark.engines("sqlite", "postgresql", "mariadb", "galera")


class Held(NamedTuple):
    """What a consumer holds; `is_due`: unless a sweep has taken it back."""

    place: int
    amount: int
    is_due: bool


class Party:
    """A client with consumers of its own, and what it knows of them: nobody else writes them but
    the sweeps."""

    def __init__(self, db: Database, number: int) -> None:
        self._db = db
        self._rng = Random(f"{SEED} killed sweeps {number}")
        self._next = number * 10_000
        #: By number.
        self.known: dict[int, Held] = {}
        #: Those that a sweep had taken back when the client came.
        self.late: set[ConsumerUUID] = set()

    def prepare(self) -> None:
        """Claim what is due in an hour, and what is not."""
        for _ in range(DUE):
            self._claim(3600)
        for _ in range(OTHERS):
            self._claim(self._rng.choice((None, 36_000_000)))

    def act(self) -> None:
        """Do something with about half of the consumers that are due, and with all others, and
        claim for new ones meanwhile."""
        for number in self._rng.sample(sorted(self.known), len(self.known)):
            if self.known[number].is_due and self._rng.random() < 0.5:
                continue
            self._rng.choice((self._renew, self._end, self._write, self._release))(number)
            if self._rng.random() < 0.3:
                self._claim(self._rng.choice((None, 36_000_000)))

    def _claim(self, seconds: int | None) -> None:
        number, self._next = self._next, self._next + 1
        place, amount = self._rng.choice(PROVIDERS), self._rng.randint(1, 4)
        self._put(number, place, amount, seen=None, seconds=seconds)
        self.known[number] = Held(place, amount, seconds == 3600)

    def _put(
        self, number: int, place: int, amount: int, *, seen: int | None, seconds: int | None
    ) -> None:
        until = None if seconds is None else expiry(self._db, seconds)
        write = holding(number, {place: {"VCPU": amount}}, seen=seen, lease_until=until)
        claim(self._db, write, attempts=100)

    def _renew(self, number: int) -> None:
        if put_lease(self._db, consumer(number), 36_000_000) is None:
            self._is_late(number)
        else:
            self.known[number] = self.known[number]._replace(is_due=False)

    def _end(self, number: int) -> None:
        had_none = not self.known[number].is_due
        if delete_lease(self._db, consumer(number)) or had_none:
            self.known[number] = self.known[number]._replace(is_due=False)
        else:
            self._is_late(number)

    def _write(self, number: int) -> None:
        """What was due is at generation 1 until it is taken back."""
        before = self.known[number]
        if not before.is_due:
            return
        try:
            self._put(number, before.place, before.amount + 1, seen=1, seconds=None)
        except ConcurrentUpdate:
            self._is_late(number)
        else:
            self.known[number] = Held(before.place, before.amount + 1, is_due=False)

    def _release(self, number: int) -> None:
        try:
            _insisting(lambda: delete_allocations(self._db, consumer(number)))
        except AllocationsNotFound:
            self._is_late(number)
        else:
            del self.known[number]

    def _is_late(self, number: int) -> None:
        assert self.known.pop(number).is_due, f"{consumer(number)} has lost what it held"
        self.late.add(consumer(number))


def _insisting(act: Callable[[], object]) -> None:
    """Try until nobody else was faster."""
    for _ in range(100):
        try:
            act()
            return
        except ConcurrentUpdate:
            continue
    raise AssertionError("somebody else was faster a hundred times")


class Sweepers:
    """Processes that are killed while they sweep."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        #: What they said that they have released; a killed one did not get to say it of its last.
        self.released: list[str] = []
        self.killed_count = 0

    def sweep(self, now: datetime, numbers: list[int]) -> None:
        """Let some processes sweep at once, each up to its statement of a number."""
        assert self._process.stdin and self._process.stdout
        print(now.isoformat(), *numbers, file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            kind, *words = line.split()
            if kind == "ended":
                assert {*words} <= {"0", str(-signal.SIGKILL)}
                self.killed_count += words.count(str(-signal.SIGKILL))
                return
            self.released += words
        raise AssertionError("the processes that sweep have ended")


@contextmanager
def sweepers(url: str) -> Iterator[Sweepers]:
    """Starts the process that starts them."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.store.killed_sweeps", url],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Sweepers(process)
            assert process.stdin
            process.stdin.close()
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()


@pytest.mark.thorough
@EVERY
def test_sweeps_that_are_killed_release_every_expired_consumer_once(
    engine: str, fresh_url: str, opened: Opener, clock: Clock
) -> None:
    """A consumer whose lease has expired goes with all that it holds, or stays until the next
    sweep; the sums are those of what is left, and an index that lived through it knows all."""
    db, index = opened(), Index(opened())
    for place in PROVIDERS:
        add_provider(db, place, VCPU=100_000)
    parties = [Party(opened(), number) for number in range(CLIENTS)]
    rng = Random(f"{SEED} killed sweeps")
    with sweepers(fresh_url) as killed, ThreadPoolExecutor(CLIENTS + 1) as pool:
        for _ in range(max(2, scaled(10 if engine == "sqlite" else 5))):
            finish(pool.submit(party.prepare) for party in parties)
            clock.pass_(3600)
            numbers = [rng.randint(1, STATEMENTS) for _ in range(SWEEPERS)]
            sweep = pool.submit(killed.sweep, clock.now, numbers)
            finish([*(pool.submit(party.act) for party in parties), sweep])
            index.snapshot()
    assert killed.killed_count, "each sweep was faster than its death"
    in_the_end = [each.consumer for each in swept(db)]
    check(db, parties, killed.released, in_the_end)
    assert checked(index) == []
    assert schema.check(db) == [], repeat_with()


def finish(tasks: Iterable[Future[None]]) -> None:
    """Wait for some threads, all of which have begun."""
    for task in list(tasks):
        task.result(TIMEOUT_S)


def check(
    db: Database, parties: Sequence[Party], told: Sequence[str], in_the_end: Sequence[str]
) -> None:
    """Audit the database against what the clients know."""
    known = {consumer(n): each for party in parties for n, each in party.known.items()}
    due = {uuid for uuid, each in known.items() if each.is_due}
    late = set[str]().union(*(party.late for party in parties))
    reported = [*told, *in_the_end]
    assert len(reported) == len({*reported}), f"released twice; {repeat_with()}"
    assert {*reported} <= due | late, f"released, but not due; {repeat_with()}"
    assert {*in_the_end} <= due, f"released although it had been; {repeat_with()}"
    kept = {uuid: each for uuid, each in known.items() if not each.is_due}
    for place in PROVIDERS:
        theirs = {uuid: each.amount for uuid, each in kept.items() if each.place == place}
        holders = {uuid: amounts["VCPU"] for uuid, amounts in held(db, place).items()}
        assert holders == theirs, repeat_with()
        assert provider_usages(db, provider(place)).usages["VCPU"] == sum(theirs.values())
    assert rows(db) <= len(kept)
