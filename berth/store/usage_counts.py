# SPDX-License-Identifier: Apache-2.0
"""Computes the usages from the allocations: at first, and after another program wrote allocations.

Both process the inventories in parts, in order of the providers, so that no transaction or result
grows with the fleet. Both can be interrupted and started again.

A recounted row also gets its provider's generation: see `berth.store.foreign_writes`.
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
from berth.store.engine.expressions import rewritten
from berth.store.engine.tables import (
    allocations,
    berth_usages,
    inventories,
    resource_providers,
    same_inventory,
)
from berth.store.engine.transaction import Tx
from berth.store.usages import mark

#: Receives the current step, its progress, and its total.
Report = Callable[[str, int, int], None]

#: Usages counted in one transaction.
PART: Final = 20_000

#: The most passes over one part while others write to it.
_PASSES_MAX: Final = 10

_COUNTING: Final = "counting usages"

_inv, _allocation, _usage = inventories.c, allocations.c, berth_usages.c
_rp = resource_providers.c


class _Part(NamedTuple):
    """The providers with `after` < id <= `upto`."""

    after: int
    upto: int


class Stale(NamedTuple):
    """A usage as stored (None: there is no row) and as computed from its allocations (None: there
    is no inventory, so there should be no row)."""

    provider: int
    class_id: int
    remembered: int | None
    counted: int | None


def unheard(_step: str, _done: int, _total: int) -> None:
    """A `Report` that ignores the progress."""


def fill_usages(db: Database, report: Report = unheard) -> None:
    """Compute the usages that do not exist yet, in a database that no index has loaded.

    No other program may write allocations meanwhile.
    """
    for part in _parts(db, report):
        db.write_unnoted(partial(_fill_part, part=part))


def recount_usages(db: Database, report: Report = unheard) -> int:
    """Correct all usages from the allocations; return how many were wrong.

    They are wrong after another program wrote allocations, and then claims could exceed the
    capacity. berth may keep writing claims meanwhile. Cost: reads the allocations once, along
    an index.
    """
    return sum(_recount_part(db, part) for part in _parts(db, report))


def correct_usages(tx: Tx, pairs: Collection[tuple[int, int]]) -> None:
    """Correct the usages of some (provider, class) pairs from their allocations, unless they
    change meanwhile."""
    for providers in tx.chunks(sorted({provider for provider, _ in pairs})):
        lock_providers(tx, providers)
        stale = _stale(tx, _OF_SOME, {"providers": providers})
        ours = [row for row in stale if (row.provider, row.class_id) in pairs]
        _write(tx, ours)
        level_generations(tx, {row.provider for row in ours if row.remembered is None})


def recount_providers(tx: Tx, providers: Collection[int]) -> list[Stale]:
    """Correct all usages of some providers from their allocations, and write the providers'
    generations to them; return the usages that were wrong.

    No claim can interfere: the providers stay locked until the commit. Usages that a release
    changes meanwhile are counted again.

    Raises:
        LostRace: too many releases interfered.
    """
    mark(tx)
    wrong: list[Stale] = []
    for some in tx.chunks(sorted(providers)):
        lock_providers(tx, some)
        for _ in range(_PASSES_MAX):
            stale = _stale(tx, _OF_SOME, {"providers": some})
            if not stale:
                break
            wrong.extend(stale)
            _write(tx, stale)
        else:
            raise LostRace("the usage of a resource provider")
        level_generations(tx, some)
        tx.touched.update(some)
    return wrong


def lock_providers(tx: Tx, providers: Collection[int]) -> None:
    """Lock some providers, so that no claim on them commits before this transaction does."""
    if providers:
        tx.change(_HOLD, [{"provider": provider} for provider in sorted(providers)])
        # On MySQL, it writes the time of the last change.
        tx.usage_changed.update(providers)


def level_generations(tx: Tx, providers: Collection[int]) -> None:
    """Write the generations of some locked providers to their usages."""
    if providers:
        tx.change(_LEVEL, [{"provider": provider} for provider in sorted(providers)])


def wrong_usages() -> Select[Any]:
    """(provider, class, stored usage or None, computed usage) where the two differ."""
    return _wrong(_sums())


def usages_without_inventory() -> Select[Any]:
    """(provider, class, stored usage) of usages without an inventory."""
    return select(_usage.resource_provider_id, _usage.resource_class_id, _usage.used).where(
        ~exists().where(same_inventory(inventories, berth_usages))
    )


def providers_moved() -> Select[Any]:
    """(provider, generation, the generation that berth last wrote or None) where they differ."""
    last_written = func.max(_usage.generation)
    return (
        select(_rp.id, _rp.generation, last_written.label("known"))
        .join(berth_usages, _usage.resource_provider_id == _rp.id)
        .group_by(_rp.id, _rp.generation)
        .having(func.coalesce(last_written, -1) != func.coalesce(_rp.generation, -1))
    )


# --- Statements ----------------------------------------------------------------------------------


def _sums(*where: ColumnElement[bool]) -> Select[Any]:
    """(provider, class, sum) of the allocations."""
    return (
        select(
            _allocation.resource_provider_id,
            _allocation.resource_class_id,
            func.sum(_allocation.used).label("used"),
        )
        .where(*where)
        .group_by(_allocation.resource_provider_id, _allocation.resource_class_id)
    )


def _compared(sums: Select[Any]) -> Select[Any]:
    """Each inventory with its stored and its computed usage."""
    counted = sums.subquery("counted")
    return (
        select(
            _inv.resource_provider_id,
            _inv.resource_class_id,
            _usage.used,
            # MySQL's SUM returns a decimal, which people would see with a decimal point.
            cast(func.coalesce(counted.c.used, 0), BigInteger).label("counted"),
        )
        .select_from(inventories)
        .outerjoin(counted, same_inventory(counted, inventories))
        .outerjoin(berth_usages, same_inventory(berth_usages, inventories))
    )


def _wrong(sums: Select[Any]) -> Select[Any]:
    compared = _compared(sums)
    counted = compared.selected_columns["counted"]
    return compared.where(or_(_usage.used.is_(None), _usage.used != counted))


def _of_part(provider: ColumnElement[int]) -> tuple[ColumnElement[bool], ...]:
    return provider > bindparam("after"), provider <= bindparam("upto")


class _StaleQueries(NamedTuple):
    """Queries for the wrong usages of some providers."""

    wrong: Select[Any]
    without_inventory: Select[Any]


_Condition = Callable[[ColumnElement[int]], tuple[ColumnElement[bool], ...]]


def _stale_queries(where: _Condition) -> _StaleQueries:
    """Queries for the providers that meet a condition."""
    return _StaleQueries(
        _wrong(_sums(*where(_allocation.resource_provider_id))).where(
            *where(_inv.resource_provider_id)
        ),
        usages_without_inventory().where(*where(_usage.resource_provider_id)),
    )


_some: Final[BindParameter[Any]] = bindparam("providers", expanding=True)
_OF_PART: Final = _stale_queries(_of_part)
_OF_SOME: Final = _stale_queries(lambda provider: (provider.in_(_some),))


def _missing_of_part() -> Any:
    compared = _compared(_sums(*_of_part(_allocation.resource_provider_id))).where(
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


#: PERF all in the database: the usages of a fleet do not cross the network twice.
_MISSING_OF_PART: Final = _missing_of_part()
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
_COUNT: Final = select(func.count()).select_from(inventories)


def last_of_part(inventories_min: int) -> Select[Any]:
    """The last provider of a part with at least this number of inventories."""
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
    """Parts that together contain every provider; each is reported when the next is requested."""
    with db.read() as tx:
        ((total,),) = tx.rows(_COUNT, {})
    after, done = -1, 0
    while True:
        report(_COUNTING, min(done, total), total)
        with db.read() as tx:
            last = tx.rows(_LAST_OF_PART, {"after": after})
        if not last:
            break
        yield _Part(after, last[0][0])
        after, done = last[0][0], done + PART
    yield _Part(after, 2**31 - 1)
    report(_COUNTING, total, total)


def _fill_part(tx: Tx, part: _Part) -> None:
    tx.change(_MISSING_OF_PART, part._asdict())


def _recount_part(db: Database, part: _Part) -> int:
    """Correct the usages of a part; return how many were wrong.

    RACE tests/store/test_usage_counts.py: a usage is changed only if it still has the value that it
    had when its allocations were counted. One that a claim has changed meanwhile is counted again.
    """
    with db.read() as tx:
        wrong = len(_stale(tx, _OF_PART, part._asdict()))
    passes = _PASSES_MAX if wrong else 0
    while passes and db.write(partial(_correct_part, part=part)):
        passes -= 1
    with db.read() as tx:
        moved = [row[0] for row in tx.rows(_MOVED_OF_PART, part._asdict())]
        chunks = list(tx.chunks(moved))
    for some in chunks:
        db.write(partial(recount_providers, providers=some))
    return wrong


def _correct_part(tx: Tx, part: _Part) -> int:
    """One pass over a part; return how many usages were wrong at its start."""
    stale = _stale(tx, _OF_PART, part._asdict())
    if stale:
        mark(tx)
    _write(tx, stale)
    return len(stale)


def _stale(tx: Tx, queries: _StaleQueries, parameters: Mapping[str, Any]) -> list[Stale]:
    wrong = tx.rows(queries.wrong, parameters)
    stale = [Stale(*row) for row in wrong]
    extra = tx.rows(queries.without_inventory, parameters)
    stale.extend(Stale(provider, class_id, used, None) for provider, class_id, used in extra)
    return stale


def _write(tx: Tx, stale: Sequence[Stale]) -> None:
    """Write the computed usages where the stored ones have not changed."""
    correct = [row for row in stale if row.counted is not None and row.remembered is not None]
    missing = [row for row in stale if row.remembered is None]
    forget = [row for row in stale if row.counted is None]
    if correct:
        tx.change(_CORRECT, [{**_as_remembered(row), "counted": row.counted} for row in correct])
    tx.insert_missing(berth_usages, [_row(row) for row in missing])
    if forget:
        tx.change(_FORGET, [_as_remembered(row) for row in forget])
    tx.touched.update(row.provider for row in stale)


def _as_remembered(row: Stale) -> dict[str, int | None]:
    return {"provider": row.provider, "class": row.class_id, "remembered": row.remembered}


def _row(row: Stale) -> dict[str, int | None]:
    return {
        "resource_provider_id": row.provider,
        "resource_class_id": row.class_id,
        "used": row.counted,
    }
