# SPDX-License-Identifier: Apache-2.0
"""Inventories, their allocations, and the usages.

A usage above the capacity is no fault: an inventory may shrink below its usage. Nor is a min_unit
above the max_unit, which the API accepts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Row, Select, bindparam, delete, exists, func, or_, select

from berth.model.inventory import ALLOCATION_RATIO_MAX, MAX_INT
from berth.store.engine.tables import (
    allocations,
    berth_usages,
    inventories,
    resource_classes,
    resource_providers,
    same_inventory,
)
from berth.store.engine.transaction import Tx
from berth.store.inventories import INVENTORY_COLUMNS
from berth.store.usage_counts import (
    correct_usages,
    providers_moved,
    recount_providers,
    usages_without_inventory,
    wrong_usages,
)
from berth.upkeep.integrity.fault import Key, place_of, rule, with_class, with_provider

_inv, _allocation, _usage = inventories.c, allocations.c, berth_usages.c

_BY_HAND: Final = (
    "the database is damaged, or another program wrote to it: restore a backup, or remove these "
    "rows by hand"
)


_moved_providers: Final = providers_moved().subquery("moved")
_moved, _generation, _last_written = _moved_providers.c


# --- Sums of usage -------------------------------------------------------------------------------


def _named(query: Select[Any]) -> Select[Any]:
    """A query's rows, with the names of the provider and the class in their first two columns."""
    rows = query.subquery()
    provider, class_id, *others = rows.c
    named = with_provider(select(*others).select_from(rows), provider)
    return with_class(named, class_id)


def _wrong_sum(row: Row[Any]) -> str:
    if row.used is None:
        return f"{place_of(row)}: there is an inventory but no sum of usage"
    return (
        f"{place_of(row)}: the sum of usage is {row.used}, but its allocations make {row.counted}"
    )


def _correct_usages(tx: Tx, keys: Sequence[Key]) -> None:
    correct_usages(tx, {(key["provider"], key["class_id"]) for key in keys})


def _recount(tx: Tx, keys: Sequence[Key]) -> None:
    recount_providers(tx, {key["provider"] for key in keys})


_OF_USAGES: Final = (
    rule(
        _named(wrong_usages()),
        _wrong_sum,
        action="set the sum of usage of {class_words} on {provider_words} to {counted}",
        repair=_correct_usages,
    ),
    rule(
        _named(usages_without_inventory()),
        "{place}: there is a sum of usage but no inventory",
        action="remove the sum of usage of {class_words} on {provider_words}",
        repair=_correct_usages,
    ),
    rule(
        # Another rule finds invalid generations.
        with_provider(
            select(_generation, _last_written).select_from(_moved_providers), _moved
        ).where(_generation >= 0),
        "{provider_words} is at generation {generation}, but berth left it at {known}: "
        "another program has written it",
        action="count the usage of {provider_words} again",
        repair=_recount,
    ),
)


# --- Inventories ---------------------------------------------------------------------------------

_INVENTORIES: Final = with_class(
    with_provider(select(inventories.c.id.label("row")), _inv.resource_provider_id),
    _inv.resource_class_id,
)
_HAS_PROVIDER: Final = exists().where(resource_providers.c.id == _inv.resource_provider_id)
_HAS_CLASS: Final = exists().where(resource_classes.c.id == _inv.resource_class_id)
_IS_HELD: Final = exists().where(same_inventory(allocations, inventories))


def _remove_inventories(tx: Tx, keys: Sequence[Key]) -> None:
    tx.connection.execute(
        delete(inventories).where(_inv.id == bindparam("row"), ~_HAS_PROVIDER, ~_IS_HELD),
        [{"row": key["row"]} for key in keys],
    )
    correct_usages(tx, {(key["provider"], key["class_id"]) for key in keys})


#: The API refuses all of these. A `reserved` above `total` is not among them: a reshape may set it.
_IMPOSSIBLE: Final = or_(
    _inv.total < 1,
    _inv.reserved < 0,
    _inv.min_unit < 1,
    _inv.max_unit < 1,
    _inv.step_size < 1,
    # SQLite holds more, and servers may hold numbers that are infinite or none.
    _inv.allocation_ratio > ALLOCATION_RATIO_MAX,
    _inv.allocation_ratio < -ALLOCATION_RATIO_MAX,
    *(
        column > MAX_INT
        for column in (_inv.total, _inv.reserved, _inv.min_unit, _inv.max_unit, _inv.step_size)
    ),
)
_OF_INVENTORIES: Final = (
    rule(
        _INVENTORIES.where(~_HAS_PROVIDER, ~_IS_HELD),
        "there is an inventory of {class_words} on {provider_words}",
        action="remove the inventory of {class_words} on provider number {provider}",
        repair=_remove_inventories,
    ),
    rule(
        _INVENTORIES.where(~_HAS_PROVIDER, _IS_HELD),
        "there is an inventory of {class_words} on {provider_words} and it has allocations",
        advice=_BY_HAND,
    ),
    rule(
        _INVENTORIES.where(~_HAS_CLASS),
        "{provider_words} has an inventory of {class_words}",
        advice=_BY_HAND,
    ),
    rule(
        _INVENTORIES.add_columns(*INVENTORY_COLUMNS).where(_IMPOSSIBLE),
        "{place}: impossible inventory: total {total}, reserved {reserved}, min_unit {min_unit}, "
        "max_unit {max_unit}, step_size {step_size}, allocation_ratio {allocation_ratio:g}",
        advice="set the inventory again through the API",
    ),
)


# --- Allocations ---------------------------------------------------------------------------------


def _of_no_inventory() -> Select[Any]:
    # Grouped first: of a million allocations, few pairs are faulty.
    pairs = (
        select(
            _allocation.resource_provider_id,
            _allocation.resource_class_id,
            func.count().label("number"),
            func.min(_allocation.consumer_id).label("consumer"),
        )
        .group_by(_allocation.resource_provider_id, _allocation.resource_class_id)
        .subquery("pairs")
    )
    return _named(
        select(pairs)
        .outerjoin(inventories, same_inventory(inventories, pairs))
        .where(_inv.id.is_(None))
    )


def _repeated() -> Select[Any]:
    return _named(
        select(
            _allocation.resource_provider_id,
            _allocation.resource_class_id,
            _allocation.consumer_id.label("consumer"),
            func.count().label("number"),
        )
        .group_by(
            _allocation.consumer_id, _allocation.resource_provider_id, _allocation.resource_class_id
        )
        .having(func.count() > 1)
    )


_OF_ALLOCATIONS: Final = (
    rule(
        _of_no_inventory(),
        "{place}: there are allocations but no inventory ({number}, one of them of consumer "
        "{consumer})",
        advice="give the provider this inventory again, or delete the allocations of these "
        "consumers through the API; if the provider does not exist, restore a backup or remove "
        "these rows by hand",
    ),
    rule(
        _repeated(),
        "consumer {consumer} has {number} allocations of {class_words} on {provider_words}, where "
        "there may be one",
        advice="they count together; set the allocations of this consumer again through the API",
    ),
    rule(
        with_class(
            with_provider(
                select(_allocation.used, _allocation.consumer_id.label("consumer")),
                _allocation.resource_provider_id,
            ),
            _allocation.resource_class_id,
        ).where(_allocation.used < 1),
        "consumer {consumer} has an allocation of {used} {class_words} on {provider_words}",
        advice="set the allocations of this consumer again through the API",
    ),
)

RULES: Final = (*_OF_USAGES, *_OF_INVENTORIES, *_OF_ALLOCATIONS)
