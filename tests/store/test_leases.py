# SPDX-License-Identifier: Apache-2.0
"""Leases in the store: who has one, what ends it, and what a sweep releases, with a clock that the
test sets. Source: spec/beyond.md 7.3."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import DateTime, literal_column, select

from berth.model.errors import ConsumerRace
from berth.model.ids import ConsumerUUID
from berth.store import lease_sweep
from berth.store.claim_reads import ClaimFacts
from berth.store.claims import release
from berth.store.consumer_lists import get_consumer
from berth.store.engine import database
from berth.store.engine.database import Database, Observer
from berth.store.engine.transaction import Tx
from berth.store.lease_sweep import Expired, sweep
from berth.store.leases import (
    Lease,
    count_leases,
    delete_lease,
    expiry,
    get_lease,
    pages_of_leases,
    put_lease,
)
from berth.upkeep import schema
from berth.upkeep.integrity import iter_repaired
from berth.upkeep.integrity.consumers import Owner
from tests.servers.statements import run
from tests.store.fleet import add_provider, claim, consumer, holding, used
from tests.store.statements import counted_statements

VCPU = {1: {"VCPU": 1}}
NOON = datetime(2026, 11, 24, 12)

EVERY = pytest.mark.engines("sqlite", "postgresql", "mariadb")


class Clock:
    """A clock that stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, seconds: float) -> None:
        """Let some time pass."""
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that decides, on every engine."""
    clock = Clock()
    monkeypatch.setattr(Database, "clock", lambda db: clock.now)
    return clock


@pytest.fixture
def fleet(db: Database, clock: Clock) -> Database:
    """A host, and consumers 1 and 2, of which the first has a lease of ten minutes."""
    add_provider(db, 1, VCPU=100)
    claim(db, holding(1, VCPU, project="web", lease_until=expiry(db, 600)))
    claim(db, holding(2, VCPU, project="web"))
    return db


def leases(db: Database) -> dict[str, timedelta]:
    """The time from noon at which each lease expires; every way to read leases says the same."""
    listed = [lease for page in pages_of_leases(db, page=1) for lease in page]
    assert [get_lease(db, lease.consumer) for lease in listed] == listed
    for lease in listed:
        shown = get_consumer(db, lease.consumer)
        assert shown is not None and shown.lease is not None
        assert shown.lease.expires_at == f"{lease.expires_at.isoformat()}Z"
    assert count_leases(db) == len(listed)
    return {lease.consumer: lease.expires_at - NOON for lease in listed}


def rows(db: Database) -> int:
    """How many leases are stored, whether or not they count."""
    with db.read() as tx:
        query = "SELECT count(*) FROM berth_leases"
        count: int = tx.connection.exec_driver_sql(query).scalar_one()
    return count


def swept(db: Database) -> list[Expired]:
    """What one sweep releases."""
    return [each for expired in sweep(db) for each in expired]


@EVERY
def test_a_lease_is_given_back_after_its_time(fleet: Database, clock: Clock) -> None:
    """Not before; and what has no lease stays."""
    assert leases(fleet) == {consumer(1): timedelta(minutes=10)}
    clock.pass_(599)
    assert swept(fleet) == []
    clock.pass_(1)
    assert swept(fleet) == [Expired(consumer(1), "web", ("p1",))]
    assert (swept(fleet), leases(fleet), rows(fleet), used(fleet, 1)) == ([], {}, 0, [1])
    assert get_consumer(fleet, consumer(1)) is None
    assert schema.check(fleet) == []


@EVERY
@pytest.mark.parametrize("fraction", [0.001, 0.999])
def test_a_lease_never_expires_early(
    db: Database, monkeypatch: pytest.MonkeyPatch, fraction: float
) -> None:
    """It ends at a whole second, which every engine can store; the clock of a server has fractions,
    whatever its columns keep."""
    now = NOON + timedelta(seconds=fraction)

    def stopped(moment: datetime) -> None:
        db._clock = lambda: moment
        server_time = literal_column(f"TIMESTAMP '{moment}'", DateTime())
        monkeypatch.setattr(database, "_CLOCK", select(server_time))

    stopped(now)
    add_provider(db, 1, VCPU=100)
    claim(db, holding(1, VCPU))
    lease = put_lease(db, consumer(1), 1)
    assert lease is not None and lease.expires_at == NOON + timedelta(seconds=2)
    stopped(NOON + timedelta(seconds=1.999))
    assert swept(db) == []
    stopped(NOON + timedelta(seconds=2))
    assert [each.consumer for each in swept(db)] == [consumer(1)]


@EVERY
def test_the_clock_of_a_database_has_fractions(db: Database) -> None:
    """Of a second: none of ten looks is at a whole one."""
    assert any(db.clock().microsecond for _ in range(10))


@EVERY
def test_a_lease_is_renewed_and_ended(fleet: Database, clock: Clock) -> None:
    """Also in the second in which it was given, after it has expired, and by a claim; a consumer
    that holds nothing has none."""
    lease = put_lease(fleet, consumer(1), 600)
    assert lease is not None and lease.expires_at == NOON + timedelta(seconds=600)
    clock.pass_(700)
    put_lease(fleet, consumer(1), 100)
    put_lease(fleet, consumer(2), 86_400)
    assert leases(fleet) == {
        consumer(1): timedelta(seconds=800),
        consumer(2): timedelta(seconds=700 + 86_400),
    }
    assert swept(fleet) == []
    assert delete_lease(fleet, consumer(1)) and not delete_lease(fleet, consumer(1))
    clock.pass_(200)
    assert (swept(fleet), used(fleet, 1)) == ([], [2])
    assert put_lease(fleet, consumer(3), 60) is None and not delete_lease(fleet, consumer(3))
    until = expiry(fleet, 60)
    claim(fleet, *(holding(n, VCPU, project="web", seen=1, lease_until=until) for n in (1, 2)))
    assert leases(fleet) == dict.fromkeys((consumer(1), consumer(2)), timedelta(seconds=960))
    assert rows(fleet) == 2


@pytest.mark.engines("sqlite")
def test_a_claim_without_leases_costs_no_statement(db: Database, clock: Clock) -> None:
    """Neither of a new consumer nor of a known one, whatever leases others have; one that ends a
    lease costs one more. A sweep without expired leases asks one question."""
    add_provider(db, 1, VCPU=100)
    claim(db, holding(1, VCPU))
    counts = []
    for has_lease in (False, True):
        if has_lease:
            put_lease(db, consumer(1), 60)
        for number, amounts in ((2, VCPU), (2, VCPU), (2, {}), (1, VCPU)):
            with counted_statements(db) as sent:
                claim(db, holding(number, amounts))
            counts.append((len(sent), sum("berth_leases" in text[:30] for text in sent)))
    (*before, plain), (*after, ending) = counts[:4], counts[4:]
    assert before == after and all(own == 0 for _, own in before)
    assert (plain[1], ending) == (0, (plain[0] + 1, 1))
    with counted_statements(db) as sent:
        assert swept(db) == []
    assert len(sent) == 1 and sent[0].startswith("SELECT")


@EVERY
def test_many_expire_in_one_sweep(db: Database, clock: Clock) -> None:
    """In few commits."""
    observer = Counts()
    db.observer = observer
    add_provider(db, 1, VCPU=100)
    add_provider(db, 2, parent=1, VCPU=100)
    writes = [
        holding(n, {1 + n % 2: {"VCPU": 1}}, lease_until=expiry(db, 60)) for n in range(1, 71)
    ]
    claim(db, *writes)
    commits = observer.commits
    clock.pass_(60)
    assert {each.consumer for each in swept(db)} == {consumer(n) for n in range(1, 71)}
    assert (observer.released, observer.commits - commits, rows(db)) == (70, 2, 0)
    assert schema.check(db) == []


@EVERY
def test_one_that_cannot_be_released_does_not_keep_the_others(
    fleet: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is left to the next sweep."""
    for number in (2, 3, 4):
        claim(fleet, holding(number, VCPU, project="web", lease_until=expiry(fleet, 600)))

    def lose(tx: Tx, facts: ClaimFacts, *, expired: Sequence[Lease] = ()) -> set[ConsumerUUID]:
        if consumer(2) in {lease.consumer for lease in expired}:
            raise ConsumerRace([consumer(2)])
        return release(tx, facts, expired=expired)

    clock.pass_(600)
    with monkeypatch.context() as patched:
        patched.setattr(lease_sweep, "release", lose)
        released = {each.consumer for each in swept(fleet)}
    assert released == {consumer(number) for number in (1, 3, 4)}
    assert [each.consumer for each in swept(fleet)] == [consumer(2)]
    assert schema.check(fleet) == []


class Counts(Observer):
    """Counts commits, and the consumers that were released."""

    commits = released = 0

    def committed(self, writes: int) -> None:
        """See `Observer`."""
        self.commits += 1

    def expired(self, consumers: int) -> None:
        """See `Observer`."""
        self.released += consumers


@EVERY
def test_another_program_ends_a_lease_too(fleet: Database, clock: Clock, fresh_url: str) -> None:
    """Every write of OpenStack Placement increments the consumer's generation, or deletes it. A
    check finds the lease that is left behind, and a repair forgets it."""
    put_lease(fleet, consumer(2), 60)
    run(
        fresh_url,
        f"UPDATE consumers SET generation = 2 WHERE uuid = '{consumer(1)}'",
        f"UPDATE consumers SET id = id + 100 WHERE uuid = '{consumer(2)}'",
    )
    assert leases(fleet) == {}
    for number in (1, 2):
        shown = get_consumer(fleet, consumer(number))
        assert shown is not None and shown.lease is None
    expected = "the lease of consumer {} is of an earlier state of it"
    told = [sentence for sentence in schema.check(fleet) if sentence.startswith("the lease")]
    assert told == [expected.format(consumer(number)) for number in (1, 2)]
    clock.pass_(60)
    assert (swept(fleet), rows(fleet)) == ([], 1)
    list(iter_repaired(fleet, Owner("nobody", "nobody")))
    assert (rows(fleet), used(fleet, 1)) == (0, [2]) and schema.check(fleet) == []


@pytest.mark.engines("sqlite")
@pytest.mark.parametrize("to_the_second", [False, True])
def test_a_lease_is_not_of_another_consumer_with_the_same_id(
    fleet: Database, clock: Clock, fresh_url: str, to_the_second: bool
) -> None:
    """SQLite gives the highest id again, and a new consumer begins at generation 1 again, within a
    millisecond; the other program's times may be in whole seconds. What it holds is never taken
    back, and a new lease counts for it."""
    put_lease(fleet, consumer(2), 60)
    columns = "uuid, generation, project_id, user_id, consumer_type_id"
    later = "strftime('%Y-%m-%d %H:%M:%f', created_at, '+0.001 seconds')"
    moment = "datetime(created_at)" if to_the_second else later
    ids = "SELECT uuid, id FROM consumers"
    before = run(fresh_url, ids)
    run(
        fresh_url,
        "CREATE TABLE kept AS SELECT * FROM consumers",
        "DELETE FROM consumers",
        f"INSERT INTO consumers ({columns}, created_at) SELECT {columns}, {moment} FROM kept"
        " ORDER BY id",
        "DROP TABLE kept",
    )
    assert sorted(run(fresh_url, ids)) == sorted(before)
    assert leases(fleet) == {}
    expected = "the lease of consumer {} is of an earlier state of it"
    assert schema.check(fleet) == [expected.format(consumer(number)) for number in (1, 2)]
    put_lease(fleet, consumer(2), 900)
    assert leases(fleet) == {consumer(2): timedelta(minutes=15)}
    assert not delete_lease(fleet, consumer(1))
    clock.pass_(601)
    assert (swept(fleet), used(fleet, 1)) == ([], [2])
    clock.pass_(300)
    assert [each.consumer for each in swept(fleet)] == [consumer(2)]
    assert (used(fleet, 1), rows(fleet), schema.check(fleet)) == ([1], 0, [])


@EVERY
def test_a_consumer_without_a_time_of_creation_can_have_a_lease(
    fleet: Database, clock: Clock, fresh_url: str
) -> None:
    """Its record may be as old as that."""
    run(fresh_url, f"UPDATE consumers SET created_at = NULL WHERE uuid = '{consumer(2)}'")
    for seconds in (30, 60):
        put_lease(fleet, consumer(2), seconds)
        assert leases(fleet)[consumer(2)] == timedelta(seconds=seconds)
    clock.pass_(60)
    assert [each.consumer for each in swept(fleet)] == [consumer(2)]


@EVERY
def test_what_another_program_left_of_a_lease_is_no_obstacle(
    fleet: Database, clock: Clock, fresh_url: str
) -> None:
    """To a new one, which replaces it: of the consumer that it has written, or of a new one with
    the same uuid."""
    one = timedelta(minutes=1)
    run(fresh_url, f"UPDATE consumers SET generation = 2 WHERE uuid = '{consumer(1)}'")
    put_lease(fleet, consumer(1), 60)
    assert (leases(fleet), rows(fleet)) == ({consumer(1): one}, 1)
    run(
        fresh_url,
        f"DELETE FROM allocations WHERE consumer_id = '{consumer(1)}'",
        f"DELETE FROM consumers WHERE uuid = '{consumer(1)}'",
    )
    claim(fleet, holding(1, VCPU, project="web", lease_until=expiry(fleet, 120)))
    assert (leases(fleet), rows(fleet)) == ({consumer(1): 2 * one}, 1)


@pytest.mark.engines("postgresql", "mariadb", "galera")
def test_on_servers_the_clock_of_the_database_counts(db: Database) -> None:
    """In UTC; a process whose own clock is wrong is no danger."""
    db._clock = lambda: datetime(1999, 1, 1)
    add_provider(db, 1, VCPU=100)
    claim(db, holding(1, VCPU))
    lease = put_lease(db, consumer(1), 600)
    assert lease is not None
    assert abs(
        lease.expires_at - datetime.now(UTC).replace(tzinfo=None) - timedelta(minutes=10)
    ) < timedelta(seconds=30)
    assert swept(db) == []
    db._clock = lambda: datetime(2999, 1, 1)
    assert swept(db) == []
