# SPDX-License-Identifier: Apache-2.0
"""One aggregate in several spellings: which one is stored, which ones find it, and how adopted rows
behave.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from sqlalchemy import delete, insert, select

from berth.candidates.providers import find_providers
from berth.index import Index
from berth.model.ids import AggregateUUID, common_spellings
from berth.model.provider import ProviderFilters
from berth.model.shown import UNSET
from berth.store.aggregates import ensure_aggregates, replace_aggregates
from berth.store.engine.database import Database
from berth.store.engine.mysql import MysqlDialect
from berth.store.engine.tables import placement_aggregates, resource_provider_aggregates
from berth.store.engine.transaction import Tx
from berth.store.traits import replace_provider_traits
from berth.upkeep import schema
from berth.upkeep.integrity import iter_faults, iter_repaired
from berth.upkeep.integrity.consumers import Owner
from tests.client import Client
from tests.e2e.serving import wait_until
from tests.index.checking import checked
from tests.sql_reads import get_aggregates, list_providers
from tests.store.conftest import Opener
from tests.store.fleet import add_provider, aggregate, generation, provider, restock
from tests.store.statements import counted_statements
from tests.store.together import race

UUID = AggregateUUID("5e08ea53-c4c6-448e-9334-ac4953de3cfa")
UNDASHED = UUID.replace("-", "")
#: Spellings that only OpenStack Placement stores.
MIXED = UUID[:-1] + "A"
BRACED = "{" + UNDASHED + "}"

TIMEOUT_S = 30


_row = placement_aggregates.c


def stored(db: Database) -> list[str]:
    """The stored spellings of all aggregates, oldest first."""
    with db.read() as tx:
        return list(tx.connection.scalars(select(_row.uuid).order_by(_row.id)))


def adopt(db: Database, *spellings: str) -> None:
    """Insert what OpenStack Placement would store: a row for each spelling, and one provider in
    each, named p1, p2 and so on."""
    for number in range(1, 1 + len(spellings)):
        add_provider(db, number, VCPU=1)
    ids = {row.uuid: row.id for row in list_providers(db, ProviderFilters())}

    def unit(tx: Tx) -> None:
        for number, spelling in enumerate(spellings, 1):
            tx.connection.execute(insert(placement_aggregates), {"id": number, "uuid": spelling})
            member = {"resource_provider_id": ids[provider(number)], "aggregate_id": number}
            tx.connection.execute(insert(resource_provider_aggregates), member)
            tx.touched.add(ids[provider(number)])

    db.write(unit)


def members(db: Database) -> list[str]:
    """The names of the providers in the aggregate, oldest first."""
    every = list_providers(db, ProviderFilters())
    inside = find_providers(Index(db).snapshot(), ProviderFilters(member_of=(frozenset({UUID}),)))
    outside = find_providers(Index(db).snapshot(), ProviderFilters(not_member_of=frozenset({UUID})))
    assert len(inside) + len(outside) == len(every)
    of_rows = list_providers(db, ProviderFilters(member_of=(frozenset({UUID}),)))
    assert len(of_rows) == len(inside)
    return [row.name for row in of_rows]


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
@pytest.mark.parametrize("spelling", common_spellings(UUID))
def test_an_aggregate_is_shown_in_the_spelling_that_made_it(db: Database, spelling: str) -> None:
    """Providers that join in another spelling are shown the first one, and there is one row."""
    for number in (1, 2):
        add_provider(db, number)
    replace_aggregates(db, provider(1), [spelling], UNSET)
    for another in common_spellings(UUID):
        replace_aggregates(db, provider(2), [another], UNSET)
        assert get_aggregates(db, provider(2)).spellings == [spelling]
    assert stored(db) == [spelling]
    assert members(db) == ["p1", "p2"]


@pytest.mark.engines("sqlite")
def test_a_provider_leaves_an_aggregate_in_any_spelling(db: Database) -> None:
    """A new list is compared by aggregate, not by text; of two spellings in one request the first
    counts, and one that hardly anybody uses is not kept: some do not fit into the column, and
    lookups do not search for the rare ones."""
    add_provider(db, 1)
    other = str(aggregate(1))
    for spelling in (MIXED, BRACED, "{" + UUID + "}", f"urn:uuid:{UUID}"):
        replace_aggregates(db, provider(1), [spelling], UNSET)
        assert get_aggregates(db, provider(1)).spellings == [UUID]
        assert members(db) == ["p1"]
        replace_aggregates(db, provider(1), [other], UNSET)
        assert members(db) == []
        with db.engine.begin() as connection:
            connection.execute(delete(placement_aggregates).where(_row.uuid == UUID))
    replace_aggregates(db, provider(1), [UNDASHED, other, UUID, UUID.upper()], UNSET)
    assert stored(db) == [other, UNDASHED]
    assert get_aggregates(db, provider(1)).spellings == [other, UNDASHED]
    replace_aggregates(db, provider(1), [UUID.upper()], UNSET)
    assert get_aggregates(db, provider(1)).spellings == [UNDASHED]
    assert members(db) == ["p1"]


@pytest.mark.engines("sqlite")
def test_a_look_at_aggregates_does_not_read_them_all(db: Database) -> None:
    """Every statement on the table uses a key."""
    add_provider(db, 1)
    with counted_statements(db) as sent:
        replace_aggregates(db, provider(1), [UNDASHED], UNSET)
        replace_aggregates(db, provider(1), [UUID], UNSET)
    about = [
        text for text in sent if "placement_aggregates" in text and not text.startswith("INSERT")
    ]
    with db.read() as tx:
        steps = [
            step
            for one in about
            for *_, step in tx.connection.exec_driver_sql(
                f"EXPLAIN QUERY PLAN {one}", ("x",) * one.count("?")
            )
        ]
    assert about and steps
    assert not [step for step in steps if step.startswith("SCAN placement_aggregates")], steps


# --- Made by two at once -------------------------------------------------------------------------


@pytest.mark.engines("sqlite", "postgresql", "mariadb", "galera")
@pytest.mark.parametrize("first", [UUID, UNDASHED])
def test_an_aggregate_in_the_making_is_waited_for(
    db: Database, other: Database, first: str
) -> None:
    """A write in another spelling waits for the transaction that creates the aggregate, and joins
    it."""
    # The first write of a process is run twice, and would look as if it had begun again.
    add_provider(db, 2)
    add_provider(other, 1)
    second = UNDASHED if first == UUID else UUID
    made, may_go = Event(), Event()

    def make_slowly(tx: Tx) -> None:
        ensure_aggregates(tx, {UUID: first})
        made.set()
        assert may_go.wait(TIMEOUT_S)

    with ThreadPoolExecutor(2) as pool, counted_statements(other) as sent:
        slow = pool.submit(db.write, make_slowly)
        assert made.wait(TIMEOUT_S)
        fast = pool.submit(replace_aggregates, other, provider(1), [second], UNSET)
        waits = "BEGIN IMMEDIATE" if db.dialect.is_embedded else "INSERT"
        wait_until(lambda: any(future.startswith(waits) for future in sent), "the second to wait")
        with pytest.raises(TimeoutError):
            fast.result(0.2)
        may_go.set()
        slow.result(TIMEOUT_S)
        fast.result(TIMEOUT_S)
    assert stored(db) == [first]
    assert get_aggregates(db, provider(1)).spellings == [first]


@pytest.mark.engines("sqlite", "postgresql", "mariadb", "galera")
@pytest.mark.parametrize("turn", range(2))
def test_two_who_make_one_aggregate_make_one_row(db: Database, other: Database, turn: int) -> None:
    """Two writes create the aggregate at the same time, in two spellings, among others in different
    orders."""
    add_provider(db, 1)
    add_provider(other, 2)
    texts = [str(aggregate(number)) for number in range(3)]
    outcome = race(
        lambda: replace_aggregates(db, provider(1), [*texts, UUID], UNSET),
        lambda: replace_aggregates(other, provider(2), [UNDASHED, *reversed(texts)], UNSET),
    )
    assert outcome == [None, None]
    assert len(stored(db)) == 4
    assert members(db) == ["p1", "p2"]


# --- Adopted rows --------------------------------------------------------------------------------


@pytest.mark.engines("sqlite")
def test_several_rows_of_one_aggregate_work_as_one(db: Database, opened: Opener) -> None:
    """In filters, in the index after a load and after a refresh, and for providers that join."""
    early = Index(db)
    early.snapshot()
    adopt(db, UNDASHED, UUID, UUID.upper())
    late = Index(opened())
    for index in (early, late):
        snapshot = index.snapshot()
        sets = snapshot.aggregate_sets
        # All but the empty one: a provider is shown the spelling of its own row.
        having = sets.having_any([snapshot.names.aggregate_ids[UUID]])
        assert having.tolist() == [False, True, True, True]
        assert checked(index) == []
    assert members(db) == ["p1", "p2", "p3"]
    add_provider(db, 4)
    replace_aggregates(db, provider(4), [UUID], UNSET)
    assert get_aggregates(db, provider(4)).spellings == [UNDASHED]
    assert members(db) == ["p1", "p2", "p3", "p4"]
    assert schema.check(db) == []


@pytest.mark.engines("sqlite")
def test_a_provider_in_several_rows_is_in_one_aggregate(db: Database) -> None:
    """It is listed once, and leaving removes it from all rows."""
    adopt(db, UUID, UNDASHED)

    def join(tx: Tx) -> None:
        of_first = select(resource_provider_aggregates.c.resource_provider_id).where(
            resource_provider_aggregates.c.aggregate_id == 1
        )
        member = {"resource_provider_id": tx.connection.scalar(of_first), "aggregate_id": 2}
        tx.connection.execute(insert(resource_provider_aggregates), member)

    db.write(join)
    assert get_aggregates(db, provider(1)).spellings == [UUID]
    replace_aggregates(db, provider(1), [], UNSET)
    assert get_aggregates(db, provider(1)).spellings == []
    assert members(db) == ["p2"]


@pytest.mark.engines("sqlite")
def test_a_pool_serves_the_hosts_of_its_aggregate_in_another_row(
    client: Client, database: Database
) -> None:
    """Sharing compares aggregates, not rows, after a load and after a refresh."""
    adopt(database, UUID, UNDASHED, UUID.upper())
    replace_provider_traits(
        database, provider(1), ["MISC_SHARES_VIA_AGGREGATE"], generation(database, 1)
    )
    restock(database, 1, DISK_GB=10)
    query = "/allocation_candidates?resources=VCPU:1,DISK_GB:1"

    def hosts() -> set[str]:
        answer = client.get(query, version="1.36").json
        return {
            uuid for request in answer["allocation_requests"] for uuid in request["allocations"]
        }

    assert hosts() == {provider(1), provider(2), provider(3)}
    add_provider(database, 4, VCPU=1)
    replace_aggregates(database, provider(4), [MIXED], UNSET)
    assert hosts() == {provider(1), provider(2), provider(3), provider(4)}


@pytest.mark.engines("sqlite", "postgresql", "mariadb")
def test_odd_spellings_are_found_and_respelled(db: Database) -> None:
    """A repair and an upgrade both use the first common spelling that is free."""
    ignores_case = isinstance(db.dialect, MysqlDialect)
    odd = [BRACED] if ignores_case else [BRACED, MIXED]
    adopt(db, UUID, *odd, "no uuid at all")
    faults = [(fault.sentence, fault.action) for fault in iter_faults(db)]
    assert [fault for fault in faults if "is spelled" in fault[0]] == [
        (
            f"aggregate number {number} is spelled {spelling}, and only this spelling finds it",
            f"give aggregate number {number} a common spelling of {UUID}",
        )
        for number, spelling in enumerate(odd, 2)
    ]
    # The index reads all rows, as for candidates.
    assert members(db) == [f"p{number}" for number in range(1, 2 + len(odd))]
    repaired = list(iter_repaired(db, Owner()))
    assert len([fault for fault in repaired if "is spelled" in fault.sentence]) == len(odd)
    (left,) = schema.check(db)
    assert left.endswith("has the uuid 'no uuid at all', which is no UUID")
    common = [one for one in common_spellings(UUID) if not ignores_case or one.islower()]
    assert stored(db) == [*common[: 1 + len(odd)], "no uuid at all"]
    assert members(db) == [f"p{number}" for number in range(1, 2 + len(odd))]


@pytest.mark.engines("sqlite")
def test_an_upgrade_respells(db: Database) -> None:
    """The first upgrade reports it, the second has nothing to do."""
    adopt(db, BRACED)
    assert schema.upgrade(db) == ["1 aggregate in an odd spelling was given a common one"]
    assert stored(db) == [UUID]
    assert members(db) == ["p1"]
    assert schema.upgrade(db) == []
