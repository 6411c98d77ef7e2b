# SPDX-License-Identifier: Apache-2.0
"""Consumers: their records and their owners, and the counters of what projects use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import compress
from typing import Any, Final, NamedTuple

from sqlalchemy import Row, Select, Table, bindparam, delete, exists, func, select, update

from berth.store.engine.database import Database
from berth.store.engine.project_deltas import CONSUMERS, NO_TYPE
from berth.store.engine.tables import allocations, consumer_types, consumers, projects, users
from berth.store.engine.transaction import Change, Tx
from berth.store.usage_counts import Report, unheard
from berth.store.usages import MARK, WrongCounter, correct, count_recorded, wrong_counters
from berth.store.versions import is_current, write_unserved
from berth.upkeep.integrity.fault import MIGRATED_PART, Key, Rule, class_of, rule, with_class

#: The default owner of consumers whose owner is not recorded.
NOBODY: Final = "00000000-0000-0000-0000-000000000000"


class Owner(NamedTuple):
    """The project and the user of consumers whose owner is not recorded."""

    project: str = NOBODY
    user: str = NOBODY


#: The default.
NOBODY_IN_PARTICULAR: Final = Owner()

_consumer = consumers.c
_HOLDS: Final = exists().where(allocations.c.consumer_id == _consumer.uuid)
_RECORDS: Final = select(
    _consumer.id.label("consumer"), _consumer.uuid, _consumer.generation.label("seen")
)


def rules(owner: Owner) -> tuple[Rule, ...]:
    """The rules about consumers; a consumer without a record is assigned to `owner`."""
    return (
        rule(
            _UNRECORDED,
            "consumer {consumer_id} has allocations but no record",
            action=lambda row: (
                f"make a record of consumer {row.consumer_id}, of project {owner.project} and user "
                f"{owner.user}"
            ),
            repair=lambda tx, keys: _insert(
                tx, [key["consumer_id"] for key in keys], owner, counting=True
            ),
        ),
        *_RULES,
    )


# --- Allocations without a record ----------------------------------------------------------------

#: The consumers that have allocations but no record.
_UNRECORDED: Final = (
    select(allocations.c.consumer_id)
    .where(~exists().where(consumers.c.uuid == allocations.c.consumer_id))
    .distinct()
)


def make_consumers(
    db: Database, owner: Owner, most: int = MIGRATED_PART, report: Report = unheard
) -> Iterator[int]:
    """Create the missing records of consumers with allocations, `most` in a transaction; yield the
    number of each."""
    done, total = 0, count_unrecorded(db)
    while True:
        with db.read() as tx:
            some = list(tx.connection.scalars(_UNRECORDED.limit(most)))
        if not some:
            return
        report("records of consumers", done, total)
        insertion = partial(_insert, uuids=some, owner=owner, counting=is_current(db))
        write_unserved(db, insertion)
        done += len(some)
        yield len(some)


def count_unrecorded(db: Database) -> int:
    """The number of consumers that have allocations but no record."""
    with db.read() as tx:
        return tx.connection.scalar(select(func.count()).select_from(_UNRECORDED.subquery())) or 0


def _insert(tx: Tx, uuids: Sequence[str], owner: Owner, *, counting: bool) -> None:
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
    made: list[int] = []
    tx.change_all(Change(insertion.statement, [row], made.extend) for row in insertion.parameters)
    if counting:
        count_recorded(tx, compress(uuids, made))


def _owner_id(tx: Tx, table: Table, name: str) -> int:
    """The id of a project or a user; creates it if needed."""
    tx.insert_missing(table, [{"external_id": name, "created_at": tx.now}])
    number = tx.connection.scalar(select(table.c.id).where(table.c.external_id == name))
    assert number is not None, "it has just been written"
    return int(number)


# --- Records without use -------------------------------------------------------------------------

#: A failed claim of OpenStack Placement leaves a record at generation 0. A client that claims for a
#: new consumer is refused as long as there is one.
_IDLE: Final = _RECORDS.where(_consumer.generation >= 0, ~_HOLDS)
_FORGET: Final = delete(consumers).where(
    _consumer.id == bindparam("consumer"), _consumer.generation == bindparam("seen"), ~_HOLDS
)

_RESTART: Final = (
    update(consumers)
    .where(_consumer.id == bindparam("consumer"), _consumer.generation < 0)
    .values(generation=0, updated_at=bindparam("now"))
)


# --- What projects use ---------------------------------------------------------------------------


def _counters_named() -> Select[Any]:
    """The wrong counters with the names of what they count, without the mark."""
    rows = wrong_counters().subquery()
    project, user, consumer_type, class_id, *_ = rows.c
    query = (
        select(
            *rows.c,
            projects.c.external_id.label("project"),
            users.c.external_id.label("user"),
            consumer_types.c.name.label("type"),
        )
        .select_from(rows)
        .outerjoin(projects, projects.c.id == project)
        .outerjoin(users, users.c.id == user)
        .outerjoin(consumer_types, consumer_types.c.id == consumer_type)
        .where(project != MARK[0])
    )
    return with_class(query, class_id)


def _counter(row: Row[Any]) -> str:
    counted = "consumers" if row.class_id == CONSUMERS else class_of(row).rstrip(",")
    project = row.project or f"number {row.project_id}"
    user = row.user or f"number {row.user_id}"
    consumer_type = row.type or f"number {row.consumer_type_id}"
    of_type = (
        "without a consumer type"
        if row.consumer_type_id == NO_TYPE
        else f"consumer type {consumer_type}"
    )
    return f"project {project}, user {user}, {of_type}: the counter of {counted}"


def _correct(tx: Tx, keys: Sequence[Key]) -> None:
    correct(tx, [WrongCounter(*(key[name] for name in WrongCounter._fields)) for key in keys])


_RULES: Final = (
    rule(
        _IDLE,
        "consumer {uuid} has a record but no allocations",
        action="remove the record of consumer {uuid}",
        repair=_FORGET,
    ),
    rule(
        _RECORDS.where(_consumer.generation < 0),
        "consumer {uuid} has the generation {seen}",
        action="let the generation of consumer {uuid} begin at 0",
        repair=_RESTART,
    ),
    *(
        rule(
            _RECORDS.add_columns(owned_by.label("missing")).where(
                owned_by.is_not(None), ~exists().where(table.c.id == owned_by)
            ),
            f"consumer {{uuid}} is of {noun} number {{missing}}, which does not exist",
            advice="set the allocations of this consumer again through the API, with its project, "
            "user and type",
        )
        for noun, table, owned_by in (
            ("project", projects, _consumer.project_id),
            ("user", users, _consumer.user_id),
            ("type", consumer_types, _consumer.consumer_type_id),
        )
    ),
    rule(
        _counters_named(),
        lambda row: f"{_counter(row)} is {row.stored}, but the allocations make {row.counted}",
        action=lambda row: f"set {_counter(row)} to {row.counted}",
        repair=_correct,
    ),
)
