# SPDX-License-Identifier: Apache-2.0
"""What projects use: the counters that each commit changes (`engine.project_usages`), read by
project, user and consumer type, and corrected from the allocations where they differ.

Every commit of berth changes the allocations and their counters by the same amounts. So the
difference between the two, as one read sees it, stays the same while others write, and adding it to
the counters is right whenever that happens. It is added to a row that only corrections change: if
two processes find the same difference, one of them adds it.

If berth finds that another program has written allocations, it does not know for which projects.
It marks the counters in the commit that corrects the provider; the next reader recounts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Insert,
    Integer,
    Select,
    bindparam,
    case,
    cast,
    exists,
    func,
    insert,
    literal_column,
    null,
    select,
    union_all,
    update,
)

from berth.model.consumer import UNKNOWN_TYPE
from berth.store.engine.database import Database
from berth.store.engine.prepared import Parameters
from berth.store.engine.project_deltas import CONSUMERS, NO_TYPE, ROW_COUNTERS, BlockKey, Owner
from berth.store.engine.project_usages import COUNTERS, FOLDED, row_of
from berth.store.engine.tables import (
    allocations,
    berth_project_usages,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    users,
)
from berth.store.engine.transaction import Change, Tx

#: Instead of a writer: what was added to correct a counter.
CORRECTED: Final = -1

#: The owner of the counter that says that another program has written allocations. No project has
#: this id, so its computed value is zero, and a correction of all counters resets it.
MARK: Final[Owner] = (0, 0, NO_TYPE)

#: Counters that are corrected in one transaction.
_PART: Final = 10_000

#: The most passes over the counters, which others may damage meanwhile.
_PASSES_MAX: Final = 100

_allocation, _consumer, _class = allocations.c, consumers.c, resource_classes.c
_row = berth_project_usages.c

#: The name that asks for all consumers together, whatever their type.
ALL_TYPES: Final = "all"


class TypeUsages(Struct, frozen=True):
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
    if any(row.class_id == _OF_MARK for row in rows):
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
        class_id: _OF_MARK instead of a class says that the counters have to be recounted.
        used: of the classes from `first_class` on.
    """

    type_name: str | None
    first_class: int
    class_id: int
    class_name: str | None
    used: tuple[int, ...]


_OF_MARK: Final = -2


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
            literal_column(str(_OF_MARK)),
            literal_column(str(_OF_MARK)),
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


# --- Recounting ----------------------------------------------------------------------------------


class WrongCounter(NamedTuple):
    """A counter whose value differs from what its allocations add up to.

    Attributes:
        corrected: its value in the row of corrections.
    """

    project_id: int
    user_id: int
    consumer_type_id: int
    resource_class_id: int
    stored: int
    counted: int
    corrected: int


def mark(tx: Tx) -> None:
    """Note that the counters may be wrong, because another program has written allocations."""
    tx.project_usages.add(MARK, CONSUMERS, 1)


def is_marked(db: Database) -> bool:
    """Whether another program has written allocations since the counters were last corrected."""
    with db.read() as tx:
        return bool(tx.rows(_MARKED, {}))


def fill_project_usages(db: Database) -> None:
    """Fill the counters, if there are none, in a database that no process serves.

    Cost: one statement; reads the allocations twice.
    """
    db.write_unnoted(_fill)


def recount_project_usages(db: Database, *, part_max: int = _PART) -> int:
    """Correct all counters from the allocations; return how many were wrong.

    Args:
        part_max: the most counters to correct in one transaction.

    berth may keep writing claims meanwhile. Cost: reads the allocations twice, and again if any
    counter is wrong.
    """
    wrong: set[tuple[int, ...]] = set()
    for _ in range(_PASSES_MAX):
        with db.read() as tx:
            rows = tx.rows(_WRONG_PART, {"part_max": part_max})
        if not rows:
            break
        part = [WrongCounter(*row) for row in rows]
        db.write(partial(correct, wrong=part))
        wrong.update(counter[:4] for counter in part if counter.project_id != MARK[0])
    return len(wrong)


def correct(tx: Tx, wrong: Iterable[WrongCounter]) -> None:
    """Add the differences to the counters, unless another process has corrected them since."""
    parts: list[list[Parameters]] = [[] for _ in _CORRECT]
    rows: dict[BlockKey, Parameters] = {}
    for project, user, consumer_type, class_id, stored, counted, corrected in sorted(wrong):
        place = (class_id - CONSUMERS) % ROW_COUNTERS
        block = project, user, consumer_type, class_id - place
        row = rows[block] = row_of(block, CORRECTED, [0] * ROW_COUNTERS)
        to_be = corrected + counted - stored
        parts[place].append({**row, "corrected": corrected, "to_be": to_be})
    changes = map(Change, _CORRECT, parts)
    tx.change_all([*tx.insertions_of_missing(berth_project_usages, [*rows.values()]), *changes])


def count_recorded(tx: Tx, uuids: Iterable[str]) -> None:
    """Count the allocations of consumers to which this transaction has given a record."""
    for chunk in tx.chunks(uuids):
        for *owner, class_id, used, provider in tx.rows(_USED_BY, {"consumers": chunk}):
            tx.project_usages.add((*owner,), class_id, int(used))
            tx.usage_changed.add(provider)
        for *owner, class_id, count in tx.rows(_COUNT_OF, {"consumers": chunk}):
            tx.project_usages.add((*owner,), class_id, count)


def wrong_counters() -> Select[Any]:
    """(project, user, type, class, stored, counted, corrected) of each counter that is wrong, the
    mark included: see `WrongCounter`."""
    *key, counted = _counted.c
    stored = (
        select(
            *_owner_columns,
            (_row.first_class + literal_column(str(place))).label("resource_class_id"),
            column.label("stored"),
            _zero.label("counted"),
            case((_row.writer_id == CORRECTED, column), else_=_zero).label("corrected"),
        )
        for place, column in enumerate(COUNTERS)
    )
    rows = union_all(*stored, select(*key, _zero, counted, _zero)).subquery()
    *key, stored_part, counted_part, corrected = rows.c
    stored_sum, counted_sum = func.sum(stored_part), func.sum(counted_part)
    return (
        select(
            *key,
            # MySQL's SUM returns a decimal, which people would see with a decimal point.
            cast(stored_sum, BigInteger).label("stored"),
            cast(counted_sum, BigInteger).label("counted"),
            cast(func.sum(corrected), BigInteger).label("corrected"),
        )
        .group_by(*key)
        .having(stored_sum != counted_sum)
    )


def _fill(tx: Tx) -> None:
    if not tx.rows(_ANY, {}):
        tx.change(_FILL, {})


# --- Statements ----------------------------------------------------------------------------------

_zero: Final[ColumnElement[int]] = literal_column("0")
_owner: Final = (
    _consumer.project_id,
    _consumer.user_id,
    func.coalesce(_consumer.consumer_type_id, literal_column(str(NO_TYPE))),
)
_used: Final = (
    select(*_owner, _allocation.resource_class_id, func.sum(_allocation.used))
    .select_from(allocations)
    .join(consumers, _consumer.uuid == _allocation.consumer_id)
    .group_by(*_owner, _allocation.resource_class_id)
)
_count: Final = (
    select(*_owner, literal_column(str(CONSUMERS)), func.count())
    .where(exists().where(_allocation.consumer_id == _consumer.uuid))
    .group_by(*_owner)
)
_counted: Final = union_all(_used, _count).subquery("counted")

_owner_columns: Final = (_row.project_id, _row.user_id, _row.consumer_type_id)

_WRONG_PART: Final = wrong_counters().limit(bindparam("part_max", type_=Integer))
#: For each place in a row.
_CORRECT: Final = tuple(
    update(berth_project_usages)
    .where(
        *(key == bindparam(key.name) for key in berth_project_usages.primary_key.columns),
        column == bindparam("corrected"),
    )
    .values({column: bindparam("to_be")})
    for column in COUNTERS
)
_marks: Final = func.sum(COUNTERS[0])
_MARKED: Final = (
    select(cast(_marks, BigInteger)).where(_row.project_id == MARK[0]).having(_marks != _zero)
)
_ANY: Final = select(_row.writer_id).limit(1)


def _filling() -> Insert:
    *owner, class_id, counted = _counted.c
    place = (class_id - CONSUMERS) % literal_column(str(ROW_COUNTERS))
    placed = select(
        *(column.label(key.name) for column, key in zip(owner, _owner_columns, strict=True)),
        (class_id - place).label("first_class"),
        place.label("place"),
        counted.label("counted"),
    ).subquery("placed")
    *key, place_in_row, value = placed.c
    return insert(berth_project_usages).from_select(
        _row.keys(),
        select(
            *key,
            literal_column(str(FOLDED)),
            *(
                func.sum(case((place_in_row == literal_column(str(number)), value), else_=_zero))
                for number in range(ROW_COUNTERS)
            ),
        ).group_by(*key),
    )


_FILL: Final = _filling()
_some: Final = _consumer.uuid.in_(bindparam("consumers", expanding=True))
_USED_BY: Final = (
    _used.add_columns(_allocation.resource_provider_id)
    .group_by(_allocation.resource_provider_id)
    .where(_some)
)
_COUNT_OF: Final = _count.where(_some)
