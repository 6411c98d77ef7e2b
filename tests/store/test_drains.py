# SPDX-License-Identifier: Apache-2.0
"""Drains in the database: races, what every index sees, and rows that another program leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from berth.index import Index, Snapshot
from berth.model.errors import DatabaseUnavailable, ProviderNotFound
from berth.model.ids import ProviderUUID
from berth.model.named import Drain, DrainName, Effect
from berth.model.own_errors import AlreadyThere, DrainNotFound, TooMany
from berth.store import named
from berth.store.engine.database import Database
from berth.store.engine.journal import NAMES
from berth.store.engine.transaction import Tx
from berth.store.engine.write_record import WriteRecord
from berth.store.index_feed import journal_since
from berth.store.lookups import providers_by_uuid
from berth.store.named import all_records, delete_drain, put_drain
from berth.store.providers import delete_provider
from berth.upkeep import schema
from berth.upkeep.integrity import iter_repaired
from berth.upkeep.integrity.consumers import Owner
from tests.index.checking import checked
from tests.servers.statements import run
from tests.store.fleet import add_provider, move, provider, rewrites_guards
from tests.store.together import race

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")

RACK = DrainName("rack-7")


def put(
    db: Database,
    name: DrainName = RACK,
    *,
    of: Iterable[int],
    effect: Effect = Effect.EXCLUDE,
    reason: str = "",
) -> None:
    """Create or replace a drain of some providers."""
    uuids = [provider(number) for number in of]
    put_drain(db, name, uuids, effect=effect, reason=reason, created_by="alice")


def numbers(db: Database) -> dict[int, int]:
    """Id -> number of each provider."""
    uuids = [provider(number) for number in range(1, 7)]
    with db.read() as tx:
        rows = providers_by_uuid(tx, uuids)
    return {rows[uuid].id: number for number, uuid in enumerate(uuids, 1) if uuid in rows}


def members(db: Database) -> set[int]:
    """The providers of all drains."""
    with db.read() as tx:
        rows = tx.connection.exec_driver_sql("SELECT provider_id FROM berth_drained")
        ids = [each for (each,) in rows]
    return {numbers(db)[each] for each in ids}


def drained(snapshot: Snapshot) -> set[int]:
    """The providers that a snapshot says are drained."""
    every = {provider(number): number for number in range(1, 7)}
    return {
        every[ProviderUUID(block.uuid(node, row))]
        for _, block in snapshot.occupied()
        if block.drained is not None
        for node, row in np.argwhere(block.drained).tolist()
    }


@pytest.fixture
def fleet(db: Database) -> Database:
    """A host with two devices, and two more hosts."""
    for number, parent in ((1, None), (2, 1), (3, 1), (4, None), (5, None)):
        add_provider(db, number, parent=parent, VCPU=8)
    return db


def test_a_change_touches_what_it_changes_and_every_index_sees_it(fleet: Database) -> None:
    """By the journal, without loading everything; what is below a provider is drained with it. A
    new parent is touched too where guarding it changes its time."""
    here, there = Index(fleet), Index(fleet)
    parents = {1, 4} if rewrites_guards(fleet) else set[int]()
    steps: tuple[tuple[Callable[[Database], object], set[int], set[int]], ...] = (
        (partial(put, of=[1, 4]), {NAMES, 1, 4}, {1, 2, 3, 4}),
        (partial(put, of=[4, 5]), {NAMES, 1, 5}, {4, 5}),
        (partial(put, of=[4, 5], reason="other"), {NAMES}, {4, 5}),
        (partial(put, of=[5, 4], reason="other"), set(), {4, 5}),
        (partial(put, name=DrainName("device"), of=[3]), {NAMES, 3}, {3, 4, 5}),
        (partial(put, of=[4], effect=Effect.NONE), {NAMES, 4, 5}, {3}),
        (partial(move, number=3, parent=4), {3} | parents & {4}, {3}),
        (partial(put, of=[4]), {NAMES, 4}, {3, 4}),
        (partial(delete_drain, name=DrainName("device")), {NAMES, 3}, {3, 4}),
        (partial(move, number=3, parent=1), {3} | parents & {1}, {4}),
        (partial(delete_drain, name=RACK), {NAMES, 4}, set()),
        (partial(delete_drain, name=RACK), set(), set()),
    )
    for number, (act, touched, due) in enumerate(steps):
        before = dict(there.snapshot().clock.heads)
        act(fleet)
        with fleet.read() as tx:
            changes = journal_since(tx, before)
        names = {NAMES} if changes.names else set()
        assert names | {numbers(fleet)[each] for each in changes.wholly} == touched, number
        for index in (here, there):
            assert drained(index.snapshot()) == due, number
            assert index.snapshot().has_drained == bool(due)
    assert there.counts.loads == 1
    assert checked(there) == checked(here) == checked(Index(fleet)) == []
    assert schema.check(fleet) == []


def test_a_deleted_provider_leaves_its_drains(fleet: Database) -> None:
    """A new provider, which may get its id, is in none of them; none is drained that is gone."""
    put(fleet, of=[4, 5])
    index = Index(fleet)
    index.snapshot()
    delete_provider(fleet, provider(5))
    assert members(fleet) == {4}
    add_provider(fleet, 6, VCPU=1)
    assert drained(index.snapshot()) == {4}
    with pytest.raises(ProviderNotFound):
        put(fleet, DrainName("x"), of=[1, 77])
    assert members(fleet) == {4}
    assert checked(index) == [] and schema.check(fleet) == []


def replaced_by_another(url: str, *, old: int, new: int) -> None:
    """Delete a provider and create another with its id, as another program does: SQLite gives the
    highest id again."""
    columns = "generation, root_provider_id, parent_provider_id, created_at"
    is_old = f"FROM resource_providers WHERE uuid = '{provider(old)}'"
    run(
        url,
        f"CREATE TABLE kept AS SELECT * {is_old}",
        f"UPDATE resource_providers SET root_provider_id = NULL WHERE uuid = '{provider(old)}'",
        f"DELETE {is_old}",
        f"INSERT INTO resource_providers (id, uuid, name, {columns})"
        f" SELECT id, '{provider(new)}', 'p{new}', {columns} FROM kept",
        "DROP TABLE kept",
    )


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_rows_that_another_program_leaves_count_for_nothing(
    fleet: Database, fresh_url: str
) -> None:
    """Of providers that are gone, or of which another has the id now: they are found and removed;
    and the drain can name the new provider."""
    put(fleet, of=[4, 5])
    replaced_by_another(fresh_url, old=5, new=6)
    assert drained(Index(fleet).snapshot()) == {4}
    gone = f"drain 1 names provider {provider(5)}, and one of the two is gone"
    assert schema.check(fleet) == [gone]
    put(fleet, of=[4, 6])
    assert drained(Index(fleet).snapshot()) == {4, 6} and schema.check(fleet) == []
    replaced_by_another(fresh_url, old=6, new=5)
    run(
        fresh_url,
        f"INSERT INTO berth_drained VALUES (1, 900, '{provider(6)}')",
        f"INSERT INTO berth_drained SELECT 77, id, uuid FROM resource_providers "
        f"WHERE uuid = '{provider(5)}'",
    )
    assert drained(Index(fleet).snapshot()) == {4}
    assert len([*iter_repaired(fleet, Owner())]) == 3
    assert members(fleet) == {4} and schema.check(fleet) == []
    assert delete_drain(fleet, RACK) and members(fleet) == set()


def test_there_are_no_more_drains_than_the_bound(
    fleet: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are there can be replaced; a deleted one makes room."""
    monkeypatch.setattr(named, "DRAINS", replace(named.DRAINS, at_most=2))
    names = [DrainName(f"d{number}") for number in range(3)]
    for name in names[:2]:
        put(fleet, name, of=[1])
    with pytest.raises(TooMany):
        put(fleet, names[2], of=[1])
    put(fleet, names[1], of=[4])
    delete_drain(fleet, names[0])
    put(fleet, names[2], of=[5])
    assert members(fleet) == {4, 5}


def test_of_two_that_replace_a_drain_at_once_one_wins_whole(fleet: Database) -> None:
    """Never a mixture of both."""
    put(fleet, of=[1])
    for _ in range(5):
        outcome = race(*(partial(put, fleet, of=each) for each in ([1, 2, 3], [3, 4, 5])))
        assert outcome == [None, None]
        assert members(fleet) in ({1, 2, 3}, {3, 4, 5})
    assert checked(Index(fleet)) == []


def test_what_somebody_else_changed_meanwhile_is_decided_again(
    fleet: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generation is the guard of the write; who insists on a new drain replaces none."""
    find = named._find
    first: Iterator[Drain | None] = iter(())

    def outdated(*answers: Drain | None) -> None:
        nonlocal first
        first = iter(answers)

    def find_outdated(
        tx: Tx, kind: named.Kind[DrainName, Drain], name: DrainName, *, is_new: bool = False
    ) -> Drain | None:
        for answer in first:
            return answer
        return find(tx, kind, name, is_new=is_new)

    monkeypatch.setattr(named, "_find", find_outdated)
    put(fleet, of=[1])
    with fleet.read() as tx:
        before = all_records(tx).drains[RACK]
    put(fleet, of=[4])
    outdated(before)
    put(fleet, of=[5])
    assert members(fleet) == {5} and [*first] == []
    outdated(None)
    with pytest.raises(AlreadyThere):
        put_drain(fleet, RACK, [], effect=None, reason=None, created_by="a", is_new=True)
    assert members(fleet) == {5} and [*first] == []
    outdated(before)
    assert delete_drain(fleet, RACK) and [*first] == []
    assert members(fleet) == set()


def test_the_record_has_what_was_asked_for_and_then_what_it_means(
    fleet: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a request leaves out is only known when the drain has been read: before, and if there is
    no drain to read it from, the record has no default in its place."""

    def asked_for(
        of: Iterable[int] | None = None, *, effect: Effect | None = None, reason: str | None = None
    ) -> dict[str, Any]:
        uuids = None if of is None else [provider(number) for number in of]
        record = WriteRecord()
        with suppress(DatabaseUnavailable, DrainNotFound, ProviderNotFound):
            db = fleet.recording(record)
            put_drain(db, RACK, uuids, effect=effect, reason=reason, created_by="alice")
        wanted: dict[str, Any] = record.wanted
        assert [*record.providers] == wanted.get("named", [])
        return wanted

    one, two, nobody = provider(1), provider(2), provider(77)
    assert asked_for(effect=Effect.NONE) == {"effect": "none"}
    assert asked_for([77], reason="x") == {"reason": "x", "named": [nobody]}
    assert asked_for([1]) == {"effect": "exclude", "reason": "", "named": [one]}
    changed = {"effect": "none", "reason": "x", "named": [one]}
    assert asked_for(effect=Effect.NONE, reason="x") == changed
    assert asked_for([2]) == changed | {"named": [two]}
    assert asked_for(reason="") == changed | {"named": [two], "reason": ""}

    def is_away(*_: object) -> None:
        raise DatabaseUnavailable("away")

    monkeypatch.setattr(Database, "write", is_away)
    assert asked_for([1]) == {"named": [one]}
