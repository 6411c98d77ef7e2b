# SPDX-License-Identifier: Apache-2.0
"""The sums of usage, counted from the allocations: at first, and when somebody else wrote some.

Both go through the inventories in parts, in order of the providers, so that no transaction and no
result grows with the fleet. Both can be broken off and begun again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Select,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from berth.store.database import Database
from berth.store.tables import allocations, berth_usages, inventories
from berth.store.transaction import Tx

#: Is told what is being done, how much of it has been done, and how much there is.
Report = Callable[[str, int, int], None]

#: Sums that are counted in one transaction.
PART: Final = 20_000

#: Runs over one part while others write to it.
_PASSES_MAX: Final = 10

_COUNTING: Final = "counting usages"

_inv, _held, _usage = inventories.c, allocations.c, berth_usages.c


class _Part(NamedTuple):
    """The providers with `after` < id <= `upto`."""

    after: int
    upto: int


class _Stale(NamedTuple):
    """A sum as it is remembered (None: not at all) and as its allocations make it (None: there is
    no inventory, so there should be no sum)."""

    provider: int
    class_id: int
    remembered: int | None
    counted: int | None


def unheard(_what: str, _done: int, _total: int) -> None:
    """The `Report` of those who do not want to know."""


def fill_usages(db: Database, report: Report = unheard) -> None:
    """Count the sums that are not there yet, for a database that no index has been made of.

    Nobody may write allocations meanwhile.
    """
    for part in _parts(db, report):
        db.write_unnoted(partial(_fill_part, part=part))


def recount_usages(db: Database, report: Report = unheard) -> int:
    """Make the sums of usage agree with the allocations; the number of sums that were wrong.

    They are wrong after something else wrote allocations, and then too much could be claimed.
    berth may go on claiming meanwhile. Cost: reads the allocations once, along an index.
    """
    return sum(_recount_part(db, part) for part in _parts(db, report))


def put_right(tx: Tx, pairs: Collection[tuple[int, int]]) -> None:
    """Make the sums of some (provider, class) agree with their allocations, as far as nobody
    changes them meanwhile."""
    for providers in tx.chunks(sorted({provider for provider, _ in pairs})):
        stale = _stale(tx, _OF_SOME, {"providers": providers})
        _write(tx, [one for one in stale if (one.provider, one.class_id) in pairs])


def wrong_usages() -> Select[Any]:
    """(provider, class, sum remembered or None, sum counted) where the two differ."""
    return _wrong(_sums())


def usages_without_inventory() -> Select[Any]:
    """(provider, class, sum remembered) where there should be none."""
    return select(_usage.resource_provider_id, _usage.resource_class_id, _usage.used).where(
        ~exists().where(
            _inv.resource_provider_id == _usage.resource_provider_id,
            _inv.resource_class_id == _usage.resource_class_id,
        )
    )


# --- Statements ----------------------------------------------------------------------------------


def _sums(*where: ColumnElement[bool]) -> Select[Any]:
    """(provider, class, sum) of the allocations."""
    return (
        select(
            _held.resource_provider_id,
            _held.resource_class_id,
            func.sum(_held.used).label("used"),
        )
        .where(*where)
        .group_by(_held.resource_provider_id, _held.resource_class_id)
    )


def _compared(sums: Select[Any]) -> Select[Any]:
    """Each inventory with the sum that is remembered and the one that is counted."""
    counted = sums.subquery("counted")
    return (
        select(
            _inv.resource_provider_id,
            _inv.resource_class_id,
            _usage.used,
            # MySQL sums up to a type of its own, which people would see with a decimal point.
            cast(func.coalesce(counted.c.used, 0), BigInteger).label("counted"),
        )
        .select_from(inventories)
        .outerjoin(
            counted,
            and_(
                counted.c.resource_provider_id == _inv.resource_provider_id,
                counted.c.resource_class_id == _inv.resource_class_id,
            ),
        )
        .outerjoin(
            berth_usages,
            and_(
                _usage.resource_provider_id == _inv.resource_provider_id,
                _usage.resource_class_id == _inv.resource_class_id,
            ),
        )
    )


def _wrong(sums: Select[Any]) -> Select[Any]:
    compared = _compared(sums)
    counted = compared.selected_columns["counted"]
    return compared.where(or_(_usage.used.is_(None), _usage.used != counted))


def _of_part(provider: ColumnElement[int]) -> tuple[ColumnElement[bool], ...]:
    return provider > bindparam("after"), provider <= bindparam("upto")


class _StaleQueries(NamedTuple):
    """What finds the sums that are wrong, among those of some providers."""

    wrong: Select[Any]
    without_inventory: Select[Any]


_Condition = Callable[[ColumnElement[int]], tuple[ColumnElement[bool], ...]]


def _stale_queries(where: _Condition) -> _StaleQueries:
    """Queries for the providers that meet a condition."""
    return _StaleQueries(
        _wrong(_sums(*where(_held.resource_provider_id))).where(*where(_inv.resource_provider_id)),
        usages_without_inventory().where(*where(_usage.resource_provider_id)),
    )


_some: Final[BindParameter[Any]] = bindparam("providers", expanding=True)
_OF_PART: Final = _stale_queries(_of_part)
_OF_SOME: Final = _stale_queries(lambda provider: (provider.in_(_some),))


def _missing_of_part() -> Any:
    compared = _compared(_sums(*_of_part(_held.resource_provider_id))).where(
        *_of_part(_inv.resource_provider_id)
    )
    provider, class_id, _, counted = compared.selected_columns
    return insert(berth_usages).from_select(
        ["resource_provider_id", "resource_class_id", "used"],
        compared.with_only_columns(provider, class_id, counted).where(_usage.used.is_(None)),
    )


#: PERF all in the database: the sums of a fleet do not travel twice.
_MISSING_OF_PART: Final = _missing_of_part()


def last_of_part(inventories_min: int) -> Select[Any]:
    """The provider with which a part ends that has at least so many inventories."""
    return (
        select(_inv.resource_provider_id)
        .where(_inv.resource_provider_id > bindparam("after"))
        .order_by(_inv.resource_provider_id)
        .limit(1)
        .offset(inventories_min - 1)
    )


_LAST_OF_PART: Final = last_of_part(PART)

_AS_REMEMBERED: Final = (
    _usage.resource_provider_id == bindparam("provider"),
    _usage.resource_class_id == bindparam("class"),
    _usage.used == bindparam("remembered"),
)
_CORRECT: Final = update(berth_usages).where(*_AS_REMEMBERED).values(used=bindparam("counted"))
_FORGET: Final = delete(berth_usages).where(*_AS_REMEMBERED)


# --- Parts ---------------------------------------------------------------------------------------


def _parts(db: Database, report: Report) -> Iterator[_Part]:
    """Parts that together hold every provider; each is reported as done when the next is asked."""
    with db.read() as tx:
        total = tx.connection.scalar(select(func.count()).select_from(inventories)) or 0
    after, done = -1, 0
    while True:
        report(_COUNTING, min(done, total), total)
        with db.read() as tx:
            last = tx.connection.scalar(_LAST_OF_PART, {"after": after})
        if last is None:
            break
        yield _Part(after, last)
        after, done = last, done + PART
    yield _Part(after, 2**31 - 1)
    report(_COUNTING, total, total)


def _fill_part(tx: Tx, part: _Part) -> None:
    tx.connection.execute(_MISSING_OF_PART, part._asdict())


def _recount_part(db: Database, part: _Part) -> int:
    """Put the sums of a part right; how many were wrong.

    RACE tests/store/test_usage_counts.py: each is changed only if it is still as it was when its
    allocations were counted. One that a claim has changed in between is counted once more.
    """
    with db.read() as tx:
        wrong = len(_stale(tx, _OF_PART, part._asdict()))
    passes = _PASSES_MAX if wrong else 0
    while passes and db.write(partial(_put_part_right, part=part)):
        passes -= 1
    return wrong


def _put_part_right(tx: Tx, part: _Part) -> int:
    """One pass over a part; how many sums were wrong when it began."""
    stale = _stale(tx, _OF_PART, part._asdict())
    _write(tx, stale)
    return len(stale)


def _stale(tx: Tx, queries: _StaleQueries, parameters: Mapping[str, Any]) -> list[_Stale]:
    wrong = tx.connection.execute(queries.wrong, parameters)
    stale = [_Stale(*row) for row in wrong]
    extra = tx.connection.execute(queries.without_inventory, parameters)
    stale.extend(_Stale(provider, class_id, used, None) for provider, class_id, used in extra)
    return stale


def _write(tx: Tx, stale: Sequence[_Stale]) -> None:
    """Write what was counted, where what was remembered still stands."""
    correct = [one for one in stale if one.counted is not None and one.remembered is not None]
    missing = [one for one in stale if one.remembered is None]
    forget = [one for one in stale if one.counted is None]
    if correct:
        tx.connection.execute(
            _CORRECT, [{**_as_remembered(one), "counted": one.counted} for one in correct]
        )
    tx.insert_missing(berth_usages, [_row(one) for one in missing])
    if forget:
        tx.connection.execute(_FORGET, [_as_remembered(one) for one in forget])
    tx.touched.update(one.provider for one in stale)


def _as_remembered(one: _Stale) -> dict[str, int | None]:
    return {"provider": one.provider, "class": one.class_id, "remembered": one.remembered}


def _row(one: _Stale) -> dict[str, int | None]:
    return {
        "resource_provider_id": one.provider,
        "resource_class_id": one.class_id,
        "used": one.counted,
    }
