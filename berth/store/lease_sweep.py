# SPDX-License-Identifier: Apache-2.0
"""Takes back what consumers with expired leases hold.

Every worker sweeps, and several at once do no harm: the deletion of a lease that is still as it was
read decides who releases its consumer, in the same commit, and a renewal that comes first wins.
On servers the clock of the database counts. Source: spec/beyond.md 7.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import bindparam, or_, select

from berth.model.errors import (
    BerthError,
    ConsumerRace,
    DatabaseUnavailable,
    LostRace,
    OutcomeUnknown,
)
from berth.model.ids import ConsumerUUID
from berth.store.claim_reads import ClaimFacts, holdings, read_release_facts
from berth.store.claims import release
from berth.store.engine.database import Database
from berth.store.engine.tables import (
    allocations,
    berth_leases,
    consumers,
    projects,
    resource_providers,
)
from berth.store.engine.transaction import Tx
from berth.store.engine.write_record import Holdings
from berth.store.leases import LEASE_COLUMNS, Lease, deletion_as_seen

#: Leases that are read at once, and those whose consumers are released in one commit.
_READ_MAX: Final = 1000
_RELEASED_MAX: Final = 50

_lease = berth_leases.c

_BEGINNING: Final = (datetime(1970, 1, 1), 0)
#: In the order of expiry, from where the last page ended.
_DUE: Final = (
    select(*LEASE_COLUMNS, _lease.id)
    .where(
        _lease.expires_at <= bindparam("now"),
        _lease.expires_at >= bindparam("after"),
        or_(_lease.expires_at > bindparam("after"), _lease.id > bindparam("after_id")),
    )
    .order_by(_lease.expires_at, _lease.id)
    .limit(bindparam("count"))
)
_PRESENT: Final = select(*LEASE_COLUMNS).where(
    _lease.consumer_uuid.in_(bindparam("consumers", expanding=True))
)

_root = resource_providers.alias("root")
_PLACES: Final = (
    select(consumers.c.uuid, projects.c.external_id, _root.c.name)
    .distinct()
    .select_from(consumers)
    .join(projects, projects.c.id == consumers.c.project_id)
    .join(allocations, allocations.c.consumer_id == consumers.c.uuid)
    .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
    .join(_root, _root.c.id == resource_providers.c.root_provider_id)
    .where(consumers.c.uuid.in_(bindparam("consumers", expanding=True)))
    .order_by(consumers.c.uuid, _root.c.name)
)


class Expired(NamedTuple):
    """A consumer that was released because its lease had expired.

    Attributes:
        hosts: the names of the hosts on which it held something.
    """

    consumer: ConsumerUUID
    project_id: str
    hosts: tuple[str, ...]


def sweep(db: Database) -> Iterator[list[Expired]]:
    """Release the consumers whose leases have expired by now; those of each commit in turn.

    A lease that cannot be swept, because other requests are faster each time, is left to the next
    sweep. The record has what the consumers of a commit had in time for that commit's turn, or for
    the error that ends the sweep.

    Raises:
        DatabaseUnavailable: the database cannot be read or written.
    """
    for due in _due(db):
        for begin in range(0, len(due), _RELEASED_MAX):
            for expired in _released(db, due[begin : begin + _RELEASED_MAX]):
                if expired:
                    db.observer.expired(len(expired))
                    yield expired


def _due(db: Database) -> Iterator[list[Lease]]:
    """The leases that have expired by now, in pages."""
    now = db.clock()
    after, after_id = _BEGINNING
    while True:
        page = {"now": now, "after": after, "after_id": after_id, "count": _READ_MAX}
        rows = db.rows(_DUE, page)
        yield [Lease(*row[:-1]) for row in rows]
        if len(rows) < _READ_MAX:
            return
        *_, (_, after, _, after_id) = rows


def _released(db: Database, due: Sequence[Lease]) -> Iterator[list[Expired]]:
    """Release the consumers of some leases in one commit; if that fails, each in its own."""
    try:
        yield _expire(db, due)
        return
    except DatabaseUnavailable:
        raise
    except BerthError:
        if len(due) == 1:
            return
    for lease in due:
        yield from _released(db, [lease])


def _expire(db: Database, due: Sequence[Lease]) -> list[Expired]:
    """Release the consumers of some leases that are as they were read, and delete these.

    Raises:
        LostRace: other requests were faster each time.
    """

    former = Holdings()

    def unit(tx: Tx) -> list[Expired]:
        nonlocal former
        try:
            expired, former = _expired(tx, due, is_recorded=db.record is not None)
        except ConsumerRace as error:
            raise LostRace("a consumer whose lease has expired") from error
        return expired

    try:
        expired = db.write(unit)
    except OutcomeUnknown:
        _record(db, former)
        raise
    _record(db, former)
    return expired


def _record(db: Database, former: Holdings) -> None:
    if db.record is not None and former.holders:
        db.record.release_more(former)


def _expired(tx: Tx, due: Sequence[Lease], *, is_recorded: bool) -> tuple[list[Expired], Holdings]:
    """The consumers that were released, and what they had, if that is recorded."""
    unchanged = _present(tx, [lease.consumer for lease in due]).intersection(due)
    if not unchanged:
        return [], Holdings()
    uuids = sorted(lease.consumer for lease in unchanged)
    facts = read_release_facts(tx, uuids, with_holders=is_recorded)
    counting = sorted(lease for lease in unchanged if _counts(lease, facts))
    consumers_ = [lease.consumer for lease in counting]
    if len(counting) < len(unchanged):
        tx.change_all([deletion_as_seen(sorted(unchanged.difference(counting)))])
        facts = read_release_facts(tx, consumers_, with_holders=is_recorded)
    if not counting:
        return [], Holdings()
    former = holdings(facts, set(consumers_)) if is_recorded else Holdings()
    expired = _places(tx, consumers_)
    release(tx, facts, expired=counting)
    return expired, former


def _counts(lease: Lease, facts: ClaimFacts) -> bool:
    """Whether the consumer of a lease still is as it was when it got the lease."""
    consumer = facts.consumers.get(lease.consumer)
    return consumer is not None and bool(consumer.lease_counts)


def _present(tx: Tx, consumers_: Sequence[ConsumerUUID]) -> set[Lease]:
    return {Lease(*row) for row in tx.rows(_PRESENT, {"consumers": consumers_})}


def _places(tx: Tx, consumers_: Sequence[ConsumerUUID]) -> list[Expired]:
    """Where some consumers hold something."""
    places: dict[tuple[ConsumerUUID, str], list[str]] = {}
    for consumer, project_id, host in tx.rows(_PLACES, {"consumers": consumers_}):
        places.setdefault((consumer, project_id), []).append(host)
    return [Expired(*key, tuple(hosts)) for key, hosts in places.items()]
