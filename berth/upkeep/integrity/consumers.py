# SPDX-License-Identifier: Apache-2.0
"""Consumers: their records and their owners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import Row, Select, Table, bindparam, delete, exists, select, update

from berth.store.engine.tables import allocations, consumer_types, consumers, projects, users
from berth.store.engine.transaction import Tx
from berth.upkeep.data_migrations import UNRECORDED, Owner, insert_consumers
from berth.upkeep.integrity.fault import Key, Rule, left_alone, repairable

_consumer = consumers.c
_HOLDS: Final = exists().where(allocations.c.consumer_id == _consumer.uuid)
_RECORDS: Final = select(_consumer.id, _consumer.uuid, _consumer.generation)


def rules(owner: Owner) -> tuple[Rule, ...]:
    """The rules about consumers; a consumer without a record is assigned to `owner`."""
    return (
        repairable(
            UNRECORDED,
            lambda row: f"consumer {row.consumer_id} has allocations but no record",
            lambda row: (
                f"make a record of consumer {row.consumer_id}, of project {owner.project} and user "
                f"{owner.user}"
            ),
            partial(_make_records, owner),
        ),
        *_RULES,
    )


def _make_records(owner: Owner, tx: Tx, keys: Sequence[Key]) -> None:
    insert_consumers(tx, [key["consumer_id"] for key in keys], owner)


# --- Records without use -------------------------------------------------------------------------

#: A failed claim of OpenStack Placement leaves a record at generation 0. A client that claims for a
#: new consumer is refused as long as there is one.
_IDLE: Final = _RECORDS.where(_consumer.generation >= 0, ~_HOLDS)
_FORGET: Final = delete(consumers).where(
    _consumer.id == bindparam("consumer"), _consumer.generation == bindparam("seen"), ~_HOLDS
)


def _forget(tx: Tx, keys: Sequence[Key]) -> None:
    tx.connection.execute(
        _FORGET, [{"consumer": key["id"], "seen": key["generation"]} for key in keys]
    )


# --- Generations ---------------------------------------------------------------------------------

_RESTART: Final = (
    update(consumers)
    .where(_consumer.id == bindparam("consumer"), _consumer.generation < 0)
    .values(generation=0, updated_at=bindparam("now"))
)


def _restart(tx: Tx, keys: Sequence[Key]) -> None:
    tx.connection.execute(_RESTART, [{"consumer": key["id"], "now": tx.now} for key in keys])


# --- Owners --------------------------------------------------------------------------------------


def _without(table: Table, column: Any) -> Select[Any]:
    has_owner = exists().where(table.c.id == column)
    return _RECORDS.add_columns(column.label("missing")).where(column.is_not(None), ~has_owner)


def _of_unknown(noun: str) -> Callable[[Row[Any]], str]:
    return lambda row: (
        f"consumer {row.uuid} is of {noun} number {row.missing}, which does not exist"
    )


_ADVICE: Final = (
    "set the allocations of this consumer again through the API, with its project, user and type"
)

_RULES: Final = (
    repairable(
        _IDLE,
        lambda row: f"consumer {row.uuid} has a record but no allocations",
        lambda row: f"remove the record of consumer {row.uuid}",
        _forget,
    ),
    repairable(
        _RECORDS.where(_consumer.generation < 0),
        lambda row: f"consumer {row.uuid} has the generation {row.generation}",
        lambda row: f"let the generation of consumer {row.uuid} begin at 0",
        _restart,
    ),
    left_alone(_without(projects, _consumer.project_id), _of_unknown("project"), _ADVICE),
    left_alone(_without(users, _consumer.user_id), _of_unknown("user"), _ADVICE),
    left_alone(_without(consumer_types, _consumer.consumer_type_id), _of_unknown("type"), _ADVICE),
)
