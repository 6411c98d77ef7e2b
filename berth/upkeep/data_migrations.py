# SPDX-License-Identifier: Apache-2.0
"""Completes the data of old databases, as later revisions of OpenStack Placement require.

These are the root of each provider, and a record for each consumer with allocations
(spec/operations.md 5.1). Placement has a command for both. berth does it during the upgrade: it
only derives what the database says already, and an operator may no longer have Placement's program.
Both run in parts with transactions of their own, and can be interrupted and repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import compress
from typing import Any, Final, NamedTuple

from sqlalchemy import Table, bindparam, exists, func, select, update

from berth.store.engine.database import Database
from berth.store.engine.tables import allocations, consumers, projects, resource_providers, users
from berth.store.engine.transaction import Tx
from berth.store.project_counts import count_recorded
from berth.store.usage_counts import Report, unheard
from berth.store.versions import is_current
from berth.upkeep.trees import NO_PROVIDER, WrongRoot, read_trees, wrong_roots

#: Rows of one transaction.
_PART: Final = 1000

#: The default owner of consumers whose owner is not recorded.
NOBODY: Final = "00000000-0000-0000-0000-000000000000"


class Owner(NamedTuple):
    """The project and the user of consumers whose owner is not recorded."""

    project: str = NOBODY
    user: str = NOBODY


class Unmigrated(NamedTuple):
    """The number of rows to complete: providers without a root, consumers without a record."""

    providers: int
    consumers: int


#: The default.
NOBODY_IN_PARTICULAR: Final = Owner()


def migrate_data(db: Database, owner: Owner, report: Report = unheard) -> list[str]:
    """Give providers their roots and consumers their records; return a sentence for each change."""
    done = []
    if roots := sum(give_roots(db, report=report)):
        done.append(f"{roots} resource providers without a root were given theirs")
    if made := sum(make_consumers(db, owner, report=report)):
        done.append(f"consumers without a record that were given one: {made}")
    return done


def give_roots(db: Database, most: int = _PART, report: Report = unheard) -> Iterator[int]:
    """Set the missing roots of providers, `most` in a transaction; yield the number of each.

    A provider whose root cannot be determined gets none: see `berth.upkeep.trees`.
    """
    with db.read() as tx:
        wrong = [root for root in wrong_roots(read_trees(tx)) if root.stored == NO_PROVIDER]
    for done in range(0, len(wrong), most):
        report("roots of providers", done, len(wrong))
        some = wrong[done : done + most]
        _write(db, partial(set_roots, roots=some))
        yield len(some)


def make_consumers(
    db: Database, owner: Owner, most: int = _PART, report: Report = unheard
) -> Iterator[int]:
    """Create the missing records of consumers with allocations, `most` in a transaction; yield the
    number of each."""
    done, total = 0, count_unmigrated(db).consumers
    while True:
        with db.read() as tx:
            some = list(tx.connection.scalars(UNRECORDED.limit(most)))
        if not some:
            return
        report("records of consumers", done, total)
        _write(db, partial(insert_consumers, uuids=some, owner=owner, counting=is_current(db)))
        done += len(some)
        yield len(some)


def count_unmigrated(db: Database) -> Unmigrated:
    """Count the rows that are still to be completed."""
    rootless = select(func.count()).where(_provider.root_provider_id.is_(None))
    unrecorded = select(func.count()).select_from(UNRECORDED.subquery())
    with db.read() as tx:
        return Unmigrated(*(tx.connection.scalar(query) or 0 for query in (rootless, unrecorded)))


def set_roots(tx: Tx, roots: Sequence[WrongRoot]) -> None:
    """Write the right roots of some providers, unless they have been moved since."""
    tx.connection.execute(
        _SET_ROOT,
        [
            {"provider": root.provider, "found": root.stored, "right": root.right, "now": tx.now}
            for root in roots
        ],
    )
    tx.touched.update(root.provider for root in roots)


def insert_consumers(tx: Tx, uuids: Sequence[str], owner: Owner, *, counting: bool = True) -> None:
    """Write records for consumers that have none; those that have one by now keep it.

    Args:
        counting: count what they use; not before the schema is this release's.
    """
    record = {
        "project_id": _owner_id(tx, projects, owner.project),
        "user_id": _owner_id(tx, users, owner.user),
        "generation": 0,
        "created_at": tx.now,
    }
    (insertion,) = tx.insertions_of_missing(consumers, [{"uuid": uuid, **record} for uuid in uuids])
    made = tx.change_each(insertion.statement, insertion.parameters)
    if counting:
        count_recorded(tx, compress(uuids, made))


_provider: Final = resource_providers.c
_SET_ROOT: Final = (
    update(resource_providers)
    .where(
        _provider.id == bindparam("provider"),
        func.coalesce(_provider.root_provider_id, NO_PROVIDER) == bindparam("found"),
    )
    .values(root_provider_id=bindparam("right"), updated_at=bindparam("now"))
)

#: The consumers that have allocations but no record.
UNRECORDED: Final = (
    select(allocations.c.consumer_id)
    .where(~exists().where(consumers.c.uuid == allocations.c.consumer_id))
    .distinct()
)


def _write(db: Database, unit: Callable[[Tx], Any]) -> None:
    """Write to a schema that is being created, or to one that may be in use."""
    write = db.write if is_current(db) else db.write_unnoted
    write(unit)


def _owner_id(tx: Tx, table: Table, name: str) -> int:
    """The id of a project or a user; creates it if needed."""
    tx.insert_missing(table, [{"external_id": name, "created_at": tx.now}])
    number = tx.connection.scalar(select(table.c.id).where(table.c.external_id == name))
    assert number is not None, "it has just been written"
    return int(number)
