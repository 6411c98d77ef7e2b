# SPDX-License-Identifier: Apache-2.0
"""Consumers: their generations, whose they are and of what type, as parts of a claim."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sqlalchemy import Column, Table, bindparam, delete, literal_column, select, union_all, update
from sqlalchemy.exc import IntegrityError

from berth.model.consumer import ConsumerWrite
from berth.model.errors import ConsumerGenerationConflict, ConsumerRace, LostRace
from berth.model.ids import ConsumerUUID, Generation
from berth.model.sentinels import UNSET
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import consumer_types, consumers, projects, users
from berth.store.engine.transaction import Tx
from berth.store.lookups import missing

_consumer = consumers.c


@dataclass(frozen=True, slots=True)
class StoredConsumer:
    """A consumer's record as read."""

    id: int
    uuid: ConsumerUUID
    generation: Generation
    type_id: int | None


_BY_UUID: Final = select(
    _consumer.id, _consumer.uuid, _consumer.generation, _consumer.consumer_type_id
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
    """Those of some consumers that have a record."""
    return {
        row[1]: StoredConsumer(*row)
        for chunk in tx.chunks(uuids)
        for row in tx.rows(_BY_UUID, {"uuids": chunk})
    }


def check_generations(
    writes: Sequence[ConsumerWrite], stored: Mapping[ConsumerUUID, StoredConsumer]
) -> None:
    """Refuse clients whose view of a consumer is out of date.

    This only words the refusal; the guard is the WHERE of `write_consumers`.

    Raises:
        ConsumerGenerationConflict: for the first consumer that is not what the client has seen.
    """
    for write in writes:
        consumer = stored.get(write.uuid)
        actual = None if consumer is None else consumer.generation
        if write.generation is not UNSET and write.generation != actual:
            raise ConsumerGenerationConflict(write.uuid, seen=write.generation, actual=actual)


def write_consumers(
    tx: Tx, writes: Sequence[ConsumerWrite], stored: Mapping[ConsumerUUID, StoredConsumer]
) -> None:
    """Move the consumers to their next generation; those left with nothing go.

    Raises:
        ConsumerRace: one was changed, made or deleted since it was read.
    """
    holding = [write for write in writes if write.allocations]
    delete_consumers(tx, [stored[w.uuid] for w in writes if not w.allocations and w.uuid in stored])
    if not holding:
        return
    owners = _ensure_owners(tx, holding)
    known = [write for write in holding if write.uuid in stored]
    if known:
        updated = tx.change(
            _UPDATE, [_update_of(write, stored[write.uuid], owners, tx) for write in known]
        )
        if updated != len(known):
            raise ConsumerRace([write.uuid for write in known])
    new = [write for write in holding if write.uuid not in stored]
    if new:
        try:
            tx.change(_INSERT, [_insert_of(w, owners, tx) for w in new])
        except IntegrityError as error:
            raise ConsumerRace([write.uuid for write in new]) from error


def delete_consumers(tx: Tx, emptied: Sequence[StoredConsumer]) -> None:
    """Remove the records of consumers whose allocations have just been deleted.

    Raises:
        ConsumerRace: one was changed since it was read.
    """
    if not emptied:
        return
    deleted = tx.change(_DELETE, [{"consumer": one.id, "seen": one.generation} for one in emptied])
    if deleted != len(emptied):
        raise ConsumerRace([one.uuid for one in emptied])


@dataclass(frozen=True, slots=True)
class _Owners:
    """Row ids by name."""

    projects: dict[str, int]
    users: dict[str, int]
    types: dict[str, int]

    def type_id(self, write: ConsumerWrite, *, unset: int | None) -> int | None:
        """The type that a consumer shall have; `unset` when the request does not say."""
        if write.consumer_type is UNSET:
            return unset
        return None if write.consumer_type is None else self.types[write.consumer_type]


def _update_of(
    write: ConsumerWrite, consumer: StoredConsumer, owners: _Owners, tx: Tx
) -> dict[str, Any]:
    return {
        "consumer": consumer.id,
        "seen": consumer.generation,
        "project": owners.projects[write.project_id],
        "user": owners.users[write.user_id],
        "type": owners.type_id(write, unset=consumer.type_id),
        "now": tx.now,
    }


def _insert_of(write: ConsumerWrite, owners: _Owners, tx: Tx) -> dict[str, Any]:
    return {
        "uuid": write.uuid,
        "generation": 1,
        "project_id": owners.projects[write.project_id],
        "user_id": owners.users[write.user_id],
        "consumer_type_id": owners.type_id(write, unset=None),
        "created_at": tx.now,
    }


# --- Projects, users and types come into being when first named ----------------------------------

#: The table, and the column that holds its names.
_NAMED: Final[tuple[tuple[Table, Column[str]], ...]] = (
    (projects, projects.c.external_id),
    (users, users.c.external_id),
    (consumer_types, consumer_types.c.name),
)

#: (which of `_NAMED`, name, id), of all three in one query.
_IDS: Final = union_all(
    *(
        select(literal_column(str(place)), name, table.c.id).where(
            name.in_(bindparam(f"names_{place}", expanding=True))
        )
        for place, (table, name) in enumerate(_NAMED)
    )
)


def _ensure_owners(tx: Tx, writes: Sequence[ConsumerWrite]) -> _Owners:
    wanted = (
        {write.project_id for write in writes},
        {write.user_id for write in writes},
        {write.consumer_type for write in writes if isinstance(write.consumer_type, str)},
    )
    found = _owner_ids(tx, wanted)
    complete = True
    for (table, column), names, ids in zip(_NAMED, wanted, found, strict=True):
        if new := missing(sorted(names), ids):
            complete = False
            tx.insert_missing(table, [{column.name: name, "created_at": tx.now} for name in new])
    if complete:
        return _Owners(*found)
    return _Owners(*map(partial(_all_ids, tx), _NAMED, wanted, _owner_ids(tx, wanted)))


def _all_ids(
    tx: Tx, named: tuple[Table, Column[str]], names: Collection[str], found: dict[str, int]
) -> dict[str, int]:
    """The ids of all names, those included of which the database's collation, in a database that
    the original made, takes another for the same and lets only one be."""
    table, column = named
    for name in missing(names, found):
        number = tx.connection.scalar(select(table.c.id).where(column == name))
        if number is None:
            raise LostRace(f"{table.name} {name}")
        found[name] = number
    return found


def _owner_ids(tx: Tx, wanted: Sequence[Collection[str]]) -> tuple[dict[str, int], ...]:
    found: tuple[dict[str, int], ...] = ({}, {}, {})
    pending = [list(tx.chunks(sorted(names))) for names in wanted]
    while any(pending):
        names = {
            f"names_{place}": parts.pop() if parts else [] for place, parts in enumerate(pending)
        }
        for place, name, number in tx.rows(_IDS, names):
            found[place][name] = number
    return found
