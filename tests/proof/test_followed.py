# SPDX-License-Identifier: Apache-2.0
"""Who follows the fleet has a true copy of it, through any worker and node, although they are
killed: the four guarantees of `GET /berth/v1/changes` (spec/beyond.md 6.2).

BERTH_PROOF_WRITES=100000 python -m pytest tests/proof/test_followed.py -s -o faulthandler_timeout=0
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from sqlalchemy import select

from berth.config import Settings
from berth.store.engine.tables import berth_journal, resource_providers
from compare.histories.history import History
from compare.histories.spoil import well_formed
from compare.script.step import Step, request
from compare.wire import Answer
from tests.api.berth_v1.following import Counting
from tests.client import Response
from tests.e2e.serving import PATIENCE, run_berth
from tests.effort import SEED, repeat_with, scaled
from tests.fresh import Fresh
from tests.proof.followers import (
    FLEET,
    Address,
    Copy,
    Follower,
    changes_after,
    fleet_in,
    poll,
    stream,
    whole_fleet,
)
from tests.proof.model.in_process import Workers, workers_at
from tests.proof.test_killed import Killer
from tests.proof.test_workers import own_folder
from tests.proof.writers import WRITES, Writers
from tests.routes import OPERATIONS
from tests.servers.statements import run

if TYPE_CHECKING:
    from tests.proof.bounds import Bounds
    from tests.proof.conftest import Ground

#: Of so many writes in process the lazy copy asks after one.
LAZY_SHARE: Final = 0.15

#: Writers at once.
WRITERS: Final = 6

#: Acknowledged writes between two looks at the copies; one kill strikes meanwhile.
WRITES_OF_ROUND: Final = 500

#: Of so many kills one is of a whole service.
SERVICE_EVERY: Final = 4

#: Writes after which each of all kinds has been acknowledged.
ENOUGH_WRITES: Final = 3000
ALL: Final = {
    *(f"{method} {route.template}" for route, method in OPERATIONS if method != "GET"),
    *(f"PUT /berth/v1/{what}" for what in ("trees/{reference}", "drains/{name}", "flavors/{name}")),
    *(f"PUT /berth/v1/{what}" for what in ("leases/{consumer}", "aggregates/{uuid}")),
    "POST /berth/v1/place",
}


def test_two_workers_tell_of_every_commit_once(
    engine: str,
    fresh: Fresh,
    settings: Settings,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """Through histories in which ids come again, also of berth's own requests: one copy asks after
    each write, another now and then, and both indexes hold. In a cluster each worker has a node of
    its own."""
    url = fresh(tmp_path)
    urls = request.getfixturevalue("galera").urls(url)[:2] if engine == "galera" else [url] * 2
    steps = 200 if engine == "sqlite" else 60
    with workers_at(urls, settings) as workers:
        for number in range(scaled(3 if engine == "sqlite" else 1)):
            Told(workers, f"{SEED}.{number}").play(steps)


class Told:
    """A history, what the journal says of it, and two copies of the fleet."""

    def __init__(self, workers: Workers, seed: str) -> None:
        self._workers = workers
        self._asks = workers.begin()
        self._seed = seed
        self._rng = random.Random(seed)
        self._foreign = Counting()
        for database in workers.databases:
            database.observer = self._foreign
        self._seen = {row[:3] for row in self._notes()}
        self._noted: Counter[str | None] = Counter()
        self._copies = [Copy(*fleet_in(self._ask(request("GET", FLEET)).body)) for _ in range(2)]

    def play(self, steps: int) -> None:
        """Play it, and compare after each write."""
        history = History(self._seed, steps, writers=WRITES, spoilers={well_formed: 1})
        for step in history.steps():
            answer = self._ask(step)
            assert answer.status < 500, f"{step}: {answer}"
            history.picture.learn(step, Answer(answer.status, {}, answer.body))
            if step.method != "GET" and answer.status < 300:
                self._compare(step)

    def _compare(self, step: Step) -> None:
        self._count()
        for copy in self._copies[: 2 if self._rng.random() < LAZY_SHARE else 1]:
            told = self._ask(request("GET", changes_after(copy.revision)))
            copy.take(told.body)
            revision, lines = fleet_in(self._ask(request("GET", FLEET)).body)
            assert not copy.faults, f"{step}: {copy.faults}; {repeat_with()}"
            assert (copy.revision, copy.lines) == (revision, lines), f"{step}; {repeat_with()}"
            assert copy.commits == self._noted, f"{step}; {repeat_with()}"
        assert not self._workers.check(self._rng.randrange(2)), f"{step}; {repeat_with()}"
        assert not self._foreign.found, "a write of berth was taken for another program's"

    def _count(self) -> None:
        """What the journal says of the last write, by UUID."""
        with self._workers.databases[0].engine.connect() as connection:
            rows = connection.execute(select(resource_providers.c.id, resource_providers.c.uuid))
            uuids: dict[int, str] = {row.id: row.uuid for row in rows}
        for *key, gone in self._notes():
            if tuple(key) not in self._seen:
                self._seen.add(tuple(key))
                self._noted[None if key[2] == 0 else gone or uuids[key[2]]] += 1

    def _notes(self) -> list[tuple[Any, ...]]:
        note = berth_journal.c
        query = select(note.writer_id, note.seq, note.provider_id, note.gone_uuid)
        with self._workers.databases[0].engine.connect() as connection:
            return [tuple(row) for row in connection.execute(query)]

    def _ask(self, step: Step) -> Response:
        return self._rng.choice(self._asks)(step)


def test_followers_have_the_fleet_and_hear_of_every_commit_once(
    ground: Ground, bounds: Bounds
) -> None:
    """One polls, and one reads server-sent events, from one service after the other."""
    print(f"seed {bounds.seed}")
    rounds = max(1, bounds.writes // WRITES_OF_ROUND)
    with ExitStack() as stack:
        killers = [
            Killer(
                replace(ground, confs=(conf,), home=own_folder(conf)),
                random.Random(f"{bounds.seed}/{place}"),
                stack,
                bounds.kill_each_s,
            )
            for place, conf in enumerate(ground.confs)
        ]
        addresses = [(killer.service.host, killer.service.port) for killer in killers]
        heads = dict(run(ground.database_url, "SELECT id, seq FROM berth_writer"))
        followers = [Follower(addresses, how) for how in (poll, stream)]
        for follower in followers:
            stack.callback(follower.stop)
        writers = Writers(addresses, WRITERS, bounds.seed)
        began = time.monotonic()
        for number in range(rounds):
            threads = writers.write(bounds.writes // rounds)
            killer = killers[number % len(killers)]
            killer.strike(whole=number % SERVICE_EVERY == SERVICE_EVERY - 1)
            for thread in threads:
                thread.join()
            for killer in killers:
                killer.settle()
            check_at_rest(ground.database_url, addresses, followers, heads)
        took = time.monotonic() - began
    done = writers.acknowledged
    print(f"{done.total()} writes, {rounds} kills, {took:.0f} s: {dict(done)}")
    for follower in followers:
        print(f"{follower.commits.total()} commits told in {dict(follower.answers)} answers")
    faults = [fault for writer in writers.writers for fault in writer.faults]
    faults += [fault for follower in followers for fault in follower.faults]
    assert not faults, "\n".join([f"seed {bounds.seed}", *faults[:5]])
    assert done.keys() >= ALL or done.total() < ENOUGH_WRITES, ALL - done.keys()
    checked = run_berth(ground.home, "db", "check", "--config-file", str(ground.conf))
    assert checked.returncode == 0, f"seed {bounds.seed}\n{checked.stdout}{checked.stderr}"


def check_at_rest(
    url: str, addresses: Sequence[Address], followers: Sequence[Follower], heads: dict[int, int]
) -> None:
    """Wait until all followers have the revision of the fleet, and compare them with it, as every
    service shows it, and what they were told with the journal.

    Args:
        heads: how far each writer had come when the followers began.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        assert time.monotonic() < deadline, [follower.revision for follower in followers]
        assert not any(follower.faults for follower in followers), followers[0].faults
        shown = [whole_fleet(address) for address in addresses]
        states = [follower.state() for follower in followers]
        if len({revision for revision, *_ in (*shown, *states)}) > 1:
            time.sleep(0.02)
            continue
        notes = run(url, "SELECT writer_id, seq, provider_id, gone_uuid FROM berth_journal")
        ids = run(url, "SELECT id, uuid FROM resource_providers")
        # A lease may have expired in between.
        if whole_fleet(addresses[0])[0] == shown[0][0]:
            break
    for _, lines, *_ in (*shown, *states):
        assert lines == shown[0][1]
    noted = [note[2:] for note in notes if note[1] > heads.get(note[0], 0)]
    for _, _, told in states:
        check_sums(told, noted, dict(ids))


def check_sums(
    told: Counter[str | None], noted: Sequence[tuple[int, str | None]], uuids: dict[int, str]
) -> None:
    """Each commit is told once.

    SQLite gives an id to several providers in turn, and the journal does not tell whose a commit
    was. Their sums are compared together; a commit that deletes one and creates the next has one
    note, and is told of both.

    Args:
        noted: the ids of the journal, and the UUIDs that it says are gone.
        uuids: of the providers that exist, by id.
    """
    counts: Counter[int] = Counter(number for number, _ in noted)
    holders: defaultdict[int, set[str]] = defaultdict(set)
    for number, gone in noted:
        if gone is not None:
            holders[number].add(gone)
        if number in uuids:
            holders[number].add(uuids[number])
    assert told[None] == counts.pop(0, 0)
    several = {uuid for number in counts if len(holders[number]) > 1 for uuid in holders[number]}
    expected: Counter[str] = Counter()
    for number, count in counts.items():
        if len(holders[number]) == 1 and not holders[number] & several:
            expected[next(iter(holders[number]))] += count
    assert {uuid: told[uuid] for uuid in expected} == expected
    deletions = sum(gone is not None for _, gone in noted)
    more = told.total() - len(noted)
    assert 0 <= more <= (deletions if several else 0)
