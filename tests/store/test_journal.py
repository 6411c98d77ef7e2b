# SPDX-License-Identifier: Apache-2.0
"""The writers' clock: every commit is counted once and names the providers that it changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import pytest
from sqlalchemy import select

from berth.model.errors import CapacityExceeded
from berth.model.ids import Generation
from berth.model.inventory import Inventory
from berth.model.named import Flavor, FlavorName
from berth.model.shown import UNSET
from berth.store.aggregates import replace_aggregates
from berth.store.allocations import delete_allocations
from berth.store.engine.database import Database
from berth.store.engine.dialect import PoolOptions
from berth.store.engine.journal import has_noted
from berth.store.engine.opening import DatabaseOptions, open_database
from berth.store.engine.tables import berth_journal, berth_writer
from berth.store.engine.transaction import Writer
from berth.store.inventories import (
    create_inventory,
    delete_inventories,
    delete_inventory,
    update_inventory,
)
from berth.store.named import delete_flavor, put_flavor, replace_labels
from berth.store.providers import delete_provider, update_provider
from berth.store.reshape import ReshapedInventories, reshape
from berth.store.resource_classes import (
    delete_resource_class,
    ensure_resource_class,
    rename_resource_class,
)
from berth.store.traits import (
    create_trait,
    delete_provider_traits,
    delete_trait,
    replace_provider_traits,
)
from tests.servers.statements import run
from tests.store.fleet import (
    add_provider,
    aggregate,
    claim,
    consumer,
    generation,
    holding,
    provider,
    restock,
    rewrites_guards,
    trim_journal,
)
from tests.store.statements import counted_statements

#: Row ids are told by their numbers here, and only there begin at 1 whatever was taken back.
#: What comes of the journal on other engines: tests/proof/model.
pytestmark = pytest.mark.engines("sqlite")


def journal(db: Database) -> list[tuple[int, int, int]]:
    """All of (writer, seq, provider)."""
    note = berth_journal.c
    with db.read() as tx:
        rows = tx.connection.execute(
            select(note.writer_id, note.seq, note.provider_id).order_by(note.writer_id, note.seq)
        )
        return [(writer, seq, number) for writer, seq, number in rows]


def heads(db: Database) -> dict[int, tuple[int, int]]:
    """writer -> (seq, trimmed_seq)."""
    writer = berth_writer.c
    with db.read() as tx:
        rows = tx.connection.execute(select(writer.id, writer.seq, writer.trimmed_seq))
        return {number: (seq, trimmed) for number, seq, trimmed in rows}


class Noted(NamedTuple):
    """The providers of which anything may have changed, and those of which only the usage has."""

    wholly: tuple[int, ...] = ()
    usage_only: tuple[int, ...] = ()


def noted_of(db: Database, act: Callable[[], object]) -> Noted:
    """What an action adds to the journal."""
    before = set(journal(db))
    act()
    new, note = set(journal(db)) - before, berth_journal.c
    with db.read() as tx:
        rows = tx.connection.execute(
            select(note.writer_id, note.seq, note.provider_id, note.usage_only).order_by(
                note.provider_id
            )
        ).all()
    kinds: tuple[list[int], list[int]] = ([], [])
    for *key, usage_only in rows:
        if tuple(key) in new:
            kinds[usage_only].append(key[2])
    return Noted(*map(tuple, kinds))


def test_every_change_of_a_provider_is_noted(db: Database) -> None:
    """Providers have the ids 1, 2, 3 here; 0 stands for definitions of names. Changes of usage
    alone are marked, because an index then reads nothing else. The parent of a new child is noted
    where guarding it changes its time."""
    p1 = provider(1)
    is_parent_noted = rewrites_guards(db)

    def rename(number: int, name: str, parent: int | None) -> object:
        return update_provider(
            db,
            provider(number),
            name=name,
            parent_uuid=None if parent is None else provider(parent),
            may_reparent=True,
        )

    def new_shape() -> None:
        stock = ReshapedInventories(provider(2), generation(db, 2), {"DISK_GB": Inventory(1)})
        reshape(db, [stock], [holding(1, {})])

    acts: list[tuple[Callable[[], object], Noted]] = [
        (lambda: add_provider(db, 1), Noted((1,))),
        (lambda: add_provider(db, 2, parent=1), Noted((1, 2) if is_parent_noted else (2,))),
        (lambda: add_provider(db, 3), Noted((3,))),
        (lambda: rename(1, "x", None), Noted((1,))),
        (lambda: rename(1, "x", 3), Noted((1, 2, 3) if is_parent_noted else (1, 2))),
        (lambda: rename(1, "x", None), Noted((1, 2))),
        (lambda: create_inventory(db, p1, "VCPU", Inventory(4)), Noted((1,))),
        (lambda: update_inventory(db, p1, "VCPU", Generation(1), Inventory(8)), Noted((1,))),
        (lambda: restock(db, 2, VCPU=4), Noted((2,))),
        (lambda: claim(db, holding(1, {1: {"VCPU": 1}, 2: {"VCPU": 1}})), Noted(usage_only=(1, 2))),
        (lambda: claim(db, holding(1, {2: {"VCPU": 1}})), Noted(usage_only=(1, 2))),
        (lambda: claim(db, holding(2, {})), Noted()),
        (new_shape, Noted((2,))),
        (lambda: claim(db, holding(1, {1: {"VCPU": 1}})), Noted(usage_only=(1,))),
        (lambda: delete_allocations(db, consumer(1)), Noted(usage_only=(1,))),
        (lambda: replace_aggregates(db, p1, [aggregate(1)], UNSET), Noted((1,))),
        (lambda: replace_aggregates(db, p1, [], generation(db, 1)), Noted((1,))),
        (lambda: create_trait(db, "CUSTOM_T"), Noted((0,))),
        (lambda: create_trait(db, "CUSTOM_T"), Noted()),
        (lambda: replace_provider_traits(db, p1, ["CUSTOM_T"], generation(db, 1)), Noted((1,))),
        (lambda: replace_provider_traits(db, p1, ["CUSTOM_T"], generation(db, 1)), Noted()),
        (lambda: delete_provider_traits(db, p1), Noted((1,))),
        (lambda: delete_trait(db, "CUSTOM_T"), Noted((0,))),
        (lambda: ensure_resource_class(db, "CUSTOM_A"), Noted((0,))),
        (lambda: rename_resource_class(db, "CUSTOM_A", "CUSTOM_B"), Noted((0,))),
        (lambda: delete_resource_class(db, "CUSTOM_B"), Noted((0,))),
        (lambda: delete_inventory(db, p1, "VCPU"), Noted((1,))),
        (lambda: delete_inventories(db, p1), Noted((1,))),
        (lambda: delete_provider(db, provider(2)), Noted((2,))),
    ]
    assert [noted_of(db, act) for act, _ in acts] == [expected for _, expected in acts]


def test_a_refused_write_notes_nothing(db: Database) -> None:
    """The clock is part of the commit, so a rollback leaves no entry; nor does a write of what is
    there already, so that no index reads it again."""
    add_provider(db, 1, VCPU=1)
    uuid, flavor = aggregate(1), Flavor('{"groups": {"": {"resources": {"VCPU": 1}}}}')
    replace_labels(db, uuid, {"zone": "z1"})
    assert put_flavor(db, FlavorName("m1"), flavor)
    before = heads(db), journal(db)
    with pytest.raises(CapacityExceeded):
        claim(db, holding(1, {1: {"VCPU": 2}}))
    replace_labels(db, uuid, {"zone": "z1"})
    assert not put_flavor(db, FlavorName("m1"), Flavor(flavor.request))
    assert not delete_flavor(db, FlavorName("m2"))
    assert (heads(db), journal(db)) == before


def test_each_process_has_a_row_of_its_own(fresh_url: str, other: Database) -> None:
    """The process keeps it from commit to commit, although connections beyond the pool's size are
    closed after use: each row costs the readers time."""
    options = DatabaseOptions(synchronous=False, pool=PoolOptions(size=1))
    db = open_database(fresh_url, options=options)
    writers = set(heads(db))
    add_provider(db, 1)
    add_provider(other, 2)
    with db.read():
        for number in range(3, 6):
            with db.read():
                add_provider(db, number)
    rows = [row for row in journal(db) if row[2]]
    assert [(seq, number) for _, seq, number in rows] == [(1, 1), (2, 3), (3, 4), (4, 5), (1, 2)]
    assert len(set(heads(db)) - writers) == 2
    db.dispose()


def test_an_idle_row_is_taken_over_and_never_shared(fresh_url: str) -> None:
    """A process that slept too long finds that its row has moved on, and takes another."""
    # Whoever prepared the database may have left a row, which is idle by now.
    run(fresh_url, "DELETE FROM berth_journal", "DELETE FROM berth_writer")
    now = [datetime(2030, 1, 1)]
    one, two = (open_database(fresh_url, clock=lambda: now[0]) for _ in range(2))
    add_provider(one, 1)
    now[0] += timedelta(hours=2)
    ids = set(heads(one))
    add_provider(two, 2)
    assert set(heads(one)) == ids, "no new row was needed"
    (taken,) = {writer for writer, _, number in journal(one) if number == 1}
    with one.read() as tx:
        noted = [has_noted(tx, Writer(taken, seq)) for seq in (1, 2, 3)]
    assert noted == [True, False, True], "to take a row over is no commit of whoever had it"
    add_provider(one, 3)
    add_provider(two, 4)
    last_of_each = {number: (writer, seq) for writer, seq, number in journal(one) if number}
    assert last_of_each[2][0] == last_of_each[4][0] != last_of_each[3][0]
    one.dispose()
    two.dispose()


def test_trimming_leaves_a_mark(db: Database) -> None:
    """A reader that is further behind knows that it must reload."""
    add_provider(db, 1)
    assert trim_journal(db, datetime(2000, 1, 1)) == 0
    (writer,) = {writer for writer, _, number in journal(db) if number == 1}
    assert trim_journal(db, datetime(2100, 1, 1)) > 0
    assert journal(db) == []
    assert heads(db)[writer] == (1, 1)
    add_provider(db, 2)
    assert heads(db)[writer] == (2, 1)
    assert journal(db) == [(writer, 2, 2)]


def test_trimming_walks_along_the_key(db: Database) -> None:
    """It is part of a client's write, so it must not read an hour of the journal."""
    add_provider(db, 1)
    with counted_statements(db) as sent:
        trim_journal(db, datetime(2100, 1, 1))
    about_journal = [future for future in sent if "berth_journal" in future]
    with db.read() as tx:
        plan = [
            step
            for statement in about_journal
            for *_, step in tx.connection.exec_driver_sql(
                f"EXPLAIN QUERY PLAN {statement}", (1,) * statement.count("?")
            )
        ]
    steps = [step for step in plan if "berth_journal" in step]
    assert len(steps) == 3
    assert all(step.startswith("SEARCH berth_journal USING PRIMARY KEY") for step in steps), steps


def test_trimming_goes_up_to_the_first_young_row(fresh_url: str) -> None:
    """After the clock was set back, a row waits for those before it; none is deleted too early."""
    now = datetime(2100, 1, 1)
    db = open_database(fresh_url, clock=lambda: now)
    for number, hour in enumerate((1, 2, 9, 3), start=1):
        now = datetime(2100, 1, 1, hour)
        add_provider(db, number)
    assert trim_journal(db, datetime(2100, 1, 1, 8)) >= 2
    assert [number for *_, number in journal(db)] == [3, 4]
    db.dispose()


def test_a_busy_database_trims_itself(fresh_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One commit in many also deletes what every reader has long applied, and nothing younger."""
    monkeypatch.setattr("berth.store.engine.database._COMMITS_BETWEEN_TRIMS", 1)
    now = datetime(2100, 1, 1)
    db = open_database(fresh_url, clock=lambda: now)
    for number, minutes in ((1, 20), (2, 20), (3, 140)):
        add_provider(db, number)
        assert [each for *_, each in journal(db)] == [*range(1, number + 1)]
        now += timedelta(minutes=minutes)
    add_provider(db, 4)
    assert [each for *_, each in journal(db)] == [4]
    db.dispose()


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_the_stamp_moves_with_every_commit(db: Database, other: Database) -> None:
    """For commits over this database's connections and over others, and only for commits."""
    first = db.commit_stamp()
    assert db.commit_stamp() == first
    add_provider(db, 1)
    second = db.commit_stamp()
    add_provider(other, 2)
    third = db.commit_stamp()
    assert first != second != third != first
