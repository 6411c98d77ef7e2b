# SPDX-License-Identifier: Apache-2.0
"""What old databases of the original lack, and its later revisions take for granted.

Those are the root of each provider, and a record for each consumer that holds something
(spec/operations.md 5.1). The original has a command of its own for both; berth does them as a part
of the upgrade, because they only write down what the database says already, and an operator who
has left the original's program behind should not need it once more. Both go in parts that are
transactions of their own, and can be broken off and begun again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from sqlalchemy import Table, bindparam, exists, func, select, update

from berth.store.engine.database import Database
from berth.store.engine.tables import allocations, consumers, projects, resource_providers, users
from berth.store.engine.transaction import Tx
from berth.store.usage_counts import Report, unheard
from berth.store.versions import is_current
from berth.upkeep.trees import NO_PROVIDER, WrongRoot, read_trees, wrong_roots

#: Rows of one transaction.
_PART: Final = 1000

#: Whose consumers are that were written without saying so, where nobody configured it.
NOBODY: Final = "00000000-0000-0000-0000-000000000000"


class Owner(NamedTuple):
    """The project and the user of consumers that were written without."""

    project: str = NOBODY
    user: str = NOBODY


class Unmigrated(NamedTuple):
    """How many rows lack something: providers without a root, consumers without a record."""

    providers: int
    consumers: int


#: Where nothing was configured.
NOBODY_IN_PARTICULAR: Final = Owner()


def migrate_data(db: Database, owner: Owner, report: Report = unheard) -> list[str]:
    """Give providers their roots and consumers their records; a sentence for what was done."""
    done = []
    if roots := sum(give_roots(db, report=report)):
        done.append(f"{roots} resource providers without a root were given theirs")
    if made := sum(make_consumers(db, owner, report=report)):
        done.append(f"consumers without a record that were given one: {made}")
    return done


def give_roots(db: Database, most: int = _PART, report: Report = unheard) -> Iterator[int]:
    """Give providers without a root theirs, at most so many in a transaction; how many at a time.

    A provider of which the root cannot be told keeps none: see `berth.upkeep.trees`.
    """
    with db.read() as tx:
        wrong = [one for one in wrong_roots(read_trees(tx)) if one.found == NO_PROVIDER]
    for done in range(0, len(wrong), most):
        report("roots of providers", done, len(wrong))
        some = wrong[done : done + most]
        _write(db, partial(set_roots, roots=some))
        yield len(some)


def make_consumers(
    db: Database, owner: Owner, most: int = _PART, report: Report = unheard
) -> Iterator[int]:
    """Give consumers that hold something a record, at most so many in a transaction; how many at a
    time."""
    done, total = 0, count_unmigrated(db).consumers
    while True:
        with db.read() as tx:
            some = list(tx.connection.scalars(UNRECORDED.limit(most)))
        if not some:
            return
        report("records of consumers", done, total)
        _write(db, partial(insert_consumers, uuids=some, owner=owner))
        done += len(some)
        yield len(some)


def count_unmigrated(db: Database) -> Unmigrated:
    """What is left to do."""
    rootless = select(func.count()).where(_provider.root_provider_id.is_(None))
    unrecorded = select(func.count()).select_from(UNRECORDED.subquery())
    with db.read() as tx:
        return Unmigrated(*(tx.connection.scalar(query) or 0 for query in (rootless, unrecorded)))


def set_roots(tx: Tx, roots: Sequence[WrongRoot]) -> None:
    """Write the right roots of some providers, unless they have been moved since."""
    tx.connection.execute(
        _SET_ROOT,
        [
            {"provider": one.provider, "found": one.found, "right": one.right, "now": tx.now}
            for one in roots
        ],
    )
    tx.touched.update(one.provider for one in roots)


def insert_consumers(tx: Tx, uuids: Sequence[str], owner: Owner) -> None:
    """Write records for consumers that have none; those that have one by now keep it."""
    record = {
        "project_id": _owner_id(tx, projects, owner.project),
        "user_id": _owner_id(tx, users, owner.user),
        "generation": 0,
        "created_at": tx.now,
    }
    tx.insert_missing(consumers, [{"uuid": uuid, **record} for uuid in uuids])


_provider: Final = resource_providers.c
_SET_ROOT: Final = (
    update(resource_providers)
    .where(
        _provider.id == bindparam("provider"),
        func.coalesce(_provider.root_provider_id, NO_PROVIDER) == bindparam("found"),
    )
    .values(root_provider_id=bindparam("right"), updated_at=bindparam("now"))
)

#: The consumers that hold something and have no record.
UNRECORDED: Final = (
    select(allocations.c.consumer_id)
    .where(~exists().where(consumers.c.uuid == allocations.c.consumer_id))
    .distinct()
)


def _write(db: Database, unit: Callable[[Tx], Any]) -> None:
    """Write to a schema that is in the making, or to one that may be served from meanwhile."""
    write = db.write if is_current(db) else db.write_unnoted
    write(unit)


def _owner_id(tx: Tx, table: Table, name: str) -> int:
    """The id of a project or a user, which comes into being when it is first named."""
    tx.insert_missing(table, [{"external_id": name, "created_at": tx.now}])
    number = tx.connection.scalar(select(table.c.id).where(table.c.external_id == name))
    assert number is not None, "it has just been written"
    return int(number)
