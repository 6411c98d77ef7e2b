# SPDX-License-Identifier: Apache-2.0
"""Labels of aggregates: keys and values, of which `name` is unique.

An aggregate may have labels before any provider is in it. All labels of one aggregate are one row,
so replacing them is atomic. Source: spec/beyond.md 7.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from sqlalchemy import bindparam, delete, or_, select, update
from sqlalchemy.exc import IntegrityError

from berth.model.errors import LostRace
from berth.model.ids import AggregateUUID
from berth.model.own_errors import LabelTaken
from berth.store.engine.database import Database
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import berth_labels
from berth.store.engine.transaction import Tx

#: The key of the label by which an aggregate is referred to.
NAME: Final = "name"

_row = berth_labels.c
_OF_AGGREGATE: Final = _row.aggregate_uuid == bindparam("aggregate")

_ALL: Final = select(_row.aggregate_uuid, _row.labels)
_OF_AGGREGATE_OR_NAME: Final = select(_row.aggregate_uuid, _row.name, _row.labels).where(
    or_(_OF_AGGREGATE, _row.name == bindparam("name"))
)
_INSERT: Final = insert_of(berth_labels, "aggregate_uuid", "name", "labels")
_UPDATE: Final = (
    update(berth_labels)
    .where(_OF_AGGREGATE)
    .values(name=bindparam("new_name"), labels=bindparam("new_labels"))
)
_DELETE: Final = delete(berth_labels).where(_OF_AGGREGATE)


def all_labels(tx: Tx) -> dict[AggregateUUID, dict[str, str]]:
    """The labels of every aggregate that has some."""
    rows = tx.rows(_ALL, {})
    return {uuid: labels for uuid, text in rows if (labels := _decoded(text))}


def replace_labels(db: Database, aggregate: AggregateUUID, labels: Mapping[str, str]) -> None:
    """Replace the labels of an aggregate; an empty mapping removes them.

    Nothing is written if they are the same already.

    Raises:
        LabelTaken: another aggregate has this name.
    """

    def unit(tx: Tx) -> None:
        stored = _stored_labels(tx, aggregate, labels.get(NAME))
        if (labels or None) != stored:
            _write(tx, aggregate, labels, is_new=stored is None)
            tx.names_touched = True

    db.write(unit)


def _stored_labels(tx: Tx, aggregate: AggregateUUID, name: str | None) -> dict[str, str] | None:
    """The labels of an aggregate; None if it has no row.

    Raises:
        LabelTaken: another aggregate has the name.
    """
    stored: dict[str, str] | None = None
    for uuid, its_name, labels in tx.rows(
        _OF_AGGREGATE_OR_NAME, {"aggregate": aggregate, "name": name}
    ):
        if uuid == aggregate:
            stored = _decoded(labels)
        elif name is not None and its_name == name:
            raise LabelTaken(name, uuid)
    return stored


def _decoded(labels: str) -> dict[str, str]:
    """The labels of a row; empty if another program has damaged it."""
    with suppress(ValueError):
        if isinstance(decoded := json.loads(labels), dict):
            return {key: str(value) for key, value in decoded.items()}
    return {}


def _write(tx: Tx, aggregate: AggregateUUID, labels: Mapping[str, str], *, is_new: bool) -> None:
    name = labels.get(NAME)
    text = json.dumps(labels, ensure_ascii=False, sort_keys=True)
    try:
        if is_new:
            tx.change(_INSERT, {"aggregate_uuid": aggregate, "name": name, "labels": text})
            return
        if labels:
            values = {"aggregate": aggregate, "new_name": name, "new_labels": text}
            written = tx.change(_UPDATE, values)
        else:
            written = tx.change(_DELETE, {"aggregate": aggregate})
    except IntegrityError as error:
        # RACE tests/store/test_labels.py: the aggregate got labels, or another one got the name,
        # since they were read; the next attempt reads which.
        raise LostRace(f"the labels of aggregate {aggregate}") from error
    if written != 1:
        raise LostRace(f"the labels of aggregate {aggregate}")
