# SPDX-License-Identifier: Apache-2.0
"""Sums of allocations: by provider, by project and user, and by consumer type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    bindparam,
    func,
    literal_column,
    null,
    select,
    union_all,
)

from berth.model.consumer import UNKNOWN_TYPE
from berth.store.engine.database import Database
from berth.store.engine.project_deltas import CONSUMERS, ROW_COUNTERS
from berth.store.engine.project_usages import COUNTERS
from berth.store.engine.tables import (
    berth_project_usages,
    consumer_types,
    projects,
    resource_classes,
    users,
)
from berth.store.project_counts import MARK, recount_project_usages

#: The name that asks for all consumers together, whatever their type.
ALL_TYPES: Final = "all"


@dataclass(frozen=True, slots=True)
class TypeUsages:
    """The allocations of all consumers of one type, and the number of these consumers."""

    resources: dict[str, int]
    consumer_count: int


def project_usages(db: Database, project_id: str, user_id: str | None) -> dict[str, int]:
    """What the consumers of a project use, or only those of one of its users, by class."""
    usages = project_usages_by_type(db, project_id, user_id, ALL_TYPES)
    return usages[ALL_TYPES].resources if usages else {}


def project_usages_by_type(
    db: Database, project_id: str, user_id: str | None, consumer_type: str | None
) -> dict[str, TypeUsages]:
    """As `project_usages`, separately for each consumer type, with those without one as `unknown`.

    If another program has written allocations, the counters are recounted first.

    Args:
        consumer_type: return only the entry of this type, or `unknown`, or `all` together. Types
            without allocations have no entry.

    Cost: one statement; the same for any number of allocations and consumers.
    """
    rows = _counters(db, project_id, user_id)
    if any(row.class_id == _MARKED for row in rows):
        recount_project_usages(db)
        rows = _counters(db, project_id, user_id)
    usages: dict[str, TypeUsages] = {}
    for row in rows:
        if row.first_class == CONSUMERS and row.used[0] > 0:
            usages[row.type_name or UNKNOWN_TYPE] = TypeUsages({}, row.used[0])
    for row in rows:
        usage = usages.get(row.type_name or UNKNOWN_TYPE)
        if usage and row.class_name and (used := row.used[row.class_id - row.first_class]) > 0:
            usage.resources[row.class_name] = used
    if consumer_type is None:
        return usages
    if consumer_type == ALL_TYPES:
        return _together(usages.values())
    return {name: usage for name, usage in usages.items() if name == consumer_type}


class _CounterRow(NamedTuple):
    """A class of a row of counters, whose values are sums over the writers and users.

    Attributes:
        class_id: _MARKED instead of a class says that the counters have to be recounted.
        used: of the classes from `first_class` on.
    """

    type_name: str | None
    first_class: int
    class_id: int
    class_name: str | None
    used: tuple[int, ...]


_MARKED: Final = -2

_row = berth_project_usages.c
_class = resource_classes.c


def _rows_of(*conditions: ColumnElement[bool]) -> CompoundSelect[Any]:
    sums = (
        select(
            _row.consumer_type_id,
            _row.first_class,
            *(func.sum(column).label(column.name) for column in COUNTERS),
        )
        .join(projects, projects.c.id == _row.project_id)
        .where(projects.c.external_id == bindparam("project"), *conditions)
        .group_by(_row.consumer_type_id, _row.first_class)
        .subquery("sums")
    )
    last_class = sums.c.first_class + literal_column(str(ROW_COUNTERS - 1))
    rows = (
        select(
            consumer_types.c.name,
            sums.c.first_class,
            _class.id,
            _class.name.label("class_name"),
            *(sums.c[column.name] for column in COUNTERS),
        )
        .select_from(sums)
        .join(resource_classes, _class.id.between(sums.c.first_class, last_class))
        .outerjoin(consumer_types, consumer_types.c.id == sums.c.consumer_type_id)
    )
    nothing: ColumnElement[Any] = null()
    marks = (
        select(
            nothing,
            literal_column(str(_MARKED)),
            literal_column(str(_MARKED)),
            nothing,
            *(func.sum(column) for column in COUNTERS),
        )
        .where(_row.project_id == MARK[0])
        .having(func.sum(COUNTERS[0]) != literal_column("0"))
    )
    return union_all(rows, marks)


_OF_PROJECT: Final = _rows_of()
_OF_USER: Final = _rows_of(
    _row.user_id.in_(select(users.c.id).where(users.c.external_id == bindparam("user")))
)


def _counters(db: Database, project_id: str, user_id: str | None) -> list[_CounterRow]:
    query = _OF_PROJECT if user_id is None else _OF_USER
    with db.read() as tx:
        rows = tx.rows(query, {"project": project_id, "user": user_id})
    return [
        _CounterRow(type_name, first_class, class_id, class_name, tuple(map(int, used)))
        for type_name, first_class, class_id, class_name, *used in rows
    ]


def _together(usages: Collection[TypeUsages]) -> dict[str, TypeUsages]:
    """One entry for all types. A consumer has one type, so the counts can be added too."""
    if not usages:
        return {}
    resources: Counter[str] = Counter()
    for usage in usages:
        resources.update(usage.resources)
    return {ALL_TYPES: TypeUsages(dict(resources), sum(usage.consumer_count for usage in usages))}
