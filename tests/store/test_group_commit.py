# SPDX-License-Identifier: Apache-2.0
"""Writes that share a transaction: each has its own outcome, and none is reported before the
commit.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import wait
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
from berth.store.engine.opening import DatabaseOptions, open_database
from berth.store.engine.prepared import Runner
from berth.store.engine.sqlite import SqliteDialect
from berth.store.engine.transaction import Tx
from berth.store.usages import project_usages
from tests.e2e.serving import wait_until
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
def failing(database: Database, driver: type[Driver]) -> Iterator[Database]:
    """The database, with a driver that can fail."""
    db = open_database(str(database.engine.url), options=DatabaseOptions(synchronous=False))

    @event.listens_for(db.engine, "do_connect")
    def connect(_dialect: object, _record: object, _args: object, options: dict[str, Any]) -> None:
        options["factory"] = driver

    add_provider(db, 1, VCPU=3)
    yield db
    db.dispose()


def test_writes_that_wait_share_one_commit(db: Database) -> None:
    """Nine inventory writes on different providers: one transaction, one increment of the clock."""
    for number in range(9):
        add_provider(db, number, VCPU=10)
    with counted_statements(db) as sent, together(db) as ask:
        asked = [ask(partial(restock, db, number, VCPU=11)) for number in range(9)]
    for future in asked:
        future.result(TIMEOUT)
    assert sent_of(sent, "UPDATE berth_writer") == 1
    assert sent_of(sent, "SAVEPOINT") == 9


def test_new_claims_are_written_at_once(db: Database) -> None:
    """Nine claims on one provider send the statements of one; each increments the generation."""
    add_provider(db, 1, VCPU=10)
    claim(db, holding(0, {1: {"VCPU": 1}}))
    before = generation(db, 1)
    with counted_statements(db) as alone:
        claim(db, holding(10, {1: {"VCPU": 1}}))
    with counted_statements(db) as sent, together(db) as ask:
        claims = [ask(claim, db, holding(n, {1: {"VCPU": 1}})) for n in range(1, 9)]
    assert [write.result(TIMEOUT) for write in claims] == [None] * 8
    assert used(db, 1) == [10]
    assert generation(db, 1) == before + 9
    # And the beginning of the first transaction, which holds the others up.
    assert len(sent) == len(alone) + 1


def test_moves_that_share_a_commit_are_all_counted_for_their_project(db: Database) -> None:
    """Each is written by itself."""
    add_provider(db, 1, VCPU=20)
    for number in (1, 2, 3):
        claim(db, holding(number, {1: {"VCPU": 1}}))
    with together(db) as ask:
        moves = [ask(claim, db, holding(n, {1: {"VCPU": 1 + n}})) for n in (1, 2, 3)]
    assert [write.result(TIMEOUT) for write in moves] == [None] * 3
    assert project_usages(db, "project", None) == {"VCPU": 9}


def test_a_request_for_several_consumers_counts_once_among_others_too(db: Database) -> None:
    """The generation is incremented once for each request that names the provider, as without
    sharing."""
    for number in (1, 2):
        add_provider(db, number, VCPU=10)
    claim(db, *(holding(n, {1: {"VCPU": 1}, 2: {"VCPU": 1}}) for n in (1, 2, 3)))
    assert (generation(db, 1), generation(db, 2)) == (2, 2)
    with together(db) as ask:
        claims = [
            ask(claim, db, *(holding(n, {1: {"VCPU": 1}}) for n in (4, 5, 6))),
            ask(claim, db, holding(7, {1: {"VCPU": 1}, 2: {"VCPU": 1}})),
        ]
    assert [write.result(TIMEOUT) for write in claims] == [None, None]
    assert (generation(db, 1), generation(db, 2)) == (4, 3)


def test_releases_are_written_at_once(db: Database) -> None:
    """Nine consumers are released; the tenth has no allocations and gets its error."""
    add_provider(db, 1, VCPU=10)
    for number in range(9):
        claim(db, holding(number, {1: {"VCPU": 1}}))
    with counted_statements(db) as sent, together(db) as ask:
        gone = [ask(delete_allocations, db, consumer(number)) for number in range(9)]
        twice = ask(delete_allocations, db, consumer(0))
        nobody = ask(delete_allocations, db, consumer(20))
    assert used(db, 1) == [0]
    errors = Counter(type(write.exception(TIMEOUT)) for write in (*gone, twice))
    assert errors == {type(None): 9, AllocationsNotFound: 1}
    assert isinstance(nobody.exception(TIMEOUT), AllocationsNotFound)
    assert sent_of(sent, "DELETE FROM allocations") == 2


def test_a_swap_is_no_way_around_what_neither_could_do_alone(db: Database) -> None:
    """Two full providers: each consumer would move to the other's. Together they would fit, but
    neither alone, so both are refused."""
    add_provider(db, 1, VCPU=1)
    add_provider(db, 2, VCPU=1)
    claim(db, holding(1, {1: {"VCPU": 1}}))
    claim(db, holding(2, {2: {"VCPU": 1}}))
    with together(db) as ask:
        moves = [
            ask(claim, db, holding(1, {2: {"VCPU": 1}}, seen=1)),
            ask(claim, db, holding(2, {1: {"VCPU": 1}}, seen=1)),
        ]
    assert [type(write.exception(TIMEOUT)) for write in moves] == [CapacityExceeded] * 2


def test_a_claim_for_a_consumer_that_is_gone_is_refused_among_others_too(db: Database) -> None:
    """Its generation was read before another client deleted it: it is refused as when written
    alone. And of two claims for one new consumer, the second finds that it exists."""
    add_provider(db, 1, VCPU=10)
    with together(db) as ask:
        stale = ask(claim, db, holding(1, {1: {"VCPU": 1}}, seen=3))
        new = [ask(claim, db, holding(n, {1: {"VCPU": 1}}, seen=None)) for n in (2, 3)]
        again = ask(claim, db, holding(2, {1: {"VCPU": 1}}, seen=None))
    for refused in (stale, again):
        assert isinstance(refused.exception(TIMEOUT), ConsumerGenerationConflict)
    assert [write.result(TIMEOUT) for write in new] == [None, None]
    assert consumer_allocations(db, consumer(1)) is None
    assert used(db, 1) == [2]


def sent_of(sent: list[str], beginning: str) -> int:
    """The number of statements that begin with this text."""
    return sum(future.startswith(beginning) for future in sent)


def test_each_succeeds_or_fails_on_its_own(db: Database) -> None:
    """Three claims fit, in order of arrival; the fourth is refused and leaves nothing behind."""
    add_provider(db, 1, VCPU=3)
    add_provider(db, 2, VCPU=3)
    with together(db) as ask:
        fits = [ask(claim, db, holding(n, {1: {"VCPU": 1}})) for n in range(3)]
        too_much = ask(claim, db, holding(3, {2: {"VCPU": 1}, 1: {"VCPU": 1}}))
        another = ask(claim, db, holding(4, {2: {"VCPU": 1}}))
    for write in (*fits, another):
        write.result(TIMEOUT)
    with pytest.raises(CapacityExceeded):
        too_much.result(TIMEOUT)
    assert consumer_allocations(db, consumer(3)) is None
    assert used(db, 1) == [3]
    assert used(db, 2) == [1]


def test_a_unit_that_the_database_fails_harms_no_other(db: Database) -> None:
    """All writes run again, each in its own transaction."""
    add_provider(db, 1, VCPU=3)

    def breaks(tx: Tx) -> None:
        tx.connection.exec_driver_sql("SELECT nonsense")

    with together(db) as ask:
        before = ask(claim, db, holding(1, {1: {"VCPU": 1}}))
        broken = ask(db.write, breaks)
        after = ask(claim, db, holding(2, {1: {"VCPU": 1}}))
    before.result(TIMEOUT)
    after.result(TIMEOUT)
    with pytest.raises(DatabaseUnavailable):
        broken.result(TIMEOUT)
    assert used(db, 1) == [2]


def test_a_refusal_is_told_only_after_the_commit_that_justifies_it(
    failing: Database, driver: type[Driver]
) -> None:
    """The last capacity goes to a claim whose commit fails, so the refusal of the other is not
    reported."""
    claim(failing, holding(0, {1: {"VCPU": 2}}))
    with together(failing) as ask:
        lost = ask(claim, failing, holding(1, {1: {"VCPU": 1}}))
        second = ask(claim, failing, holding(2, {1: {"VCPU": 1}}))
        driver.fails_before = 2  # the shared commit, and that of the first one alone
    with pytest.raises(DatabaseUnavailable):
        lost.result(TIMEOUT)
    second.result(TIMEOUT)
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


@pytest.mark.parametrize("writers", [1, 5])
def test_a_commit_whose_answer_is_lost_is_looked_up(
    failing: Database, driver: type[Driver], writers: int
) -> None:
    """It took place, so the writes succeed, and nothing is written twice."""
    add_provider(failing, 2, VCPU=10)
    with together(failing) as ask:
        claims = [ask(claim, failing, holding(n, {2: {"VCPU": 1}})) for n in range(writers)]
        driver.fails_after = 1
    for write in claims:
        write.result(TIMEOUT)
    assert used(failing, 2) == [writers]
    claim(failing, holding(99, {2: {"VCPU": 1}}))
    assert used(failing, 2) == [writers + 1]


def test_the_causes_of_a_commit_that_fails_come_to_an_end(
    failing: Database, driver: type[Driver]
) -> None:
    """Whoever looks for the cause in the chain of an error does not walk in a circle."""
    driver.fails_before = 1
    with pytest.raises(DatabaseUnavailable) as caught:
        claim(failing, holding(1, {1: {"VCPU": 1}}))
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
            claim(failing, holding(1, {1: {"VCPU": 1}}))
    assert used(failing, 1) == [1]


def test_no_more_than_so_many_share_a_commit() -> None:
    """Later writes form the next group, and each gets its outcome."""
    groups: list[int] = []
    entered, may_go = Event(), Event()

    def settle(take: Callable[[], list[Write]]) -> None:
        writes = take()
        entered.set()
        assert may_go.wait(TIMEOUT)
        groups.append(len(writes))
        for write in writes:
            write.succeed(None)

    queue = GroupCommit(settle, writes_max=3)
    asked = [in_background(queue.settle, Write(lambda tx: None))]
    assert entered.wait(TIMEOUT)
    asked += [in_background(queue.settle, Write(lambda tx: None)) for _ in range(7)]
    wait_until(lambda: len(queue._waiting) == 7, "seven to wait")
    may_go.set()
    settled, lost = wait(asked, TIMEOUT)
    assert not lost
    assert [one.result() for one in settled] == [None] * 8
    assert groups == [1, 3, 3, 1]


@pytest.mark.parametrize(
    ("mixes_batches", "expected"), [(True, ["a", "abab"]), (False, ["a", "aa", "bb"])]
)
def test_where_several_processes_write_a_transaction_is_of_one_kind(
    mixes_batches: bool, expected: list[str]
) -> None:
    """Each kind takes its row locks in one order; two kinds in one transaction would not."""
    kinds = {name: Batchable(lambda tx, items: [True for _ in items], name) for name in "ab"}
    groups: list[str] = []
    entered, may_go = Event(), Event()

    def settle(take: Callable[[], list[Write]]) -> None:
        writes = take()
        entered.set()
        assert may_go.wait(TIMEOUT)
        groups.append("".join(write.batch.item for write in writes if write.batch))
        for write in writes:
            write.succeed(None)

    queue = GroupCommit(settle, mixes_batches=mixes_batches)
    asked = [in_background(queue.settle, Write(lambda tx: None, kinds["a"]))]
    assert entered.wait(TIMEOUT)
    for count, name in enumerate("abab", 1):
        asked.append(in_background(queue.settle, Write(lambda tx: None, kinds[name])))
        wait_until(lambda: len(queue._waiting) == count, f"{count} to wait")  # noqa: B023
    may_go.set()
    _, lost = wait(asked, TIMEOUT)
    assert not lost
    assert groups == expected


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
        claims = [in_background(claim, db, holding(0, {1: {"VCPU": 1}}))]
        assert waits.wait(TIMEOUT)
        claims += [in_background(claim, db, holding(n, {1: {"VCPU": 1}})) for n in range(1, 5)]
        wait_until(lambda: len(db._writes._waiting) == 5, "five to wait")
        has_it.set()
        for write in claims:
            write.result(TIMEOUT)
    assert sent_of(sent, "BEGIN IMMEDIATE") == 1


@pytest.mark.parametrize("has_waited", [False, True])
def test_who_is_interrupted_while_waiting_keeps_nobody_waiting(has_waited: bool) -> None:
    """Ctrl-C in a thread that waits for its turn, or whose turn has just come."""
    entered, may_go = Event(), Event()

    class Interrupted(Write):
        def wait(self) -> None:
            """Wait until it is interrupted."""
            if has_waited:
                super().wait()
            raise KeyboardInterrupt

    def settle(take: Callable[[], list[Write]]) -> None:
        writes = take()
        entered.set()
        assert may_go.wait(TIMEOUT)
        for write in writes:
            write.succeed(None)

    queue = GroupCommit(settle)
    first = in_background(queue.settle, Write(lambda tx: None))
    assert entered.wait(TIMEOUT)
    second = in_background(queue.settle, Interrupted(lambda tx: None))
    wait_until(lambda: second.done() or len(queue._waiting) == 1, "the second to wait")
    third = in_background(queue.settle, Write(lambda tx: None))
    wait_until(lambda: len(queue._waiting) == 1 + has_waited, "the third to wait")
    may_go.set()
    assert isinstance(second.exception(TIMEOUT), KeyboardInterrupt)
    assert (first.result(TIMEOUT), third.result(TIMEOUT)) == (None, None)
    last = in_background(queue.settle, Write(lambda tx: None))
    assert last.result(TIMEOUT) is None


def test_a_fault_of_the_leader_reaches_everybody() -> None:
    """No thread waits for ever, and another one leads the next write."""
    faults = [BerthError("broken")]

    def settle(take: Callable[[], list[Write]]) -> None:
        if faults:
            raise faults.pop()
        for write in take():
            write.succeed("done")

    queue = GroupCommit(settle)
    first, second = Write(lambda tx: None), Write(lambda tx: None)
    queue.settle(first)
    queue.settle(second)
    with pytest.raises(BerthError):
        first.outcome()
    assert second.outcome() == "done"


def test_a_fault_after_the_commit_does_not_take_back_what_was_told() -> None:
    """Writes whose outcome is known keep it, whatever happens to those behind them."""

    def settle(take: Callable[[], list[Write]]) -> None:
        take()[0].succeed("done")
        raise BerthError("broken")

    queue = GroupCommit(settle)
    first = Write(lambda tx: None)
    queue.settle(first)
    assert first.outcome() == "done"
