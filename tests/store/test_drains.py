# SPDX-License-Identifier: Apache-2.0
"""Drains in the database: creating, replacing and deleting them, their providers, and races."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from berth.index import Index, Snapshot
from berth.model.drain import Drain, DrainName, Effect
from berth.model.errors import ProviderNotFound
from berth.model.ids import ProviderId, ProviderUUID
from berth.model.names import is_path_name
from berth.model.own_errors import AlreadyThere, DrainNotFound, TooMany
from berth.store import drains
from berth.store.drains import all_drains, consumers_on, delete_drain, put_drain
from berth.store.engine.database import Database
from berth.store.engine.journal import NAMES
from berth.store.engine.transaction import Tx
from berth.store.index_feed import journal_since
from berth.store.lookups import providers_by_uuid
from berth.store.providers import delete_provider, update_provider
from berth.upkeep import schema
from berth.upkeep.data_migrations import NOBODY_IN_PARTICULAR
from tests.index.checking import checked
from tests.store.fleet import add_provider, claim, consumer, holding, provider
from tests.store.statements import counted_statements

RACK = DrainName("rack-7")


def put(
    db: Database,
    name: DrainName = RACK,
    *,
    of: Iterable[int] = (),
    effect: Effect = Effect.EXCLUDE,
    reason: str = "",
) -> bool:
    """Create or replace a drain of some providers."""
    uuids = [provider(number) for number in of]
    _, is_new = put_drain(db, name, uuids, effect=effect, reason=reason, created_by="alice")
    return is_new


def stored(db: Database) -> dict[DrainName, Drain]:
    """All drains that the database has."""
    with db.read() as tx:
        return all_drains(tx)


def numbers(db: Database) -> dict[int, int]:
    """Id -> number of each provider."""
    uuids = [provider(number) for number in range(1, 7)]
    with db.read() as tx:
        rows = providers_by_uuid(tx, uuids)
    return {rows[uuid].id: number for number, uuid in enumerate(uuids, 1) if uuid in rows}


def members(db: Database) -> set[tuple[int, int]]:
    """(drain, provider) of all of them."""
    with db.read() as tx:
        rows = tx.connection.exec_driver_sql("SELECT drain_id, provider_id FROM berth_drained")
        pairs = [(drain, each) for drain, each in rows]
    return {(drain, numbers(db)[each]) for drain, each in pairs}


def drained(snapshot: Snapshot) -> set[int]:
    """The providers that a snapshot says are drained."""
    every = {provider(number): number for number in range(1, 7)}
    return {
        every[ProviderUUID(block.uuid(node, row))]
        for _, block in snapshot.occupied()
        if block.drained is not None
        for node, row in np.argwhere(block.drained).tolist()
    }


def touched(db: Database, revision: dict[int, int]) -> set[int]:
    """The providers that the journal names since."""
    with db.read() as tx:
        changes = journal_since(tx, revision)
    names = {NAMES} if changes.names else set()
    return names | {numbers(db)[each] for each in changes.wholly}


def heads(db: Database) -> dict[int, int]:
    """How far the writers have come."""
    return dict(Index(db).snapshot().clock.heads)


def run(db: Database, *statements: str) -> None:
    """Run some SQL, as another program does."""

    def unit(tx: Tx) -> None:
        for statement in statements:
            tx.connection.exec_driver_sql(statement)

    db.write_unnoted(unit)


def tree(db: Database) -> None:
    """A host with two devices, and two more hosts."""
    for number, parent in ((1, None), (2, 1), (3, 1), (4, None), (5, None)):
        add_provider(db, number, parent=parent, VCPU=8)


def test_a_drain_is_created_replaced_and_deleted(db: Database) -> None:
    """Names differ by letter case; who created it, and when, stays."""
    tree(db)
    other = DrainName("Rack-7")
    assert put(db, of=[1, 4], reason="für alle")
    assert put(db, other, of=[2])
    first = stored(db)[RACK]
    assert (first.reason, first.effect, first.created_by) == ("für alle", Effect.EXCLUDE, "alice")
    assert not put(db, of=[4, 3], effect=Effect.NONE)
    second = stored(db)[RACK]
    assert (second.reason, second.effect, second.excludes) == ("", Effect.NONE, False)
    assert (second.id, second.created_at) == (first.id, first.created_at)
    assert members(db) == {(1, 3), (1, 4), (2, 2)}
    assert delete_drain(db, RACK) and not delete_drain(db, RACK)
    assert members(db) == {(2, 2)} and [*stored(db)] == [other]
    assert schema.check(db) == []


def test_what_is_not_given_stays(db: Database) -> None:
    """As it is in the database when the change is written; a new drain must name something."""
    tree(db)
    put(db, of=[1, 4], reason="why", effect=Effect.NONE)
    change = partial(put_drain, db, created_by="bob")
    for given in (
        partial(change, providers=None, effect=Effect.EXCLUDE, reason=None),
        partial(change, providers=[provider(4)], effect=None, reason=None),
        partial(change, providers=None, effect=None, reason="other"),
    ):
        drain, is_new = given(RACK)
        assert not is_new
    now = stored(db)[RACK]
    assert drain == replace(now, generation=drain.generation)
    assert (now.effect, now.reason, now.created_by) == (Effect.EXCLUDE, "other", "alice")
    assert members(db) == {(1, 4)}
    with pytest.raises(DrainNotFound):
        change(DrainName("x"), None, effect=None, reason=None)


def test_what_is_there_already_is_not_written(db: Database) -> None:
    """So that no index reads the providers again."""
    tree(db)
    put(db, of=[1, 4], reason="why")
    before = heads(db)
    with counted_statements(db) as statements:
        assert not put(db, of=[4, 1], reason="why")
        assert not delete_drain(db, DrainName("other"))
    assert not [text for text in statements if text.startswith(("INSERT", "UPDATE", "DELETE"))]
    assert heads(db) == before


def test_a_provider_that_is_gone_is_refused(db: Database) -> None:
    """With nothing written."""
    tree(db)
    with pytest.raises(ProviderNotFound):
        put(db, of=[1, 77])
    assert stored(db) == {} and members(db) == set()


def test_a_change_touches_the_providers_that_it_changes(db: Database) -> None:
    """So that every index reloads them, and whoever watches changes is told of them."""
    tree(db)
    before = heads(db)
    put(db, of=[1, 4])
    assert touched(db, before) == {NAMES, 1, 4}
    before = heads(db)
    put(db, of=[4, 5])
    assert touched(db, before) == {NAMES, 1, 5}
    before = heads(db)
    put(db, of=[4, 5], reason="other")
    assert touched(db, before) == {NAMES}
    before = heads(db)
    put(db, of=[4], effect=Effect.NONE)
    assert touched(db, before) == {NAMES, 4, 5}
    before = heads(db)
    delete_drain(db, RACK)
    assert touched(db, before) == {NAMES, 4}


def test_every_index_sees_drains_at_once(db: Database) -> None:
    """By the journal, without loading everything; what is below a provider is drained with it."""
    tree(db)
    here, there = Index(db), Index(db)
    assert drained(there.snapshot()) == set()
    assert not there.snapshot().has_drained
    put(db, of=[1, 4])
    put(db, DrainName("device"), of=[3])
    for index in (here, there):
        assert drained(index.snapshot()) == {1, 2, 3, 4}
    put(db, effect=Effect.NONE, of=[1, 4])
    assert drained(there.snapshot()) == {3}
    put(db, of=[5])
    assert drained(there.snapshot()) == {3, 5}
    delete_drain(db, DrainName("device"))
    delete_drain(db, RACK)
    assert drained(there.snapshot()) == set() and not there.snapshot().has_drained
    assert there.counts.loads == 1
    assert checked(there) == checked(here) == checked(Index(db)) == []


def test_a_provider_that_moves_below_a_drained_one_is_drained(db: Database) -> None:
    """And no longer when it moves away."""
    tree(db)
    index = Index(db)
    put(db, of=[4])
    index.snapshot()
    for parent, due in ((4, {4, 3}), (1, {4})):
        update_provider(
            db, provider(3), name="device", parent_uuid=provider(parent), may_reparent=True
        )
        assert drained(index.snapshot()) == due
        assert checked(index) == []


def test_a_deleted_provider_leaves_its_drains(db: Database) -> None:
    """A new provider, which may get its id, is in none of them."""
    tree(db)
    put(db, of=[4, 5])
    index = Index(db)
    index.snapshot()
    delete_provider(db, provider(5))
    assert {number for _, number in members(db)} == {4}
    add_provider(db, 6, VCPU=1)
    assert drained(index.snapshot()) == {4}
    assert checked(index) == [] and schema.check(db) == []


def test_rows_that_another_program_leaves_are_found_and_removed(db: Database) -> None:
    """They count for nothing meanwhile."""
    tree(db)
    put(db, of=[4])
    ids = {number: each for each, number in numbers(db).items()}
    run(
        db,
        f"INSERT INTO berth_drained VALUES (1, 900, '{provider(6)}')",
        f"INSERT INTO berth_drained VALUES (77, {ids[5]}, '{provider(5)}')",
    )
    assert drained(Index(db).snapshot()) == {4}
    assert len(schema.check(db)) == 2
    assert len([*schema.iter_repaired(db, NOBODY_IN_PARTICULAR)]) == 2
    assert members(db) == {(1, 4)} and schema.check(db) == []


def replaced_by_another(db: Database, *, old: int, new: int) -> None:
    """Delete a provider and create another with its id, as another program does: SQLite gives the
    highest id again."""
    columns = "generation, root_provider_id, parent_provider_id, created_at"
    is_old = f"FROM resource_providers WHERE uuid = '{provider(old)}'"
    run(
        db,
        f"CREATE TABLE kept AS SELECT * {is_old}",
        f"UPDATE resource_providers SET root_provider_id = NULL WHERE uuid = '{provider(old)}'",
        f"DELETE {is_old}",
        f"INSERT INTO resource_providers (id, uuid, name, {columns})"
        f" SELECT id, '{provider(new)}', 'p{new}', {columns} FROM kept",
        "DROP TABLE kept",
    )


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_a_provider_that_got_the_id_of_a_drained_one_is_not_drained(db: Database) -> None:
    """The row that another program left counts for nothing, is found and removed; and the drain
    can name the new provider."""
    tree(db)
    put(db, of=[4, 5])
    replaced_by_another(db, old=5, new=6)
    assert drained(Index(db).snapshot()) == {4}
    gone = f"drain 1 names provider {provider(5)}, and one of the two is gone"
    assert schema.check(db) == [gone]
    put(db, of=[4, 6])
    assert drained(Index(db).snapshot()) == {4, 6} and schema.check(db) == []
    replaced_by_another(db, old=6, new=5)
    assert len([*schema.iter_repaired(db, NOBODY_IN_PARTICULAR)]) == 1
    assert members(db) == {(1, 4)} and schema.check(db) == []
    assert delete_drain(db, RACK) and members(db) == set()


def test_a_damaged_drain_is_found_and_has_no_effect(db: Database) -> None:
    """A check says what to do about it."""
    tree(db)
    put(db, of=[4])
    run(db, "UPDATE berth_drains SET effect = 'x'")
    assert drained(Index(db).snapshot()) == set()
    (fault,) = schema.check(db)
    assert "drain rack-7 is damaged" in str(fault)


def test_there_are_no_more_drains_than_the_bound(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are there can be replaced; a deleted one makes room."""
    monkeypatch.setattr(drains, "DRAINS_MAX", 2)
    tree(db)
    names = [DrainName(f"d{number}") for number in range(3)]
    put(db, names[0], of=[1])
    put(db, names[1], of=[1])
    with pytest.raises(TooMany):
        put(db, names[2], of=[1])
    put(db, names[1], of=[4])
    delete_drain(db, names[0])
    assert put(db, names[2], of=[5])
    assert members(db) == {(1, 5), (2, 4)}


def test_who_creates_a_drain_replaces_none(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decided in the transaction that writes: also for one that another request has just made."""
    tree(db)
    created = partial(put_drain, db, RACK, effect=None, reason=None, created_by="a", is_new=True)
    assert created([provider(1)])
    with pytest.raises(AlreadyThere):
        created([provider(4)])
    find = drains._find_drain
    calls: list[DrainName] = []

    def not_yet_there(tx: Tx, name: DrainName) -> Drain | None:
        calls.append(name)
        return None if len(calls) == 1 else find(tx, name)

    monkeypatch.setattr(drains, "_find_drain", not_yet_there)
    with pytest.raises(AlreadyThere):
        created([provider(4)])
    assert len(calls) == 2
    assert {number for _, number in members(db)} == {1}


def test_of_two_that_replace_a_drain_at_once_one_wins_whole(db: Database) -> None:
    """Never a mixture of both."""
    tree(db)
    put(db, of=[1])
    start = threading.Barrier(2)

    def replace(numbers: list[int]) -> None:
        for _ in range(5):
            start.wait(30)
            put(db, of=numbers)

    threads = [threading.Thread(target=replace, args=(each,)) for each in ([1, 2, 3], [3, 4, 5])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number for _, number in members(db)} in ({1, 2, 3}, {3, 4, 5})
    assert checked(Index(db)) == []


def test_a_change_of_what_somebody_else_changed_is_decided_again(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generation is the guard of the write."""
    tree(db)
    put(db, of=[1])
    stale = stored(db)[RACK]
    put(db, of=[4])
    find = drains._find_drain
    calls: list[DrainName] = []

    def stale_first(tx: Tx, name: DrainName) -> Drain | None:
        calls.append(name)
        return stale if len(calls) == 1 else find(tx, name)

    monkeypatch.setattr(drains, "_find_drain", stale_first)
    put(db, of=[5])
    assert len(calls) == 2
    assert {number for _, number in members(db)} == {5}
    calls.clear()
    assert delete_drain(db, RACK) and len(calls) == 2


def test_consumers_of_providers_are_counted(db: Database) -> None:
    """Those of other providers are not."""
    tree(db)
    claim(db, holding(1, {1: {"VCPU": 1}, 4: {"VCPU": 1}}))
    claim(db, holding(2, {4: {"VCPU": 1}}))
    ids = {number: ProviderId(each) for each, number in numbers(db).items()}
    assert consumers_on(db, [ids[4], ids[5]]) == {ids[4]: {consumer(1), consumer(2)}}


def test_names_are_those_that_a_path_can_have() -> None:
    """The same as those of flavors."""
    assert all(map(is_path_name, ("a", "firmware-4.2", "_", "x" * 255)))
    assert not any(map(is_path_name, ("", ".", "..", "a b", "ä", "a/b", "x" * 256, "a\n")))
