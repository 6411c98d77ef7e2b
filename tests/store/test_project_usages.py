# SPDX-License-Identifier: Apache-2.0
"""The counters of what projects use: kept per writer, added up, folded and recounted."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from itertools import product
from unittest.mock import patch

import pytest
from sqlalchemy import Executable, delete, text

from berth.model.errors import CapacityExceeded
from berth.store import usages
from berth.store.allocations import delete_allocations
from berth.store.engine import project_usages
from berth.store.engine.database import Database
from berth.store.engine.prepared import Parameters, Runner
from berth.store.engine.tables import consumers
from berth.store.engine.transaction import Tx
from berth.store.usages import (
    TypeUsages,
    WrongCounter,
    is_marked,
    project_usages_by_type,
    recount_project_usages,
)
from berth.upkeep import schema
from berth.upkeep.integrity.consumers import Owner, make_consumers
from tests.servers.statements import run
from tests.store.fleet import add_provider, claim, consumer, holding
from tests.store.statements import counted_statements
from tests.store.together import in_background

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")

_TIMEOUT_S = 30


def rows(url: str) -> list[tuple[int, int, int]]:
    """The rows of all counters of consumers and VCPU: (writer, consumers, VCPU)."""
    found = run(url, "SELECT writer_id, used_0, used_1 FROM berth_project_usages")
    return sorted((int(writer), int(count), int(used)) for writer, count, used in found)


def usage(db: Database, project: str = "project") -> tuple[int, int]:
    """What a project uses: (consumers, VCPU)."""
    every = project_usages_by_type(db, project, None, "all").get("all", TypeUsages({}, 0))
    return every.consumer_count, every.resources.get("VCPU", 0)


def test_each_writer_has_rows_of_its_own(db: Database, other: Database, fresh_url: str) -> None:
    """A project uses their sum, also where one writer releases what another has claimed; and the
    next commit adds nothing to it."""
    add_provider(db, 1, VCPU=8)
    claim(db, holding(1, {1: {"VCPU": 2}}))
    claim(other, holding(2, {1: {"VCPU": 3}}))
    assert [row[1:] for row in rows(fresh_url)] == [(1, 2), (1, 3)]
    assert usage(db) == usage(other) == (2, 5)
    delete_allocations(other, consumer(1))
    assert sorted(row[1:] for row in rows(fresh_url)) == [(0, 1), (1, 2)]
    assert usage(db) == (1, 3)
    steps = (
        (partial(claim, other), holding(2, {1: {"VCPU": 99}}), None),
        (partial(claim, db), holding(2, {1: {"VCPU": 5}}, seen=1), (1, 5)),
        (partial(claim, other), holding(2, {1: {"VCPU": 1}}), (1, 1)),
        (partial(claim, db), holding(2, {1: {"VCPU": 1}}, consumer_type="X"), (1, 1)),
        (partial(claim, db), holding(2, {1: {"VCPU": 1}}, project="new"), (0, 0)),
        (partial(claim, db), holding(2, {1: {"VCPU": 2}}), (1, 2)),
        (partial(claim, other), holding(2, {}), (0, 0)),
    )
    for act, write, due in steps:
        if due is None:
            with pytest.raises(CapacityExceeded):
                act(write)
            due = (1, 3)
        else:
            act(write)
        assert usage(db) == due
        claim(db, holding(9, {1: {"VCPU": 1}}, project="last"))
        assert usage(db) == due
        assert schema.check(db) == []


@pytest.mark.engines("postgresql", "mariadb")
def test_claims_for_one_project_in_two_processes_do_not_wait(db: Database, other: Database) -> None:
    """The second commits while the first has written its counters and not committed yet."""
    for number, process in ((1, db), (2, other)):
        add_provider(db, number, VCPU=8)
        claim(process, holding(number, {number: {"VCPU": 1}}))
    written, may_commit = threading.Event(), threading.Event()
    commit = Runner.commit
    first_thread: list[int] = []

    def wait_and_commit(run: Runner) -> None:
        if threading.get_ident() in first_thread:
            written.set()
            assert may_commit.wait(_TIMEOUT_S)
        commit(run)

    def claim_first() -> None:
        first_thread.append(threading.get_ident())
        claim(db, holding(3, {1: {"VCPU": 2}}))

    with patch.object(Runner, "commit", wait_and_commit):
        first = in_background(claim_first)
        assert written.wait(_TIMEOUT_S)
        second = in_background(claim, other, holding(4, {2: {"VCPU": 3}}))
        try:
            second.result(_TIMEOUT_S)
            assert usage(other) == (3, 5)
        finally:
            may_commit.set()
        first.result(_TIMEOUT_S)
    assert usage(db) == (4, 7)


def test_classes_of_several_rows(db: Database) -> None:
    """A row has the counters of four classes; a consumer may use classes of several rows.
    One statement reads them."""
    stock = {"VCPU": 8, "DISK_GB": 8, "PCI_DEVICE": 8, "VGPU": 8, "NET_BW_EGR_KILOBIT_PER_SEC": 8}
    add_provider(db, 1, **stock)
    claim(db, holding(1, {1: stock}, consumer_type="INSTANCE"))
    with counted_statements(db) as sent:
        usages = project_usages_by_type(db, "project", "user", None)
    assert usages == {"INSTANCE": TypeUsages(stock, 1)}
    assert len([one for one in sent if one.startswith("SELECT")]) == 1
    assert schema.check(db) == []


# --- Folding -------------------------------------------------------------------------------------


def fold(db: Database, *, idle: timedelta, rows_max: int = 100) -> int:
    """Fold the rows of writers that have written nothing for some time."""
    return db.write(lambda tx: project_usages.fold(tx, tx.now - idle, rows_max=rows_max))


def test_rows_of_ended_writers_are_folded(db: Database, other: Database, fresh_url: str) -> None:
    """Into one row; a sum of zero leaves none, and rows of writers that write stay."""
    add_provider(db, 1, VCPU=8)
    claim(db, holding(1, {1: {"VCPU": 2}}))
    claim(db, holding(2, {1: {"VCPU": 1}}, project="gone"))
    claim(other, holding(3, {1: {"VCPU": 3}}))
    delete_allocations(other, consumer(2))
    assert fold(db, idle=timedelta(hours=1)) == 0
    assert fold(db, idle=timedelta(hours=-1)) == 4
    assert rows(fresh_url) == [(project_usages.FOLDED, 2, 5)]
    assert usage(db) == (2, 5) and usage(db, "gone") == (0, 0)
    claim(db, holding(4, {1: {"VCPU": 1}}))
    assert usage(db) == (3, 6)
    assert schema.check(db) == []


@pytest.mark.parametrize("rows_max", [1, 3])
def test_what_is_left_of_a_full_transaction_is_folded_by_the_next(
    db: Database, other: Database, fresh_url: str, rows_max: int
) -> None:
    """Four rows of two projects; after each transaction the sums are those of before."""
    add_provider(db, 1, VCPU=8)
    for number, (process, project) in enumerate(product((db, other), ("project", "second"))):
        claim(process, holding(number, {1: {"VCPU": 2}}, project=project))
    folded = []
    while count := fold(db, idle=timedelta(hours=-1), rows_max=rows_max):
        folded.append(count)
        assert usage(db) == usage(db, "second") == (2, 4)
    assert sum(folded) == 4 and max(folded) == rows_max
    assert rows(fresh_url) == [(project_usages.FOLDED, 2, 4)] * 2
    assert schema.check(db) == []


def test_a_process_folds_now_and_then(db: Database, fresh_url: str) -> None:
    """As often as it trims the journal."""
    add_provider(db, 1, VCPU=8)
    claim(db, holding(1, {1: {"VCPU": 2}}))
    run(
        fresh_url,
        "INSERT INTO berth_writer (id, seq, trimmed_seq, updated_at)"
        " VALUES (77, 1, 1, '2026-01-01 00:00:00')",
        "UPDATE berth_project_usages SET writer_id = 77",
    )
    with patch("berth.store.engine.database._COMMITS_BETWEEN_TRIMS", 1):
        claim(db, holding(2, {1: {"VCPU": 1}}))
    writers = {writer for writer, *_ in rows(fresh_url)}
    assert 77 not in writers and project_usages.FOLDED in writers
    assert usage(db) == (2, 3)


@pytest.mark.engines("postgresql", "mariadb")
def test_a_writer_that_wakes_up_while_its_rows_are_folded(db: Database, other: Database) -> None:
    """RACE: it commits after its rows have been read and before they are taken: they are left."""
    add_provider(db, 1, VCPU=8)
    claim(other, holding(1, {1: {"VCPU": 2}}))
    change_each = Tx.change_each
    claims = [holding(2, {1: {"VCPU": 3}})]

    def claim_then_change(
        tx: Tx, statement: Executable, parameters: Sequence[Parameters]
    ) -> list[int]:
        if claims:
            claim(other, claims.pop())
        return change_each(tx, statement, parameters)

    with patch.object(Tx, "change_each", claim_then_change):
        assert fold(db, idle=timedelta(hours=-1)) == 0
    assert usage(db) == (2, 5)
    assert schema.check(db) == []


def test_a_row_that_has_changed_since_it_was_read_is_not_folded(db: Database) -> None:
    """RACE: as above, but in one transaction, because SQLite has one writer at a time."""
    add_provider(db, 1, VCPU=8)
    claim(db, holding(1, {1: {"VCPU": 2}}))
    change_each = Tx.change_each
    more = text("UPDATE berth_project_usages SET used_1 = used_1 + 3")

    def add_then_change(
        tx: Tx, statement: Executable, parameters: Sequence[Parameters]
    ) -> list[int]:
        tx.connection.execute(more)
        return change_each(tx, statement, parameters)

    with patch.object(Tx, "change_each", add_then_change):
        assert fold(db, idle=timedelta(hours=-1)) == 0
    assert usage(db) == (1, 5)


# --- Recounting ----------------------------------------------------------------------------------

_DAMAGE = "UPDATE berth_project_usages SET used_1 = used_1 + 5, used_0 = used_0 - 1"


@pytest.fixture
def damaged(db: Database, fresh_url: str) -> Database:
    """A project with 2 VCPU of one consumer, whose counters are wrong."""
    add_provider(db, 1, VCPU=8)
    claim(db, holding(1, {1: {"VCPU": 2}}))
    run(fresh_url, _DAMAGE)
    assert usage(db) == (0, 0), "without consumers there is no usage"
    return db


@pytest.mark.parametrize("part_max", [1, 3])
def test_wrong_counters_are_recounted(damaged: Database, fresh_url: str, part_max: int) -> None:
    """Again and again, in one transaction or two; when all are right, nothing is written."""
    assert recount_project_usages(damaged, part_max=part_max) == 2
    assert usage(damaged) == (1, 2)
    assert schema.check(damaged) == []
    assert recount_project_usages(damaged, part_max=part_max) == 0
    run(fresh_url, _DAMAGE)
    assert recount_project_usages(damaged, part_max=part_max) == 2
    assert usage(damaged) == (1, 2)


def found(db: Database) -> list[WrongCounter]:
    """The counters that are wrong now."""
    with db.read() as tx:
        return [WrongCounter(*row) for row in tx.rows(usages._WRONG_PART, {"part_max": 100})]


def test_claims_go_on_while_counters_are_recounted(damaged: Database, other: Database) -> None:
    """RACE: they change counters and allocations alike, so the difference stays right."""
    wrong = found(damaged)
    claim(other, holding(2, {1: {"VCPU": 3}}))
    delete_allocations(damaged, consumer(1))
    damaged.write(lambda tx: usages.correct(tx, wrong))
    assert usage(damaged) == (1, 3)
    assert schema.check(damaged) == []


@pytest.mark.parametrize("is_first", [True, False])
def test_a_difference_that_two_processes_find_is_added_once(
    damaged: Database, other: Database, fresh_url: str, is_first: bool
) -> None:
    """RACE: whether or not the counter has been corrected before."""
    if not is_first:
        recount_project_usages(damaged)
        run(fresh_url, _DAMAGE + " WHERE writer_id > 0")
    both = found(damaged), found(other)
    for db, wrong in zip((damaged, other), both, strict=True):
        db.write(partial(usages.correct, wrong=wrong))
    assert usage(damaged) == (1, 2)
    assert schema.check(damaged) == []


def test_a_mark_makes_the_next_reader_recount(damaged: Database, fresh_url: str) -> None:
    """Whoever finds that another program has written allocations leaves one."""

    def unit(tx: Tx) -> None:
        usages.mark(tx)
        tx.touched.add(1)

    damaged.write(unit)
    assert is_marked(damaged)
    assert usage(damaged) == (1, 2)
    assert not is_marked(damaged)
    assert schema.check(damaged) == []


def test_consumers_that_get_their_records_together_are_all_counted(db: Database) -> None:
    """Very old allocations have no record of their consumer; an upgrade makes it."""
    add_provider(db, 1, VCPU=100)
    for number in range(1, 6):
        claim(db, holding(number, {1: {"VCPU": 1}}))
    with db.engine.begin() as connection:
        connection.execute(delete(consumers))
    recount_project_usages(db)
    list(make_consumers(db, Owner("p", "u")))
    assert recount_project_usages(db) == 0
