# SPDX-License-Identifier: Apache-2.0
"""The sums of usage, counted from the allocations: at first, and when somebody else wrote some.

Both go through the inventories in parts, in order of the providers, so that no transaction and no
result grows with the fleet. Both can be broken off and begun again.

A row that is counted also gets its provider's generation: see `berth.store.foreign_writes`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
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

from berth.model.errors import LostRace
from berth.store.engine.database import Database
from berth.store.engine.tables import (
    allocations,
    berth_usages,
    berth_writer,
    inventories,
    resource_providers,
)
from berth.store.engine.transaction import Tx
from berth.store.expressions import rewritten

#: Is told what is being done, how much of it has been done, and how much there is.
Report = Callable[[str, int, int], None]

#: Sums that are counted in one transaction.
PART: Final = 20_000

#: Runs over one part while others write to it.
_PASSES_MAX: Final = 10

_COUNTING: Final = "counting usages"

#: A process of an older release that has written nothing for so long is taken to have ended.
_ENDED: Final = timedelta(minutes=1)

_inv, _held, _usage = inventories.c, allocations.c, berth_usages.c
_rp, _writer = resource_providers.c, berth_writer.c


class _Part(NamedTuple):
    """The providers with `after` < id <= `upto`."""

    after: int
    upto: int


class Stale(NamedTuple):
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
    wrong = sum(_recount_part(db, part) for part in _parts(db, report))
    _forget_older_releases(db)
    return wrong


def put_right(tx: Tx, pairs: Collection[tuple[int, int]]) -> None:
    """Make the sums of some (provider, class) agree with their allocations, as far as nobody
    changes them meanwhile."""
    for providers in tx.chunks(sorted({provider for provider, _ in pairs})):
        hold_still(tx, providers)
        stale = _stale(tx, _OF_SOME, {"providers": providers})
        ours = [one for one in stale if (one.provider, one.class_id) in pairs]
        _write(tx, ours)
        level_generations(tx, {one.provider for one in ours if one.remembered is None})


def recount_held_still(tx: Tx, providers: Collection[int]) -> list[Stale]:
    """Make all sums of some providers agree with their allocations, and give them the providers'
    generations; the sums that were wrong.

    No claim can come in between: the providers stay locked until the commit. What is released
    meanwhile is counted again.

    Raises:
        LostRace: too much is being released.
    """
    found: list[Stale] = []
    for some in tx.chunks(sorted(providers)):
        hold_still(tx, some)
        for _ in range(_PASSES_MAX):
            stale = _stale(tx, _OF_SOME, {"providers": some})
            if not stale:
                break
            found.extend(stale)
            _write(tx, stale)
        else:
            raise LostRace("what is used of a resource provider")
        level_generations(tx, some)
        tx.touched.update(some)
    return found


def hold_still(tx: Tx, providers: Collection[int]) -> None:
    """Let no claim on some providers commit before this transaction does."""
    if providers:
        tx.change(_HOLD, [{"provider": provider} for provider in sorted(providers)])


def level_generations(tx: Tx, providers: Collection[int]) -> None:
    """Give the sums of some providers that stand still the providers' generations."""
    if providers:
        tx.change(_LEVEL, [{"provider": provider} for provider in sorted(providers)])


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


def providers_moved() -> Select[Any]:
    """(provider, generation, the one that berth left it at or None) where the two differ."""
    known = func.max(_usage.generation)
    return (
        select(_rp.id, _rp.generation, known.label("known"))
        .join(berth_usages, _usage.resource_provider_id == _rp.id)
        .group_by(_rp.id, _rp.generation)
        .having(func.coalesce(known, -1) != func.coalesce(_rp.generation, -1))
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
        ["resource_provider_id", "resource_class_id", "used", "generation"],
        compared.with_only_columns(
            provider, class_id, counted, _generation_of(_inv.resource_provider_id)
        ).where(_usage.used.is_(None)),
    )


def _generation_of(provider: ColumnElement[int]) -> ColumnElement[int]:
    """A provider's generation."""
    return select(_rp.generation).where(_rp.id == provider).scalar_subquery()


#: PERF all in the database: the sums of a fleet do not travel twice.
_MISSING_OF_PART: Final = _missing_of_part()
_LEVEL_PART: Final = (
    update(berth_usages)
    .where(_usage.generation.is_(None), *_of_part(_usage.resource_provider_id))
    .values(generation=_generation_of(_usage.resource_provider_id))
)
_LEVEL: Final = (
    update(berth_usages)
    .where(_usage.resource_provider_id == bindparam("provider"))
    .values(generation=_generation_of(_usage.resource_provider_id))
)
_HOLD: Final = (
    update(resource_providers)
    .where(_rp.id == bindparam("provider"))
    .values(generation=_rp.generation, updated_at=rewritten(_rp.updated_at))
)

_MOVED_OF_PART: Final = providers_moved().where(*_of_part(_rp.id))
_UNKEPT: Final = (_writer.kept_seq != _writer.seq, _writer.updated_at < bindparam("before"))


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
    tx.connection.execute(_LEVEL_PART, part._asdict())
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
    with db.read() as tx:
        moved = [row.id for row in tx.connection.execute(_MOVED_OF_PART, part._asdict())]
        chunks = list(tx.chunks(moved))
    for some in chunks:
        db.write(partial(recount_held_still, providers=some))
    return wrong


def _put_part_right(tx: Tx, part: _Part) -> int:
    """One pass over a part; how many sums were wrong when it began."""
    stale = _stale(tx, _OF_PART, part._asdict())
    _write(tx, stale)
    return len(stale)


def _forget_older_releases(db: Database) -> None:
    """What older releases wrote until now has been counted, so it explains nothing any more."""
    with db.read() as tx:
        before = {"before": tx.now - _ENDED}
        ended = tx.connection.scalar(select(func.count()).where(*_UNKEPT), before)
    if ended:
        forget = update(berth_writer).where(*_UNKEPT).values(kept_seq=_writer.seq)
        db.write_unnoted(lambda tx: tx.connection.execute(forget, before).rowcount)


def _stale(tx: Tx, queries: _StaleQueries, parameters: Mapping[str, Any]) -> list[Stale]:
    wrong = tx.connection.execute(queries.wrong, parameters)
    stale = [Stale(*row) for row in wrong]
    extra = tx.connection.execute(queries.without_inventory, parameters)
    stale.extend(Stale(provider, class_id, used, None) for provider, class_id, used in extra)
    return stale


def _write(tx: Tx, stale: Sequence[Stale]) -> None:
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


def _as_remembered(one: Stale) -> dict[str, int | None]:
    return {"provider": one.provider, "class": one.class_id, "remembered": one.remembered}


def _row(one: Stale) -> dict[str, int | None]:
    return {
        "resource_provider_id": one.provider,
        "resource_class_id": one.class_id,
        "used": one.counted,
    }
