# SPDX-License-Identifier: Apache-2.0
"""The counters of what projects use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Row, Select, select

from berth.store.engine.project_deltas import CONSUMERS, NO_TYPE
from berth.store.engine.tables import consumer_types, projects, users
from berth.store.engine.transaction import Tx
from berth.store.project_counts import MARK, WrongCounter, correct, wrong_counters
from berth.upkeep.integrity.fault import Key, repairable
from berth.upkeep.integrity.words import class_of, with_class


def _named() -> Select[Any]:
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


def _words(row: Row[Any]) -> str:
    return f"{_counter(row)} is {row.stored}, but the allocations make {row.counted}"


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


RULES: Final = (
    repairable(
        _named(),
        _words,
        lambda row: f"set {_counter(row)} to {row.counted}",
        _correct,
    ),
)
