# SPDX-License-Identifier: Apache-2.0
"""The life of the schema: is it there, bring it up to date, fill in the standard names, check it.

The original's tables and berth's own have a history each (`migrations/`). A database that the
original made, at any of its revisions, is adopted in place; as long as its `alembic_version` says
`PLACEMENT_HEAD`, the original can work with it again. What the original wrote in the meantime is
not in berth's sums of usage: `upgrade` and `recount_usages` count them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sqlalchemy import (
    Connection,
    Select,
    and_,
    bindparam,
    column,
    delete,
    func,
    insert,
    inspect,
    or_,
    select,
    table,
)

from berth.model.errors import SchemaError
from berth.model.standard import STANDARD_CLASS_IDS, STANDARD_TRAITS
from berth.store.database import Database, Tx
from berth.store.tables import (
    allocations,
    berth_usages,
    consumers,
    inventories,
    resource_classes,
    resource_provider_traits,
    resource_providers,
    traits,
)

PLACEMENT_HEAD: Final = "a082b8bb98d0"
BERTH_HEAD: Final = "0002"

_PLACEMENT_VERSIONS: Final = "alembic_version"
_BERTH_VERSIONS: Final = "berth_alembic_version"

_MIGRATIONS: Final = Path(__file__).parent / "migrations"


def is_empty(db: Database) -> bool:
    """Whether the database has no tables at all."""
    with db.read() as tx:
        return not inspect(tx.connection).get_table_names()


def is_current(db: Database) -> bool:
    """Whether the schema is exactly the one that this release works with."""
    with db.read() as tx:
        return _versions(tx.connection) == (PLACEMENT_HEAD, BERTH_HEAD)


def current_version(db: Database) -> str:
    """The two revisions for people to read, the original's first; `None` without."""
    with db.read() as tx:
        placement, berth = _versions(tx.connection)
    return f"{placement} (berth: {berth})" if berth else str(placement)


def upgrade(db: Database) -> None:
    """Bring an empty or adopted database to this release, in one transaction; repeatable.

    Raises:
        SchemaError: the tables are not what a known revision left, or their data must be put right
            first; nothing has been changed.
    """
    db.write(_upgrade)


def recount_usages(db: Database) -> int:
    """Make the sums of usage agree with the allocations; the number of sums that were wrong.

    They are wrong after something else wrote allocations, and then too much could be claimed.
    Cost: reads the allocations once, along an index.
    """
    with db.read() as tx:
        if not _stale_usages(tx):
            return 0
    return db.write(_recount_usages)


def sync_standard_names(db: Database) -> None:
    """Write the resource classes and traits that exist everywhere and are not there yet.

    Costs two queries when nothing is missing. Another process may do the same at the same time.
    """
    with db.read() as tx:
        missing = _missing_classes(tx) or _missing_traits(tx)
    if missing:
        db.write(_write_standard_names)


def check(db: Database) -> list[str]:
    """Everything in the database that should not be, a sentence for each; empty when all is well.

    Cost: it reads every table once; for operators and tests, not for requests.
    """
    with db.read() as tx:
        return [
            *_usage_faults(tx),
            *_tree_faults(tx),
            *_consumer_faults(tx),
            *_orphan_faults(tx),
        ]


# --- Versions and migrations ---------------------------------------------------------------------


def _versions(connection: Connection) -> tuple[str | None, str | None]:
    return _version(connection, _PLACEMENT_VERSIONS), _version(connection, _BERTH_VERSIONS)


def _version(connection: Connection, name: str) -> str | None:
    if not inspect(connection).has_table(name):
        return None
    return connection.scalar(select(column("version_num")).select_from(table(name)))


def _upgrade(tx: Tx) -> None:
    placement, berth = _versions(tx.connection)
    tables = inspect(tx.connection).get_table_names()
    if placement is None and tables and resource_providers.name not in tables:
        raise SchemaError(
            f"the database holds another program's tables ({', '.join(sorted(tables)[:3])}): give "
            f"berth a database of its own"
        )
    if placement is None and tables:
        raise SchemaError(
            f"the database has placement's tables but no {_PLACEMENT_VERSIONS}: if they come from "
            f"nova's API database, run `placement-manage db stamp b4ed3a175331`, then upgrade again"
        )
    _migrate(tx.connection, "placement", _PLACEMENT_VERSIONS)
    _migrate(tx.connection, "berth", _BERTH_VERSIONS)
    _recount_usages(tx)
    if berth is None:
        # Nobody has an index of a database that had no clock until now.
        tx.touched.clear()


def _migrate(connection: Connection, history: str, version_table: str) -> None:
    # Alembic takes a third of a second to import, and a database that is current never needs it.
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(_MIGRATIONS / history).replace("%", "%%"))
    config.attributes.update(connection=connection, version_table=version_table)
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise SchemaError(
            f"{version_table} does not hold a revision that this release knows; if a newer release "
            f"made the database, use that one: {error}"
        ) from error


def _stale_usages(tx: Tx) -> dict[tuple[int, int], int | None]:
    """(provider id, class id) -> the right sum, where another or none is remembered; None where
    there is no inventory."""
    stale: dict[tuple[int, int], int | None] = {
        (provider, class_id): counted
        for provider, class_id, _, counted in tx.connection.execute(_wrong_usages())
    }
    for provider, class_id in tx.connection.execute(_usages_without_inventory()):
        stale[provider, class_id] = None
    return stale


def _recount_usages(tx: Tx) -> int:
    """Make the sums of usage agree with inventories and allocations; how many did not."""
    stale = _stale_usages(tx)
    if not stale:
        return 0
    wrong = [(*key, counted) for key, counted in stale.items() if counted is not None]
    usage = berth_usages.c
    tx.connection.execute(
        delete(berth_usages).where(
            usage.resource_provider_id == bindparam("provider"),
            usage.resource_class_id == bindparam("class"),
        ),
        [{"provider": provider, "class": class_id} for provider, class_id in stale],
    )
    if wrong:
        tx.connection.execute(
            insert(berth_usages),
            [
                {"resource_provider_id": provider, "resource_class_id": class_id, "used": counted}
                for provider, class_id, counted in wrong
            ],
        )
    tx.touched.update(provider for provider, _ in stale)
    return len(stale)


# --- Standard names ------------------------------------------------------------------------------


def _missing_classes(tx: Tx) -> list[str]:
    known = set(tx.connection.scalars(select(resource_classes.c.name)))
    return [name for name in STANDARD_CLASS_IDS if name not in known]


def _missing_traits(tx: Tx) -> list[str]:
    known = set(tx.connection.scalars(select(traits.c.name)))
    return [name for name in STANDARD_TRAITS if name not in known]


def _write_standard_names(tx: Tx) -> None:
    if missing := _missing_classes(tx):
        tx.connection.execute(
            tx.dialect.insert_missing(resource_classes),
            [
                {"id": STANDARD_CLASS_IDS[name], "name": name, "created_at": tx.now}
                for name in missing
            ],
        )
        tx.names_touched = True
    if missing := _missing_traits(tx):
        tx.connection.execute(
            tx.dialect.insert_missing(traits),
            [{"name": name, "created_at": tx.now} for name in missing],
        )
        tx.names_touched = True


# --- Checks --------------------------------------------------------------------------------------


def _wrong_usages() -> Select[int, int, int | None, int]:
    """(provider id, class id, sum remembered or None, sum counted) where the two differ."""
    inv, held, usage = inventories.c, allocations.c, berth_usages.c
    counted = (
        select(
            held.resource_provider_id,
            held.resource_class_id,
            func.sum(held.used).label("used"),
        )
        .group_by(held.resource_provider_id, held.resource_class_id)
        .subquery()
    )
    sum_counted = func.coalesce(counted.c.used, 0)
    return (
        select(inv.resource_provider_id, inv.resource_class_id, usage.used, sum_counted)
        .select_from(inventories)
        .outerjoin(
            counted,
            and_(
                counted.c.resource_provider_id == inv.resource_provider_id,
                counted.c.resource_class_id == inv.resource_class_id,
            ),
        )
        .outerjoin(
            berth_usages,
            and_(
                usage.resource_provider_id == inv.resource_provider_id,
                usage.resource_class_id == inv.resource_class_id,
            ),
        )
        .where(or_(usage.used.is_(None), usage.used != sum_counted))
    )


def _usages_without_inventory() -> Select[int, int]:
    inv, usage = inventories.c, berth_usages.c
    return (
        select(usage.resource_provider_id, usage.resource_class_id)
        .outerjoin(
            inventories,
            and_(
                usage.resource_provider_id == inv.resource_provider_id,
                usage.resource_class_id == inv.resource_class_id,
            ),
        )
        .where(inv.id.is_(None))
    )


def _usage_faults(tx: Tx) -> Iterator[str]:
    for provider, class_id, remembered, counted in tx.connection.execute(_wrong_usages()):
        where = f"provider {provider}, resource class {class_id}"
        if remembered is None:
            yield f"{where}: there is an inventory but no sum of usage"
        else:
            yield f"{where}: the sum of usage is {remembered}, but its allocations make {counted}"
    for provider, class_id in tx.connection.execute(_usages_without_inventory()):
        yield (
            f"provider {provider}, resource class {class_id}: "
            f"there is a sum of usage but no inventory"
        )


def _tree_faults(tx: Tx) -> Iterator[str]:
    rp = resource_providers.alias("rp")
    parent = resource_providers.alias("parent")
    rows = tx.connection.execute(
        select(
            rp.c.id,
            rp.c.root_provider_id,
            rp.c.parent_provider_id,
            parent.c.id,
            parent.c.root_provider_id,
        ).outerjoin(parent, parent.c.id == rp.c.parent_provider_id)
    )
    parents: dict[int, int | None] = {}
    for provider, root, parent_id, found_parent, parent_root in rows:
        parents[provider] = parent_id
        if root is None:
            yield f"provider {provider} has no root"
        elif parent_id is None and root != provider:
            yield f"provider {provider} has no parent, but {root} as its root"
        elif parent_id is not None and found_parent is None:
            yield f"provider {provider} has parent {parent_id}, which does not exist"
        elif parent_id is not None and root != parent_root:
            yield f"provider {provider} has root {root}, but its parent has root {parent_root}"
    for provider in sorted(_in_loops(parents)):
        yield f"provider {provider} is below itself"


def _in_loops(parents: dict[int, int | None]) -> set[int]:
    """The providers that have no way up to a root."""
    safe: set[int | None] = {
        None,
        *(parent for parent in parents.values() if parent not in parents),
    }
    lost: set[int] = set()
    for start in parents:
        path: list[int] = []
        at: int | None = start
        seen: set[int] = set()
        while at is not None and at not in safe and at not in lost and at not in seen:
            seen.add(at)
            path.append(at)
            at = parents[at]
        (safe if at in safe else lost).update(path)
    return lost


def _consumer_faults(tx: Tx) -> Iterator[str]:
    held, consumer = allocations.c, consumers.c
    # The original leaves records at generation 0 behind when a claim fails: they do no harm.
    idle = select(consumer.uuid).where(
        consumer.generation > 0, consumer.uuid.not_in(select(held.consumer_id))
    )
    for uuid in tx.connection.scalars(idle):
        yield f"consumer {uuid} has a record but no allocations"
    unknown = (
        select(held.consumer_id).where(held.consumer_id.not_in(select(consumer.uuid))).distinct()
    )
    for uuid in tx.connection.scalars(unknown):
        yield f"consumer {uuid} has allocations but no record"
    twice = (
        select(held.consumer_id, held.resource_provider_id, held.resource_class_id)
        .group_by(held.consumer_id, held.resource_provider_id, held.resource_class_id)
        .having(func.count() > 1)
    )
    for uuid, provider, class_id in tx.connection.execute(twice):
        yield (
            f"consumer {uuid} has several allocations of resource class {class_id} "
            f"on provider {provider}"
        )


def _orphan_faults(tx: Tx) -> Iterator[str]:
    """Rows about a provider or a class that does not exist, and allocations of no inventory."""
    providers = select(resource_providers.c.id)
    for rows in (inventories, allocations, resource_provider_traits):
        about = rows.c.resource_provider_id
        for provider in tx.connection.scalars(
            select(about).where(about.not_in(providers)).distinct()
        ):
            yield f"{rows.name}: there are rows of provider {provider}, which does not exist"
    inv, held = inventories.c, allocations.c
    without = (
        select(held.resource_provider_id, held.resource_class_id)
        .outerjoin(
            inventories,
            and_(
                inv.resource_provider_id == held.resource_provider_id,
                inv.resource_class_id == held.resource_class_id,
            ),
        )
        .where(inv.id.is_(None))
        .distinct()
    )
    for provider, class_id in tx.connection.execute(without):
        yield (
            f"provider {provider}, resource class {class_id}: "
            f"there are allocations but no inventory"
        )
