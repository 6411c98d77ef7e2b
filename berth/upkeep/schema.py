# SPDX-License-Identifier: Apache-2.0
"""The schema of a database: adopts one of OpenStack Placement, upgrades it, adds the standard
names, and hands it back.

Placement's tables stay as they are: while `alembic_version` is `PLACEMENT_HEAD`, Placement can use
the database again. berth's usages do not include what it writes in the meantime; `upgrade` recounts
them.

An upgrade can be interrupted at any point, and continues where it stopped when it is run again. On
SQLite and PostgreSQL, each step of a history is a transaction. MySQL and MariaDB commit every
statement that changes a table, so each part of a step first checks whether it has been done
(`migrations/steps.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from heapq import nsmallest
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    MetaData,
    Select,
    Table,
    exc,
    exists,
    func,
    inspect,
    select,
    true,
)

from berth.model.errors import SchemaError
from berth.model.standard import STANDARD_CLASS_IDS, STANDARD_TRAITS
from berth.store.aggregates import odd_spellings, respell
from berth.store.engine.database import Database
from berth.store.engine.tables import (
    allocations,
    berth_drains,
    berth_journal,
    berth_leases,
    berth_writer,
    consumers,
    resource_classes,
    resource_providers,
    traits,
)
from berth.store.engine.transaction import Tx
from berth.store.identity import renew_identity
from berth.store.leases import ListedLease, pages_of_leases
from berth.store.named import all_records
from berth.store.usage_counts import Report, fill_usages, providers_moved, recount_usages, unheard
from berth.store.usages import fill_project_usages, is_marked, recount_project_usages
from berth.store.versions import (
    BERTH_PREFIX,
    BERTH_REVISIONS,
    BERTH_TABLES_MADE,
    BERTH_VERSIONS,
    CURRENT,
    PLACEMENT_REVISIONS,
    PLACEMENT_VERSIONS,
    read_versions,
    versions_of,
    why_not_current,
)
from berth.upkeep.integrity import iter_faults
from berth.upkeep.integrity.consumers import (
    NOBODY_IN_PARTICULAR,
    Owner,
    count_unrecorded,
    make_consumers,
)
from berth.upkeep.integrity.spellings import respell_all
from berth.upkeep.integrity.storage import (
    count_on,
    make_comparable,
)
from berth.upkeep.integrity.trees import give_roots
from berth.upkeep.left_state import was_written

if TYPE_CHECKING:
    from alembic.config import Config

#: A program that has written within this time counts as running.
AT_WORK: Final = timedelta(minutes=1)

#: More drains and leases are not named.
NAMED_MAX: Final = 5

#: Before these revisions, roots and records of consumers may be missing.
_BEFORE_DATA_MIGRATIONS: Final = PLACEMENT_REVISIONS[:2]

_MIGRATIONS: Final = Path(__file__).parent / "migrations"


class StillWritten(SchemaError):
    """Another process still writes to the database."""


def refuse_while_others_write(db: Database) -> None:
    """Check that no program but berth has written recently to a database to be upgraded.

    Raises:
        StillWritten: one has, within the last minute.
    """
    if (seconds := seconds_since_foreign_write(db)) is not None:
        raise StillWritten(
            f"another program wrote to the database {seconds} seconds ago: stop every instance "
            f"of OpenStack Placement that uses it, and try again {AT_WORK.seconds} seconds after "
            f"the last write, or pass --force to upgrade anyway"
        )


def upgrade(
    db: Database,
    *,
    owner: Owner = NOBODY_IN_PARTICULAR,
    report: Report = unheard,
    is_cautious: bool = False,
) -> list[str]:
    """Bring an empty or adopted database to this release; can be interrupted and repeated.

    No program may write to the database meanwhile.

    Args:
        owner: the owner of consumers whose owner an old database does not record.
        report: receives the progress of the long parts.
        is_cautious: give the database a new identity also if another program may have written to it
            since berth left it, and not only if it has.

    Returns:
        A sentence for each change of the data.

    Raises:
        SchemaError: the tables are not those of a known revision, or their data is damaged.
    """
    with schema_lock(db):
        _refuse_unknown(db)
        if _is_bare(db):
            db.write_unnoted(partial(_migrate, berth="head"))
            return []
        done = make_comparable(db)
        is_foreign = was_written(db)
        if versions_of(db).placement in _BEFORE_DATA_MIGRATIONS:
            done += migrate_data(db, owner, report)
        done += _respelled(db)
        if is_older := versions_of(db) != CURRENT:
            db.write_unnoted(partial(_migrate, berth=BERTH_TABLES_MADE))
            fill_usages(db, report)
            fill_project_usages(db)
        if wrong := recount_usages(db, report):
            done.append(f"{wrong} sums of usage were wrong and have been recounted")
        if (is_older or is_marked(db)) and (wrong := recount_project_usages(db)):
            done.append(f"{wrong} counters of project usage were wrong and have been recounted")
        db.write_unnoted(partial(_migrate, berth="head"))
        done += respell_all(db) + count_on(db)
        if is_foreign or (is_foreign is None and is_cautious):
            renew_identity(db)
            done.append("the database has a new identity: whoever follows the fleet reads it again")
        return done


def _respelled(db: Database) -> list[str]:
    """Give a common spelling to aggregates that no lookup would find; return a sentence for it."""
    with db.read() as tx:
        odd = odd_spellings(tx)
    changed = db.write_unnoted(partial(respell, odd=odd)) if odd else 0
    if not changed:
        return []
    subject = (
        "1 aggregate in an odd spelling was"
        if changed == 1
        else (f"{changed} aggregates in odd spellings were")
    )
    return [f"{subject} given a common one"]


def stamp(db: Database, revision: str) -> None:
    """Record that the tables of OpenStack Placement are at a revision, whatever they are.

    For tables from before Placement recorded its revisions; `upgrade` continues from there.

    Raises:
        SchemaError: there is no such revision.
    """
    if revision not in ("head", *PLACEMENT_REVISIONS):
        raise SchemaError(
            f"there is no revision {revision}: it is one of {', '.join(PLACEMENT_REVISIONS)}, or "
            f"head"
        )
    with schema_lock(db):
        db.write_unnoted(partial(_stamp, revision=revision))


def release(db: Database, *, force: bool = False) -> list[str]:
    """Remove everything of berth, and leave the tables of OpenStack Placement as they are; can be
    repeated.

    Args:
        force: also if a berth seems to use the database.

    Returns:
        The names of the tables that were removed.

    Raises:
        SchemaError: these are not the tables of this or an older release.
        StillWritten: a berth wrote to the database a moment ago; nothing has been changed.
    """
    with schema_lock(db):
        _refuse_unknown(db)
        if not force:
            _refuse_while_written(db)
        return db.write_unnoted(_drop)


class LeasesToEnd(NamedTuple):
    """Leases that `release` ends: OpenStack Placement takes nothing back.

    Attributes:
        number: how many there are, those included that have expired and are not swept.
        first: the first of them to expire.
    """

    number: int
    first: Sequence[ListedLease]


def leases_to_end(db: Database) -> LeasesToEnd:
    """The leases that `release` ends."""
    with db.read() as tx:
        if not inspect(tx.connection).has_table(berth_leases.name):
            return LeasesToEnd(0, ())
    number, first = 0, list[ListedLease]()
    for page in pages_of_leases(db):
        number += len(page)
        first = nsmallest(NAMED_MAX, [*first, *page], key=attrgetter("expires_at", "consumer"))
    return LeasesToEnd(number, first)


def check(db: Database) -> list[str]:
    """A sentence for each fault of the database; empty if there is none.

    Cost: it reads every table once or twice; for operators and tests, not for requests.
    """
    return [fault.sentence for fault in iter_faults(db)]


# --- Standard names ------------------------------------------------------------------------------


def sync_standard_names(db: Database) -> None:
    """Insert the standard resource classes and traits that are missing.

    Costs two queries if none is missing. Other processes may do the same at the same time.
    """
    with db.read() as tx:
        missing = _missing_classes(tx) or _missing_traits(tx)
    if missing:
        db.write(_write_standard_names)


def _missing_classes(tx: Tx) -> list[str]:
    existing = set(tx.connection.scalars(select(resource_classes.c.name)))
    return [name for name in STANDARD_CLASS_IDS if name not in existing]


def _missing_traits(tx: Tx) -> list[str]:
    existing = set(tx.connection.scalars(select(traits.c.name)))
    return [name for name in STANDARD_TRAITS if name not in existing]


def _write_standard_names(tx: Tx) -> None:
    if missing := _missing_classes(tx):
        tx.insert_missing(
            resource_classes,
            [
                {"id": STANDARD_CLASS_IDS[name], "name": name, "created_at": tx.now}
                for name in missing
            ],
        )
        tx.names_touched = True
    if missing := _missing_traits(tx):
        tx.insert_missing(traits, [{"name": name, "created_at": tx.now} for name in missing])
        tx.names_touched = True


# --- Data of old databases ------------------------------------------------------------------------
# Later revisions of OpenStack Placement require a root of each provider, and a record for each
# consumer with allocations (spec/operations.md 5.1). Placement has a command for both. berth does
# it during the upgrade: it only derives what the database says already, and an operator may no
# longer have Placement's program. Both run in parts, and can be interrupted and repeated.


class Unmigrated(NamedTuple):
    """The number of rows to complete: providers without a root, consumers without a record."""

    providers: int
    consumers: int


def migrate_data(db: Database, owner: Owner, report: Report = unheard) -> list[str]:
    """Give providers their roots and consumers their records; return a sentence for each change."""
    done = []
    if roots := sum(give_roots(db, report=report)):
        done.append(f"{roots} resource providers without a root were given theirs")
    if made := sum(make_consumers(db, owner, report=report)):
        done.append(f"consumers without a record that were given one: {made}")
    return done


def count_unmigrated(db: Database) -> Unmigrated:
    """Count the rows that are still to be completed."""
    rootless = select(func.count()).where(_rp.root_provider_id.is_(None))
    with db.read() as tx:
        providers = tx.connection.scalar(rootless) or 0
    return Unmigrated(providers, count_unrecorded(db))


# --- Taking over ---------------------------------------------------------------------------------


def _refuse_unknown(db: Database) -> None:
    with db.read() as tx:
        versions = read_versions(tx.connection)
        tables = set(inspect(tx.connection).get_table_names())
    if versions.placement not in (None, *PLACEMENT_REVISIONS) or versions.berth not in (
        None,
        *BERTH_REVISIONS,
    ):
        raise SchemaError(f"this release cannot upgrade the database: {why_not_current(versions)}")
    # An upgrade that was interrupted in its first step leaves an empty table of revisions.
    if PLACEMENT_VERSIONS in tables or not tables:
        return
    if resource_providers.name not in tables:
        raise SchemaError(
            f"the database holds another program's tables ({', '.join(sorted(tables)[:3])}): give "
            f"berth a database of its own"
        )
    raise SchemaError(
        f"the database has placement's tables but no {PLACEMENT_VERSIONS}: if they come from "
        f"nova's API database, run `placement-manage db stamp b4ed3a175331`, then upgrade again"
    )


def _is_bare(db: Database) -> bool:
    """Whether all tables are empty: then the upgrade can create everything at once."""
    with db.read() as tx:
        return read_versions(tx.connection).placement is None


def _migrate(tx: Tx, berth: str) -> None:
    """Bring the tables of OpenStack Placement to their head, and berth's own to a revision."""
    read_versions(tx.connection)  # so that SQLAlchemy, and through it Alembic, has a transaction
    _run_steps(tx.connection, "placement", PLACEMENT_VERSIONS, "head")
    _run_steps(tx.connection, "berth", BERTH_VERSIONS, berth)


def _stamp(tx: Tx, revision: str) -> None:
    from alembic import command

    read_versions(tx.connection)  # so that SQLAlchemy, and through it Alembic, has a transaction
    command.stamp(_history(tx.connection, "placement", PLACEMENT_VERSIONS), revision)


def _run_steps(connection: Connection, history: str, version_table: str, revision: str) -> None:
    # Alembic takes a third of a second to import, and a database that is current never needs it.
    from alembic import command

    command.upgrade(_history(connection, history, version_table), revision)


def _history(connection: Connection, history: str, version_table: str) -> Config:
    """Alembic's configuration for one of the two histories."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(_MIGRATIONS / history).replace("%", "%%"))
    config.attributes.update(connection=connection, version_table=version_table)
    return config


# --- Handing back --------------------------------------------------------------------------------


def seconds_since_write(db: Database) -> int | None:
    """How long ago berth wrote to the database; None if it did not within the last minute."""
    with db.read() as tx:
        if not inspect(tx.connection).has_table(berth_writer.name):
            return None
        written = tx.connection.scalar(select(func.max(berth_writer.c.updated_at)))
    if written is None or tx.now - written >= AT_WORK:
        return None
    return max(int((tx.now - written).total_seconds()), 0)


def not_honoured(db: Database) -> list[str]:
    """What OpenStack Placement will not honour once it has the database, in sentences."""
    with db.read() as tx:
        if not inspect(tx.connection).has_table(berth_drains.name):
            return []
        drains = all_records(tx).drains
    names = sorted(name for name, drain in drains.items() if drain.excludes)
    if not names:
        return []
    shown = ", ".join(names[:NAMED_MAX])
    more = f", and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return [f"OpenStack Placement has no drains, so it will use what these exclude: {shown}{more}"]


def _refuse_while_written(db: Database) -> None:
    if (seconds := seconds_since_write(db)) is not None:
        raise StillWritten(
            f"berth wrote to the database {seconds} seconds ago: stop every instance that uses it, "
            f"and try again {AT_WORK.seconds} seconds after its last write"
        )


def _drop(tx: Tx) -> list[str]:
    """Drop berth's tables, first the one with their revision: this may not be one transaction."""
    names = inspect(tx.connection).get_table_names()
    own = sorted(name for name in names if name.startswith(BERTH_PREFIX))
    own.sort(key=lambda name: name != BERTH_VERSIONS)
    for name in own:
        Table(name, MetaData()).drop(tx.connection)
    return own


# --- Other programs -------------------------------------------------------------------------------
# Whether one has recently written to a database: an operator must stop it first. OpenStack
# Placement dates the rows that it creates and changes, and keeps no list of its instances. berth
# dates the same rows, but its journal names the providers that it has changed, its usages have
# their generations, and it leaves no consumer without allocations.

_rp, _allocation, _consumer, _note = (
    resource_providers.c,
    allocations.c,
    consumers.c,
    berth_journal.c,
)


def seconds_since_foreign_write(db: Database) -> int | None:
    """How long ago a program other than berth wrote to the database; None if none did within the
    last minute.

    Deletions are not detected. Cost: reads the providers, consumers and allocations once.
    """
    with db.read() as tx:
        names = inspect(tx.connection)
        if not names.has_table(resource_providers.name):
            return None
        since = tx.now - AT_WORK
        # Made after the usages, which have the generations.
        queries = _newest(since, is_noted=names.has_table(berth_journal.name))
        newest = [tx.connection.scalar(query) for query in queries]
    times = [time for time in newest if time is not None]
    return max(int((tx.now - max(times)).total_seconds()), 0) if times else None


def _newest(since: datetime, *, is_noted: bool) -> Iterator[Select[Any]]:
    """Queries for the newest time of each kind of row that berth has not written.

    Args:
        is_noted: whether berth's tables are there.
    """
    # A commit dates its rows before its journal entry, and may have waited in between.
    by_berth = select(_note.provider_id).where(_note.created_at >= since - AT_WORK)

    def unnoted(provider: ColumnElement[int]) -> ColumnElement[bool]:
        return provider.not_in(by_berth) if is_noted else true()

    yield select(func.max(_allocation.created_at)).where(
        _allocation.created_at >= since, unnoted(_allocation.resource_provider_id)
    )
    yield select(func.max(_rp.created_at)).where(_rp.created_at >= since, unnoted(_rp.id))
    changed = select(func.max(_rp.updated_at)).where(_rp.updated_at >= since)
    if is_noted:
        changed = changed.where(_rp.id.in_(select(providers_moved().subquery().c.id)))
    yield changed
    idle = ~exists().where(_allocation.consumer_id == _consumer.uuid)
    written = func.coalesce(_consumer.updated_at, _consumer.created_at)
    yield select(func.max(written)).where(written >= since, idle)


# --- The lock -------------------------------------------------------------------------------------
# So that two processes never change one schema at the same time. It belongs to the session, so it
# ends with its process, however that ends. In a Galera cluster it applies to one node only.


@contextmanager
def schema_lock(db: Database) -> Iterator[None]:
    """Hold the lock of a database's schema; waits as long as another process has it."""
    with db.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        db.dialect.lock_schema(connection)
        try:
            yield
        finally:
            # The lock ends with the session, which does not go back to the pool.
            with suppress(exc.SQLAlchemyError):
                connection.invalidate()
