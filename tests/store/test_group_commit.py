# SPDX-License-Identifier: Apache-2.0
"""Writes that share a transaction: each has its own outcome, and none is reported before the
commit.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from berth.model.errors import (
    AllocationsNotFound,
    BerthError,
    CapacityExceeded,
    ConsumerGenerationConflict,
    DatabaseUnavailable,
)
from berth.store.allocations import consumer_allocations, delete_allocations
from berth.store.engine.database import Database
from berth.store.engine.group_commit import Batchable, GroupCommit, Write
from berth.store.engine.prepared import Runner
from berth.store.engine.sqlite import SqliteDialect
from berth.store.engine.transaction import Tx
from berth.store.usages import project_usages
from tests.e2e.serving import wait_until
from tests.fresh import opened_at
from tests.store.fleet import (
    add_provider,
    claim,
    consumer,
    generation,
    holding,
    restock,
    used,
)
from tests.store.statements import counted_statements
from tests.store.together import in_background, together

#: The driver that fails on purpose is written for it.
pytestmark = pytest.mark.engines("sqlite")

TIMEOUT = 30
VCPU = {1: {"VCPU": 1}}


class Driver(sqlite3.Connection):
    """A driver that fails at COMMIT, before or after the commit takes place."""

    fails_before = 0
    fails_after = 0

    def commit(self) -> None:
        """Fail once if asked to."""
        cls = type(self)
        if cls.fails_before:
            cls.fails_before -= 1
            raise sqlite3.OperationalError("disk I/O error")
        super().commit()
        if cls.fails_after:
            cls.fails_after -= 1
            raise sqlite3.OperationalError("disk I/O error")


@pytest.fixture
def driver() -> type[Driver]:
    """A driver class of its own for each test."""
    return type("TestsDriver", (Driver,), {})


@pytest.fixture
def failing(fresh_url: str, driver: type[Driver]) -> Iterator[Database]:
    """The database, with a driver that can fail, and a host with 3 VCPU."""
    db = opened_at(fresh_url)

    @event.listens_for(db.engine, "do_connect")
    def connect(_dialect: object, _record: object, _args: object, options: dict[str, Any]) -> None:
        options["factory"] = driver

    add_provider(db, 1, VCPU=3)
    yield db
    db.dispose()


def sent_of(sent: list[str], beginning: str) -> int:
    """The number of statements that begin with this text."""
    return sum(statement.startswith(beginning) for statement in sent)


def errors_of(*asked: Future[Any]) -> list[type[BaseException] | None]:
    """The types of the errors, in their order; None for those that succeed."""
    errors = (future.exception(TIMEOUT) for future in asked)
    return [None if error is None else type(error) for error in errors]


def test_writes_that_wait_share_one_commit(db: Database) -> None:
    """Nine inventory writes on different providers: one transaction, one increment of the clock.
    Nine claims on one provider send the statements of one; each increments the generation."""
    for number in range(1, 10):
        add_provider(db, number, VCPU=10)
    with counted_statements(db) as sent, together(db) as ask:
        asked = [ask(partial(restock, db, number, VCPU=11)) for number in range(1, 10)]
    assert errors_of(*asked) == [None] * 9
    assert sent_of(sent, "UPDATE berth_writer") == 1
    assert sent_of(sent, "SAVEPOINT") == 9
    claim(db, holding(0, VCPU))
    before = generation(db, 1)
    with counted_statements(db) as alone:
        claim(db, holding(10, VCPU))
    with counted_statements(db) as sent, together(db) as ask:
        asked = [ask(claim, db, holding(number, VCPU)) for number in range(1, 9)]
    assert errors_of(*asked) == [None] * 8
    assert used(db, 1) == [10]
    assert generation(db, 1) == before + 9
    # And the beginning of the first transaction, which holds the others up.
    assert len(sent) == len(alone) + 1


def test_moves_that_share_a_commit_are_all_counted_for_their_project(db: Database) -> None:
    """Each is written by itself."""
    add_provider(db, 1, VCPU=20)
    claim(db, *(holding(number, VCPU) for number in (1, 2, 3)))
    with together(db) as ask:
        moves = [ask(claim, db, holding(n, {1: {"VCPU": 1 + n}})) for n in (1, 2, 3)]
    assert errors_of(*moves) == [None] * 3
    assert project_usages(db, "project", None) == {"VCPU": 9}


def test_a_request_for_several_consumers_counts_once_among_others_too(db: Database) -> None:
    """The generation is incremented once for each request that names the provider, as without
    sharing."""
    both = {1: {"VCPU": 1}, 2: {"VCPU": 1}}
    for number in (1, 2):
        add_provider(db, number, VCPU=10)
    claim(db, *(holding(n, both) for n in (1, 2, 3)))
    assert (generation(db, 1), generation(db, 2)) == (2, 2)
    with together(db) as ask:
        several = ask(claim, db, *(holding(n, VCPU) for n in (4, 5, 6)))
        one = ask(claim, db, holding(7, both))
    assert errors_of(several, one) == [None] * 2
    assert (generation(db, 1), generation(db, 2)) == (4, 3)


def test_releases_are_written_at_once(db: Database) -> None:
    """Nine consumers are released; the tenth has no allocations and gets its error."""
    add_provider(db, 1, VCPU=10)
    claim(db, *(holding(number, VCPU) for number in range(9)))
    with counted_statements(db) as sent, together(db) as ask:
        gone = [ask(delete_allocations, db, consumer(number)) for number in range(9)]
        twice = ask(delete_allocations, db, consumer(0))
        nobody = ask(delete_allocations, db, consumer(20))
    assert used(db, 1) == [0]
    assert Counter(errors_of(*gone, twice)) == {None: 9, AllocationsNotFound: 1}
    assert errors_of(nobody) == [AllocationsNotFound]
    assert sent_of(sent, "DELETE FROM allocations") == 2


def test_a_swap_is_no_way_around_what_neither_could_do_alone(db: Database) -> None:
    """Two full providers: each consumer would move to the other's. Together they would fit, but
    neither alone, so both are refused."""
    for number in (1, 2):
        add_provider(db, number, VCPU=1)
        claim(db, holding(number, {number: {"VCPU": 1}}))
    with together(db) as ask:
        moves = [ask(claim, db, holding(n, {3 - n: {"VCPU": 1}}, seen=1)) for n in (1, 2)]
    assert errors_of(*moves) == [CapacityExceeded] * 2


def test_a_claim_for_a_consumer_that_is_gone_is_refused_among_others_too(db: Database) -> None:
    """Its generation was read before another client deleted it: it is refused as when written
    alone. And of two claims for one new consumer, the second finds that it exists."""
    add_provider(db, 1, VCPU=10)
    with together(db) as ask:
        asked = [
            ask(claim, db, holding(number, VCPU, seen=seen))
            for number, seen in ((1, 3), (2, None), (3, None), (2, None))
        ]
    conflict = ConsumerGenerationConflict
    assert errors_of(*asked) == [conflict, None, None, conflict]
    assert consumer_allocations(db, consumer(1)) is None
    assert used(db, 1) == [2]


def test_each_succeeds_or_fails_on_its_own(db: Database) -> None:
    """Three claims fit, in order of arrival; the fourth is refused and leaves nothing behind."""
    add_provider(db, 1, VCPU=3)
    add_provider(db, 2, VCPU=3)
    with together(db) as ask:
        fits = [ask(claim, db, holding(n, VCPU)) for n in range(3)]
        too_much = ask(claim, db, holding(3, {2: {"VCPU": 1}, 1: {"VCPU": 1}}))
        another = ask(claim, db, holding(4, {2: {"VCPU": 1}}))
    assert errors_of(*fits, too_much, another) == [*[None] * 3, CapacityExceeded, None]
    assert consumer_allocations(db, consumer(3)) is None
    assert used(db, 1, 2) == [3, 1]


def test_a_unit_that_the_database_fails_harms_no_other(db: Database) -> None:
    """All writes run again, each in its own transaction."""
    add_provider(db, 1, VCPU=3)

    def breaks(tx: Tx) -> None:
        tx.connection.exec_driver_sql("SELECT nonsense")

    with together(db) as ask:
        before = ask(claim, db, holding(1, VCPU))
        broken = ask(db.write, breaks)
        after = ask(claim, db, holding(2, VCPU))
    assert isinstance(broken.exception(TIMEOUT), DatabaseUnavailable)
    assert errors_of(before, after) == [None, None]
    assert used(db, 1) == [2]


def test_a_refusal_is_told_only_after_the_commit_that_justifies_it(
    failing: Database, driver: type[Driver]
) -> None:
    """The last capacity goes to a claim whose commit fails, so the refusal of the other is not
    reported."""
    claim(failing, holding(0, {1: {"VCPU": 2}}))
    with together(failing) as ask:
        lost = ask(claim, failing, holding(1, VCPU))
        second = ask(claim, failing, holding(2, VCPU))
        driver.fails_before = 2  # the shared commit, and that of the first one alone
    assert isinstance(lost.exception(TIMEOUT), DatabaseUnavailable)
    assert errors_of(second) == [None]
    assert consumer_allocations(failing, consumer(1)) is None
    assert consumer_allocations(failing, consumer(2)) is not None


def test_a_lock_is_waited_for_once_by_all_who_need_it(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waiting write gets the error; waiting again for each of them would take minutes."""
    begun: list[Runner] = []

    def stays_locked(_dialect: SqliteDialect, run: Runner) -> None:
        begun.append(run)
        raise OperationalError("BEGIN IMMEDIATE", {}, sqlite3.OperationalError("locked"))

    monkeypatch.setattr(SqliteDialect, "begin_writing", stays_locked)
    with pytest.raises(OperationalError):
        db._settle(lambda: [Write(lambda tx: None) for _ in range(5)])
    assert len(begun) == 1


@pytest.mark.parametrize("writers", [1, 3])
def test_a_commit_whose_answer_is_lost_is_looked_up(
    failing: Database, driver: type[Driver], writers: int
) -> None:
    """It took place, so the writes succeed, and nothing is written twice."""
    with together(failing) as ask:
        claims = [ask(claim, failing, holding(n, VCPU)) for n in range(writers)]
        driver.fails_after = 1
    assert errors_of(*claims) == [None] * writers
    assert used(failing, 1) == [writers]


def test_the_causes_of_a_commit_that_fails_come_to_an_end(
    failing: Database, driver: type[Driver]
) -> None:
    """Whoever looks for the cause in the chain of an error does not walk in a circle."""
    driver.fails_before = 1
    with pytest.raises(DatabaseUnavailable) as caught:
        claim(failing, holding(1, VCPU))
    causes: list[BaseException] = []
    cause: BaseException | None = caught.value
    while cause is not None:
        assert cause not in causes
        causes.append(cause)
        cause = cause.__cause__
    assert len(causes) > 1


def test_a_commit_that_nobody_can_tell_of_is_no_success_and_no_conflict(
    failing: Database, driver: type[Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 7: the write is neither acknowledged nor tried again."""

    def nobody_answers(*_: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    driver.fails_after = 1
    with monkeypatch.context() as patch:
        patch.setattr(failing.engine.pool, "_do_get", nobody_answers)
        with pytest.raises(DatabaseUnavailable):
            claim(failing, holding(1, VCPU))
    assert used(failing, 1) == [1]


def test_who_comes_while_the_lock_is_waited_for_shares_the_commit(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has the lock. When the leader gets it, it takes along all writes that wait by
    then."""
    add_provider(db, 1, VCPU=10)
    begin, waits, has_it = SqliteDialect.begin_writing, Event(), Event()

    def wait_for_it(dialect: SqliteDialect, run: Runner) -> None:
        waits.set()
        assert has_it.wait(TIMEOUT)
        begin(dialect, run)

    monkeypatch.setattr(SqliteDialect, "begin_writing", wait_for_it)
    with counted_statements(db) as sent:
        claims = [in_background(claim, db, holding(0, VCPU))]
        assert waits.wait(TIMEOUT)
        claims += [in_background(claim, db, holding(n, VCPU)) for n in range(1, 5)]
        wait_until(lambda: len(db._writes._waiting) == 5, "five to wait")
        has_it.set()
        assert errors_of(*claims) == [None] * 5
    assert sent_of(sent, "BEGIN IMMEDIATE") == 1


# --- The queue -----------------------------------------------------------------------------------


@contextmanager
def queue(**options: Any) -> Iterator[tuple[GroupCommit, Callable[..., Future[Any]], list[str]]]:
    """A queue, a function that puts a write into it and waits until it waits, and the groups that
    were settled, by the names of their writes: the first begins at once, and all others wait for
    the end of the block."""
    groups: list[str] = []
    entered, may_go = Event(), Event()

    def settle(take: Callable[[], list[Write]]) -> None:
        writes = take()
        entered.set()
        assert may_go.wait(TIMEOUT)
        groups.append("".join(write.batch.item for write in writes if write.batch))
        for write in writes:
            write.succeed(None)

    kinds = {name: Batchable(lambda tx, items: [True for _ in items], name) for name in "ab"}
    commits = GroupCommit(settle, **options)
    asked: list[Future[Any]] = []

    def ask(name: str, kind: type[Write] = Write) -> Future[Any]:
        waiting = len(commits._waiting)
        asked.append(in_background(commits.settle, kind(lambda tx: None, kinds[name])))
        if len(asked) == 1:
            assert entered.wait(TIMEOUT)
        else:
            wait_until(
                lambda: asked[-1].done() or len(commits._waiting) > waiting, f"{name} to wait"
            )
        return asked[-1]

    ask("a")
    yield commits, ask, groups
    may_go.set()
    assert not wait(asked, TIMEOUT).not_done


@pytest.mark.parametrize(
    ("options", "names", "expected"),
    [
        # Later writes form the next group.
        ({"writes_max": 3}, "aaaaaaa", ["a", "aaa", "aaa", "a"]),
        # Where several processes write, a transaction is of one kind: each kind takes its row locks
        # in one order; two kinds in one transaction would not.
        ({"mixes_batches": True}, "abab", ["a", "abab"]),
        ({"mixes_batches": False}, "abab", ["a", "aa", "bb"]),
    ],
)
def test_which_writes_share_a_commit(
    options: dict[str, Any], names: str, expected: list[str]
) -> None:
    """So many, of one kind or of several; and each gets its outcome."""
    with queue(**options) as (_, ask, groups):
        asked = [ask(name) for name in names]
    assert errors_of(*asked) == [None] * len(names)
    assert groups == expected


@pytest.mark.parametrize("has_waited", [False, True])
def test_who_is_interrupted_while_waiting_keeps_nobody_waiting(has_waited: bool) -> None:
    """Ctrl-C in a thread that waits for its turn, or whose turn has just come."""

    class Interrupted(Write):
        def wait(self) -> None:
            """Wait until it is interrupted."""
            if has_waited:
                super().wait()
            raise KeyboardInterrupt

    with queue() as (commits, ask, _):
        second, third = ask("a", Interrupted), ask("a")
    assert errors_of(second, third) == [KeyboardInterrupt, None]
    assert errors_of(in_background(commits.settle, Write(lambda tx: None))) == [None]


def test_a_fault_of_the_leader_reaches_everybody() -> None:
    """No thread waits for ever, and another one leads the next write."""
    faults = [BerthError("broken")]

    def settle(take: Callable[[], list[Write]]) -> None:
        if faults:
            raise faults.pop()
        for write in take():
            write.succeed("done")

    commits = GroupCommit(settle)
    first, second = Write(lambda tx: None), Write(lambda tx: None)
    commits.settle(first)
    commits.settle(second)
    with pytest.raises(BerthError):
        first.outcome()
    assert second.outcome() == "done"


def test_a_fault_after_the_commit_does_not_take_back_what_was_told() -> None:
    """Writes whose outcome is known keep it, whatever happens to those behind them."""

    def settle(take: Callable[[], list[Write]]) -> None:
        take()[0].succeed("done")
        raise BerthError("broken")

    commits = GroupCommit(settle)
    first = Write(lambda tx: None)
    commits.settle(first)
    assert first.outcome() == "done"
