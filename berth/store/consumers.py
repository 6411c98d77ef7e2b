# SPDX-License-Identifier: Apache-2.0
"""Consumers: generations, names, projects, users and types, read and written as part of a claim.

A name is unique within a project. It is written in the transaction of the claim that gives it, and
goes with its consumer: when the consumer releases everything, or moves to another project.
Source: spec/beyond.md 6.4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import (
    Column,
    Table,
    bindparam,
    case,
    delete,
    literal_column,
    select,
    union_all,
    update,
)

from berth.model.consumer import ConsumerWrite
from berth.model.errors import ConsumerGenerationConflict, ConsumerRace, LostRace
from berth.model.ids import ConsumerUUID, Generation
from berth.model.own_errors import ConsumerNameTaken
from berth.model.shown import UNSET
from berth.store.engine.database import Database
from berth.store.engine.expressions import common_text
from berth.store.engine.prepared import insert_of
from berth.store.engine.project_deltas import NO_TYPE, Owner
from berth.store.engine.tables import (
    LEASE_COUNTS,
    berth_consumer_names,
    berth_leases,
    consumer_types,
    consumers,
    projects,
    users,
)
from berth.store.engine.transaction import Change, Tx, writes_all
from berth.store.lookups import missing

_consumer = consumers.c


@dataclass(frozen=True, slots=True)
class StoredConsumer:
    """A consumer's record as read."""

    id: int
    uuid: ConsumerUUID
    generation: Generation
    type_id: int | None
    project_id: int
    user_id: int
    #: The row of its name; None if it has none.
    name_id: int | None
    #: Whether its lease counts; None if it has none. A renewal is no change of it.
    lease_counts: bool | None = field(default=None, compare=False)

    @property
    def is_leased(self) -> bool:
        """Whether there is a lease of it, even one that does not count any more."""
        return self.lease_counts is not None

    @property
    def is_named(self) -> bool:
        """Whether it has a name."""
        return self.name_id is not None

    @property
    def owner(self) -> Owner:
        """Whose usage the consumer's allocations are."""
        return self.project_id, self.user_id, self.type_id or NO_TYPE


#: The id of a consumer's name.
NAME_ID: Final = (
    select(berth_consumer_names.c.id)
    .where(berth_consumer_names.c.consumer_uuid == _consumer.uuid)
    .scalar_subquery()
)
#: Whether the lease beside a consumer counts: 1 or 0.
COUNTS: Final = case((LEASE_COUNTS, literal_column("1")), else_=literal_column("0"))
#: The same of the lease that a consumer has; NULL if it has none.
LEASE_STATE: Final = (
    select(COUNTS).where(berth_leases.c.consumer_uuid == _consumer.uuid).scalar_subquery()
)

_BY_UUID: Final = select(
    _consumer.id,
    _consumer.uuid,
    _consumer.generation,
    _consumer.consumer_type_id,
    _consumer.project_id,
    _consumer.user_id,
    NAME_ID,
    LEASE_STATE,
).where(_consumer.uuid.in_(bindparam("uuids", expanding=True)))

_AS_SEEN: Final = (_consumer.id == bindparam("consumer"), _consumer.generation == bindparam("seen"))

_UPDATE: Final = (
    update(consumers)
    .where(*_AS_SEEN)
    .values(
        generation=_consumer.generation + 1,
        project_id=bindparam("project"),
        user_id=bindparam("user"),
        consumer_type_id=bindparam("type"),
        updated_at=bindparam("now"),
    )
)

_INSERT: Final = insert_of(
    consumers, "uuid", "generation", "project_id", "user_id", "consumer_type_id", "created_at"
)
_DELETE: Final = delete(consumers).where(*_AS_SEEN)


def read_consumers(tx: Tx, uuids: Collection[ConsumerUUID]) -> dict[ConsumerUUID, StoredConsumer]:
    """The records of those consumers that have one."""
    return {
        row[1]: StoredConsumer(*row)
        for chunk in tx.chunks(uuids)
        for row in tx.rows(_BY_UUID, {"uuids": chunk})
    }


def check_generations(
    writes: Sequence[ConsumerWrite], stored: Mapping[ConsumerUUID, StoredConsumer]
) -> None:
    """Refuse clients whose view of a consumer is out of date.

    This only gives a clear error; the guard is the WHERE of `consumer_changes`.

    Raises:
        ConsumerGenerationConflict: for the first consumer at another generation.
    """
    for write in writes:
        consumer = stored.get(write.uuid)
        actual = None if consumer is None else consumer.generation
        if write.generation is not UNSET and write.generation != actual:
            raise ConsumerGenerationConflict(write.uuid, seen=write.generation, actual=actual)


def consumer_changes(
    tx: Tx,
    writes: Sequence[ConsumerWrite],
    stored: Mapping[ConsumerUUID, StoredConsumer],
    owners: Owners,
) -> list[Change]:
    """The writes that increment consumers' generations, and delete consumers without allocations.

    They raise ConsumerRace if a consumer was changed or deleted since it was read. One that was
    created since then violates the unique key.

    Args:
        owners: the result of `ensure_owners` for these writes.
    """
    emptied = [stored[w.uuid] for w in writes if not w.allocations and w.uuid in stored]
    holding = [write for write in writes if write.allocations]
    existing = [write for write in holding if write.uuid in stored]
    new = [write for write in holding if write.uuid not in stored]
    return [
        consumer_deletion(emptied),
        Change(
            _UPDATE,
            [_update_of(write, stored[write.uuid], owners, tx) for write in existing],
            writes_all(len(existing), ConsumerRace, [write.uuid for write in existing]),
        ),
        Change(_INSERT, [_insert_of(write, owners, tx) for write in new]),
    ]


def consumer_deletion(emptied: Sequence[StoredConsumer]) -> Change:
    """The deletion of the records of consumers whose allocations have just been deleted.

    It raises ConsumerRace if one was changed since it was read.
    """
    return Change(
        _DELETE,
        [{"consumer": consumer.id, "seen": consumer.generation} for consumer in emptied],
        writes_all(len(emptied), ConsumerRace, [consumer.uuid for consumer in emptied]),
    )


class Owners(Struct, frozen=True):
    """The row ids of projects, users and consumer types, by name."""

    projects: dict[str, int] = {}
    users: dict[str, int] = {}
    types: dict[str, int] = {}

    def type_id(self, write: ConsumerWrite, *, unset: int | None) -> int | None:
        """The id of a consumer's new type; `unset` if the request does not name one."""
        if write.consumer_type is UNSET:
            return unset
        return None if write.consumer_type is None else self.types[write.consumer_type]

    def of(self, write: ConsumerWrite, stored: StoredConsumer | None) -> Owner:
        """Whose usage a consumer's new allocations are.

        Args:
            stored: the consumer's record, if it has one.
        """
        type_id = self.type_id(write, unset=None if stored is None else stored.type_id)
        return self.projects[write.project_id], self.users[write.user_id], type_id or NO_TYPE


def _update_of(
    write: ConsumerWrite, consumer: StoredConsumer, owners: Owners, tx: Tx
) -> dict[str, Any]:
    return {
        "consumer": consumer.id,
        "seen": consumer.generation,
        "project": owners.projects[write.project_id],
        "user": owners.users[write.user_id],
        "type": owners.type_id(write, unset=consumer.type_id),
        "now": tx.now,
    }


def _insert_of(write: ConsumerWrite, owners: Owners, tx: Tx) -> dict[str, Any]:
    return {
        "uuid": write.uuid,
        "generation": 1,
        "project_id": owners.projects[write.project_id],
        "user_id": owners.users[write.user_id],
        "consumer_type_id": owners.type_id(write, unset=None),
        "created_at": tx.now,
    }


# --- Projects, users and types are created when first named --------------------------------------

#: (table, column of its names).
_NAMED: Final[tuple[tuple[Table, Column[str]], ...]] = (
    (projects, projects.c.external_id),
    (users, users.c.external_id),
    (consumer_types, consumer_types.c.name),
)

_ID_OF: Final = {
    table.name: select(table.c.id).where(name == bindparam("name")) for table, name in _NAMED
}

#: (index in `_NAMED`, name, id) of all three in one query.
_IDS: Final = union_all(
    *(
        select(literal_column(str(place)), common_text(name), table.c.id).where(
            name.in_(bindparam(f"names_{place}", expanding=True))
        )
        for place, (table, name) in enumerate(_NAMED)
    )
)


def owner_names(writes: Sequence[ConsumerWrite]) -> tuple[set[str], set[str], set[str]]:
    """The projects, users and types of those consumers that will have allocations."""
    holding = [write for write in writes if write.allocations]
    return (
        {write.project_id for write in holding},
        {write.user_id for write in holding},
        {write.consumer_type for write in holding if isinstance(write.consumer_type, str)},
    )


def ensure_owners(tx: Tx, writes: Sequence[ConsumerWrite], stored: Owners) -> Owners:
    """The projects, users and types of some consumers; creates those that do not exist.

    Args:
        stored: those that exist already.
    """
    names = owner_names(writes)
    is_complete = True
    ids = (stored.projects, stored.users, stored.types)
    for (table, column), wanted, old in zip(_NAMED, names, ids, strict=True):
        if new := missing(sorted(wanted), old):
            is_complete = False
            tx.insert_missing(table, [{column.name: name, "created_at": tx.now} for name in new])
    if is_complete:
        return stored
    return Owners(
        *(
            _all_ids(tx, table, wanted, old)
            for (table, _), wanted, old in zip(_NAMED, names, _owner_ids(tx, names), strict=True)
        )
    )


def _all_ids(
    tx: Tx, table: Table, names: Collection[str], stored: dict[str, int]
) -> dict[str, int]:
    """The ids of all names. Under the collation of an adopted database a name may equal a stored
    one with another spelling; it cannot have a row of its own, so it gets the id of that one."""
    for name in missing(names, stored):
        rows = tx.rows(_ID_OF[table.name], {"name": name})
        if not rows:
            raise LostRace(f"{table.name} {name}")
        ((stored[name],),) = rows
    return stored


def _owner_ids(tx: Tx, wanted: Sequence[Collection[str]]) -> tuple[dict[str, int], ...]:
    ids: tuple[dict[str, int], ...] = ({}, {}, {})
    pending = [list(tx.chunks(sorted(names))) for names in wanted]
    while any(pending):
        names = {
            f"names_{place}": parts.pop() if parts else [] for place, parts in enumerate(pending)
        }
        for place, name, number in tx.rows(_IDS, names):
            ids[place][name] = number
    return ids


# --- Names of consumers --------------------------------------------------------------------------


_name = berth_consumer_names.c

#: The last column is NULL if the consumer is gone: another program released it.
_TAKEN: Final = (
    select(_name.project_id, _name.name, _name.consumer_uuid, consumers.c.id)
    .select_from(berth_consumer_names)
    .outerjoin(consumers, consumers.c.uuid == _name.consumer_uuid)
    .where(
        _name.project_id.in_(bindparam("projects", expanding=True)),
        _name.name.in_(bindparam("names", expanding=True)),
    )
)
_BY_NAME: Final = (
    select(_name.consumer_uuid, _name.name, projects.c.external_id)
    .join(projects, projects.c.id == _name.project_id)
    .join(consumers, consumers.c.uuid == _name.consumer_uuid)
    .where(projects.c.external_id == bindparam("project"), _name.name == bindparam("name"))
)
_INSERT_NAMES: Final = insert_of(berth_consumer_names, "project_id", "name", "consumer_uuid")
_DELETE_NAMES: Final = delete(berth_consumer_names).where(
    _name.consumer_uuid.in_(bindparam("consumers", expanding=True))
)


def consumer_named(tx: Tx, project_id: str, name: str) -> ConsumerUUID | None:
    """The consumer with a name; None if there is none."""
    for uuid, its_name, its_project in tx.rows(_BY_NAME, {"project": project_id, "name": name}):
        # A collation may find another spelling.
        if (its_name, its_project) == (name, project_id):
            return ConsumerUUID(uuid)
    return None


def named_consumers(
    db: Database, names: Collection[tuple[str, str]]
) -> dict[tuple[str, str], ConsumerUUID]:
    """The consumers with some names, by project and name."""
    with db.read() as tx:
        uuids = {(project, name): consumer_named(tx, project, name) for project, name in names}
    return {key: uuid for key, uuid in uuids.items() if uuid is not None}


def name_changes(
    tx: Tx,
    writes: Sequence[ConsumerWrite],
    stored: Mapping[ConsumerUUID, StoredConsumer],
    released: Iterable[StoredConsumer],
    owners: Owners,
) -> list[Change]:
    """The writes that give consumers the names of a claim, and take away those that go.

    An INSERT of them violates a unique key if another transaction has taken the name meanwhile.

    Args:
        stored: the records of the consumers.
        released: consumers that release everything, and have no write of their own.
        owners: the result of `ensure_owners` for these writes.

    Raises:
        ConsumerNameTaken: another consumer of the project has a name, and keeps it.
    """
    named = [write for write in writes if write.name is not None and write.allocations]
    losing = [consumer.uuid for consumer in released if consumer.is_named]
    losing += [
        write.uuid
        for write in writes
        if (consumer := stored.get(write.uuid)) is not None
        and consumer.is_named
        and _loses_name(write, consumer, owners)
    ]
    if named:
        losing += _stale(tx, named, losing, owners)
    rows = [
        {
            "project_id": owners.projects[write.project_id],
            "name": write.name,
            "consumer_uuid": write.uuid,
        }
        for write in named
    ]
    deletions = [Change(_DELETE_NAMES, [{"consumers": chunk}]) for chunk in tx.chunks(losing)]
    return [*deletions, Change(_INSERT_NAMES, rows)]


def _loses_name(write: ConsumerWrite, consumer: StoredConsumer, owners: Owners) -> bool:
    """Whether a consumer with a name loses it with a write, or gets another."""
    if not write.allocations or write.name is not None:
        return True
    return owners.projects[write.project_id] != consumer.project_id


def _stale(
    tx: Tx, named: Sequence[ConsumerWrite], losing: Sequence[ConsumerUUID], owners: Owners
) -> list[ConsumerUUID]:
    """Check that names are free; return the consumers that have one of them and are gone.

    Raises:
        ConsumerNameTaken: one is not.
    """
    wanted: dict[tuple[int, str | None], ConsumerWrite] = {}
    for write in named:
        first = wanted.setdefault((owners.projects[write.project_id], write.name), write)
        if first is not write:
            raise ConsumerNameTaken(write.project_id, str(write.name), first.uuid)
    stale = []
    for chunk in tx.chunks(named):
        parameters = {
            "projects": sorted({owners.projects[write.project_id] for write in chunk}),
            "names": sorted({str(write.name) for write in chunk}),
        }
        for project, name, uuid, consumer_id in tx.rows(_TAKEN, parameters):
            taking = wanted.get((project, name))
            if taking is None or uuid in losing:
                continue
            if consumer_id is not None:
                raise ConsumerNameTaken(taking.project_id, name, uuid)
            stale.append(uuid)
    return stale
