# SPDX-License-Identifier: Apache-2.0
"""Leases: times at which berth takes back what consumers hold.

A lease belongs to one state of its consumer: it counts only while the consumer is the same and at
the generation at which it got the lease (`LEASE_COUNTS`). So every write of a consumer's
allocations ends its lease in its own commit, whoever writes, and without a statement more. berth
also deletes the row then, if the consumer's record showed one; a row that is left behind counts for
nothing until it is swept.

`berth.store.lease_sweep` takes back what expired leases hold. Source: spec/beyond.md 7.3.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    DateTime,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)

from berth.model.consumer import ConsumerWrite
from berth.model.errors import LostRace
from berth.model.ids import ConsumerUUID, Generation
from berth.store.consumers import COUNTS, StoredConsumer
from berth.store.engine.database import Database
from berth.store.engine.tables import (
    LEASE_COUNTS,
    allocations,
    berth_consumer_names,
    berth_leases,
    consumers,
    projects,
    users,
)
from berth.store.engine.transaction import Change, Tx, unless_taken, writes_all

#: Leases in a page of a list.
PAGE: Final = 500

_SECOND: Final = timedelta(seconds=1)

_lease = berth_leases.c
_consumer = consumers.c


class Lease(NamedTuple):
    """The row of a lease, as read.

    Attributes:
        expires_at: naive UTC, a whole second.
        renewals: how many times it was renewed.
    """

    consumer: ConsumerUUID
    expires_at: datetime
    renewals: int


class ListedLease(NamedTuple):
    """A lease with its consumer.

    Attributes:
        name: of the consumer; None if it has none.
        expires_at: naive UTC, a whole second.
    """

    consumer: ConsumerUUID
    name: str | None
    project_id: str
    user_id: str
    expires_at: datetime


LEASE_COLUMNS: Final = (
    _lease.consumer_uuid,
    _lease.expires_at,
    _lease.renewals,
)

#: Whether a lease is still as it was read.
_AS_SEEN: Final = and_(
    _lease.consumer_uuid == bindparam("consumer"),
    _lease.expires_at == bindparam("seen_expires_at", type_=DateTime),
    _lease.renewals == bindparam("seen_renewals"),
)

_NEW_EXPIRY: Final = bindparam("new_expires_at", type_=DateTime)

_COLUMNS: Final = [
    "consumer_uuid",
    "consumer_id",
    "consumer_created_at",
    "consumer_generation",
    "expires_at",
    "renewals",
]
_NEW: Final = select(
    _consumer.uuid,
    _consumer.id,
    _consumer.created_at,
    _consumer.generation,
    _NEW_EXPIRY,
    literal_column("0"),
)
_INSERT: Final = insert(berth_leases).from_select(
    _COLUMNS, _NEW.where(_consumer.uuid == bindparam("consumer"))
)
_INSERT_AS_SEEN: Final = insert(berth_leases).from_select(
    _COLUMNS,
    _NEW.where(
        _consumer.id == bindparam("of_consumer"), _consumer.generation == bindparam("generation")
    ),
)
_RENEW: Final = (
    update(berth_leases)
    .where(_AS_SEEN)
    .values(
        consumer_id=bindparam("of_consumer"),
        # Not a parameter: another program may have written it in another form.
        consumer_created_at=select(_consumer.created_at)
        .where(_consumer.uuid == _lease.consumer_uuid)
        .scalar_subquery(),
        consumer_generation=bindparam("generation"),
        expires_at=_NEW_EXPIRY,
        renewals=_lease.renewals + 1,
    )
)
_DELETE: Final = delete(berth_leases).where(
    _lease.consumer_uuid.in_(bindparam("consumers", expanding=True))
)
_DELETE_AS_SEEN: Final = delete(berth_leases).where(_AS_SEEN)

#: A consumer that holds something, and its lease, or NULL in the columns of that.
_HOLDER: Final = (
    select(_consumer.id, _consumer.generation, COUNTS, *LEASE_COLUMNS)
    .select_from(consumers)
    .outerjoin(berth_leases, _lease.consumer_uuid == _consumer.uuid)
    .where(
        _consumer.uuid == bindparam("consumer"),
        select(allocations.c.id)
        .where(allocations.c.consumer_id == _consumer.uuid)
        .correlate(consumers)
        .exists(),
    )
)

_LISTED: Final = (
    select(
        _lease.consumer_uuid,
        berth_consumer_names.c.name,
        projects.c.external_id,
        users.c.external_id,
        _lease.expires_at,
    )
    .select_from(berth_leases)
    .join(consumers, LEASE_COUNTS)
    .join(projects, projects.c.id == _consumer.project_id)
    .join(users, users.c.id == _consumer.user_id)
    .outerjoin(berth_consumer_names, berth_consumer_names.c.consumer_uuid == _consumer.uuid)
)
_ONE: Final = _LISTED.where(_lease.consumer_uuid == bindparam("consumer"))
_NEXT: Final = (
    _LISTED.where(_lease.consumer_uuid > bindparam("after"))
    .order_by(_lease.consumer_uuid)
    .limit(bindparam("count"))
)
_NEXT_OF_PROJECT: Final = _NEXT.where(projects.c.external_id == bindparam("project"))
_COUNT: Final = select(func.count()).select_from(berth_leases).join(consumers, LEASE_COUNTS)


def expiry(db: Database, seconds: int) -> datetime:
    """When a lease expires that is given now: never early, by the clock of the database."""
    return _whole_second(db.clock() + timedelta(seconds=seconds))


def get_lease(db: Database, consumer: ConsumerUUID) -> ListedLease | None:
    """The lease of a consumer; None if it has none."""
    return _lease_of(db.rows(_ONE, {"consumer": consumer}), consumer)


def pages_of_leases(
    db: Database, project_id: str | None = None, *, page: int = PAGE
) -> Generator[list[ListedLease]]:
    """All leases, or those of a project, by the UUIDs of their consumers, as of one state of the
    database, page by page.

    The transaction is open until the last page has been taken.
    """
    query = _NEXT if project_id is None else _NEXT_OF_PROJECT
    with db.read() as tx:
        for rows in tx.pages(query, {"project": project_id}, page):
            leases = map(ListedLease._make, rows)
            # A collation may find another project.
            yield [each for each in leases if project_id in (None, each.project_id)]


def count_leases(db: Database) -> int:
    """How many consumers have a lease."""
    ((count,),) = db.rows(_COUNT, {})
    return int(count)


def put_lease(db: Database, consumer: ConsumerUUID, seconds: int) -> ListedLease | None:
    """Give a consumer a lease, or renew the one that it has; return it as it was written.

    A lease that has expired can be renewed until a sweep takes back what the consumer holds.

    Returns:
        None if the consumer holds nothing.
    """
    if db.record is not None:
        db.record.wanted["seconds"] = seconds
    expires_at = expiry(db, seconds)

    def unit(tx: Tx) -> ListedLease | None:
        tx.consumers += (consumer,)
        for consumer_id, generation, _, *row in tx.rows(_HOLDER, {"consumer": consumer}):
            lease = None if row[0] is None else Lease(*row)
            _write(tx, consumer_id, generation, lease, expires_at)
            return _lease_of(tx.rows(_ONE, {"consumer": consumer}), consumer)
        return None

    return db.write(unit)


def delete_lease(db: Database, consumer: ConsumerUUID) -> bool:
    """End the lease of a consumer, which keeps what it holds; return whether there was one."""
    #: Not only in the last attempt: one may have been committed although its connection was lost.
    attempts: list[bool] = []

    def unit(tx: Tx) -> None:
        tx.consumers += (consumer,)
        for _, _, counts, *row in tx.rows(_HOLDER, {"consumer": consumer}):
            if row[0] is not None:
                tx.change_all([deletion_as_seen([Lease(*row)])])
                attempts.append(bool(counts))

    db.write(unit)
    return any(attempts)


def lease_changes(
    tx: Tx,
    writes: Sequence[ConsumerWrite],
    stored: Mapping[ConsumerUUID, StoredConsumer],
    released: Iterable[StoredConsumer],
    expired: Sequence[Lease],
) -> list[Change]:
    """The writes that end the leases of consumers whose allocations change, and make new ones.

    There are none if no consumer has a lease, and none gets one.

    Args:
        stored: the records of the consumers, also of those that are released.
        released: consumers that release everything, and have no write of their own.
        expired: leases because of which consumers are released. Their deletion raises LostRace if
            one is not as it was read.
    """
    # PERF most claims end here.
    if not (
        expired
        or any(each.is_leased for each in stored.values())
        or any(write.lease_until for write in writes)
    ):
        return []
    expiring = {lease.consumer for lease in expired}
    ending = {each.uuid for each in released if each.is_leased} - expiring
    for write in writes:
        consumer = stored.get(write.uuid)
        # Another program may have left the lease of an earlier consumer behind.
        if write.lease_until or (consumer is not None and consumer.is_leased):
            ending.add(write.uuid)
    leased = [write for write in writes if write.lease_until and write.allocations]
    return [
        *(Change(_DELETE, [{"consumers": chunk}]) for chunk in tx.chunks(sorted(ending))),
        Change(
            _INSERT,
            [{"consumer": each.uuid, "new_expires_at": each.lease_until} for each in leased],
        ),
        deletion_as_seen(expired),
    ]


def deletion_as_seen(leases: Sequence[Lease]) -> Change:
    """The deletion of leases; it raises LostRace if one is not as it was read."""
    rows = [_seen(lease) for lease in leases]
    return Change(_DELETE_AS_SEEN, rows, writes_all(len(rows), LostRace, "a lease"))


def _lease_of(rows: Iterable[Sequence[Any]], consumer: ConsumerUUID) -> ListedLease | None:
    # A collation may find another uuid.
    return next((ListedLease(*row) for row in rows if row[0] == consumer), None)


def _write(
    tx: Tx, consumer_id: int, generation: Generation, lease: Lease | None, expires_at: datetime
) -> None:
    """Write the lease of a consumer.

    Args:
        lease: the one that it has, which may count no more.

    Raises:
        LostRace: another request changed the lease or the consumer since they were read.
    """
    values = {
        "of_consumer": consumer_id,
        "generation": generation,
        "new_expires_at": expires_at,
        **({} if lease is None else _seen(lease)),
    }
    if lease is None:
        # RACE tests/store/test_lease_races.py: another request may give it a lease meanwhile.
        with unless_taken("a lease"):
            written = tx.change(_INSERT_AS_SEEN, values)
    else:
        written = tx.change(_RENEW, values)
    if written != 1:
        raise LostRace("a lease")


def _seen(lease: Lease) -> dict[str, Any]:
    return {
        "consumer": lease.consumer,
        "seen_expires_at": lease.expires_at,
        "seen_renewals": lease.renewals,
    }


def _whole_second(moment: datetime) -> datetime:
    """The next whole second, which every engine can store."""
    whole = moment.replace(microsecond=0)
    return whole if whole == moment else whole + _SECOND
