# SPDX-License-Identifier: Apache-2.0
"""Inventories, their allocations, and the usages.

A usage above the capacity is no fault: an inventory may shrink below its usage. Nor is a min_unit
above the max_unit, which the API accepts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    Row,
    Select,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
)

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
from berth.upkeep.integrity.fault import Key, left_alone, repairable
from berth.upkeep.integrity.words import class_of, provider_of, with_class, with_provider

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


def _sum_words(row: Row[Any]) -> str:
    if row.used is None:
        return f"{_place(row)}: there is an inventory but no sum of usage"
    return f"{_place(row)}: the sum of usage is {row.used}, but its allocations make {row.counted}"


def _correct_usages(tx: Tx, keys: Sequence[Key]) -> None:
    correct_usages(tx, {(key["provider"], key["class_id"]) for key in keys})


_SUMS: Final = repairable(
    _named(wrong_usages()),
    _sum_words,
    lambda row: f"set the sum of usage of {class_of(row)} on {provider_of(row)} to {row.counted}",
    _correct_usages,
)
_SUMS_OF_NOTHING: Final = repairable(
    _named(usages_without_inventory()),
    lambda row: f"{_place(row)}: there is a sum of usage but no inventory",
    lambda row: f"remove the sum of usage of {class_of(row)} on {provider_of(row)}",
    _correct_usages,
)


#: Another rule finds invalid generations.
_MOVED: Final = with_provider(
    select(_generation.label("generation"), _last_written.label("known")).select_from(
        _moved_providers
    ),
    _moved,
).where(_generation >= 0)


def _moved_words(row: Row[Any]) -> str:
    return (
        f"{provider_of(row)} is at generation {row.generation}, but berth left it at {row.known}: "
        f"another program has written it"
    )


def _recount(tx: Tx, keys: Sequence[Key]) -> None:
    recount_providers(tx, {key["provider"] for key in keys})


_MOVED_BY_OTHERS: Final = repairable(
    _MOVED,
    _moved_words,
    lambda row: f"count the usage of {provider_of(row)} again",
    _recount,
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


_OF_NO_PROVIDER: Final = repairable(
    _INVENTORIES.where(~_HAS_PROVIDER, ~_IS_HELD),
    lambda row: f"there is an inventory of {class_of(row)} on {provider_of(row)[:-1]}",
    lambda row: f"remove the inventory of {class_of(row)} on provider number {row.provider}",
    _remove_inventories,
)
_OF_NO_PROVIDER_HELD: Final = left_alone(
    _INVENTORIES.where(~_HAS_PROVIDER, _IS_HELD),
    lambda row: (
        f"there is an inventory of {class_of(row)} on {provider_of(row)} and it has allocations"
    ),
    _BY_HAND,
)
_OF_NO_CLASS: Final = left_alone(
    _INVENTORIES.where(~_HAS_CLASS),
    lambda row: f"{provider_of(row)} has an inventory of {class_of(row)[:-1]}",
    _BY_HAND,
)

#: Some capacity must remain. The API refuses all of these.
_IMPOSSIBLE: Final = or_(
    _inv.total < 1,
    _inv.reserved < 0,
    _inv.min_unit < 1,
    _inv.max_unit < 1,
    _inv.step_size < 1,
    (_inv.total - _inv.reserved) * _inv.allocation_ratio <= -1,
    # SQLite holds more, and servers may hold numbers that are infinite or none.
    _inv.allocation_ratio > ALLOCATION_RATIO_MAX,
    *(
        column > MAX_INT
        for column in (_inv.total, _inv.reserved, _inv.min_unit, _inv.max_unit, _inv.step_size)
    ),
)
_IMPOSSIBLE_INVENTORIES: Final = left_alone(
    _INVENTORIES.add_columns(
        *INVENTORY_COLUMNS,
    ).where(_IMPOSSIBLE),
    lambda row: (
        f"{_place(row)}: impossible inventory: total {row.total}, reserved {row.reserved}, "
        f"min_unit {row.min_unit}, max_unit {row.max_unit}, step_size {row.step_size}, "
        f"allocation_ratio {row.allocation_ratio:g}"
    ),
    "set the inventory again through the API",
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
        .outerjoin(
            inventories,
            same_inventory(inventories, pairs),
        )
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


_ALLOCATIONS_OF_NOTHING: Final = left_alone(
    _of_no_inventory(),
    lambda row: (
        f"{_place(row)}: there are allocations but no inventory "
        f"({row.number}, one of them of consumer {row.consumer})"
    ),
    "give the provider this inventory again, or delete the allocations of these consumers through "
    "the API; if the provider does not exist, restore a backup or remove these rows by hand",
)
_REPEATED_ALLOCATIONS: Final = left_alone(
    _repeated(),
    lambda row: (
        f"consumer {row.consumer} has {row.number} allocations of {class_of(row)} on "
        f"{provider_of(row)}, where there may be one"
    ),
    "they count together; set the allocations of this consumer again through the API",
)
_EMPTY_ALLOCATIONS: Final = left_alone(
    with_class(
        with_provider(
            select(_allocation.used, _allocation.consumer_id.label("consumer")),
            _allocation.resource_provider_id,
        ),
        _allocation.resource_class_id,
    ).where(_allocation.used < 1),
    lambda row: (
        f"consumer {row.consumer} has an allocation of {row.used} {class_of(row)} on "
        f"{provider_of(row)}"
    ),
    "set the allocations of this consumer again through the API",
)


def _place(row: Row[Any]) -> str:
    return f"{provider_of(row).rstrip(',')}, {class_of(row).rstrip(',')}"


RULES: Final = (
    _SUMS,
    _SUMS_OF_NOTHING,
    _MOVED_BY_OTHERS,
    _OF_NO_PROVIDER,
    _OF_NO_PROVIDER_HELD,
    _OF_NO_CLASS,
    _IMPOSSIBLE_INVENTORIES,
    _ALLOCATIONS_OF_NOTHING,
    _REPEATED_ALLOCATIONS,
    _EMPTY_ALLOCATIONS,
)
