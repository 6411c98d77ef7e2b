# SPDX-License-Identifier: Apache-2.0
"""Computes what projects use from the allocations, and corrects the counters that differ.

Every commit of berth changes the allocations and their counters by the same amounts. So the
difference between the two, as one read sees it, stays the same while others write, and adding it to
the counters is right whenever that happens. It is added to a row that only corrections change: if
two processes find the same difference, one of them adds it.

If berth finds that another program has written allocations, it does not know for which projects.
It marks the counters in the commit that corrects the provider; the next reader recounts them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
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
    select,
    union_all,
    update,
)

from berth.store.engine.database import Database
from berth.store.engine.prepared import Parameters
from berth.store.engine.project_deltas import CONSUMERS, NO_TYPE, ROW_COUNTERS, BlockKey, Owner
from berth.store.engine.project_usages import COUNTERS, FOLDED, row_of
from berth.store.engine.tables import allocations, berth_project_usages, consumers
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

_allocation, _consumer, _row = allocations.c, consumers.c, berth_project_usages.c


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
