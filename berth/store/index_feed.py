# SPDX-License-Identifier: Apache-2.0
"""What the index reads: the writers' clock, the journal, and the rows of whole trees.

Every function takes a read transaction. The clock, the journal and the rows must be read in one of
them, in this order: then a provider that changes in between is either in the rows already or in the
journal of the next refresh.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Integer,
    Select,
    and_,
    bindparam,
    cast,
    func,
    select,
)

from berth.model.ids import AggregateId, ClassId, ProviderId, TraitId
from berth.store.engine import journal
from berth.store.engine.prepared import Parameters
from berth.store.engine.tables import (
    allocations,
    berth_journal,
    berth_usages,
    berth_writer,
    inventories,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from berth.store.engine.transaction import Tx

#: In the journal: not a provider, but the definitions of traits or resource classes changed.
NAMES_CHANGED: Final = ProviderId(journal.NAMES)

#: No root has a larger id.
_NO_ROOT_BEYOND: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Portions:
    """How much is read at a time; tests set it to a few, so that they cross its bounds."""

    #: Values in one IN list; engines limit the number of parameters of a statement.
    in_list_max: int = 500
    #: Providers in one part of a full load, roughly: enough for array operations, and the rows of
    #: a part are all that a load holds in memory besides its result.
    part_providers: int = 16384


USUAL: Final = Portions()


class WriterHead(NamedTuple):
    """How far a writer has come, and up to where its journal has been trimmed away."""

    seq: int
    trimmed_seq: int


class Changes(NamedTuple):
    """What the journal names: each provider once.

    Attributes:
        wholly: providers of which anything may have changed.
        usage_only: providers of which nothing changed but what is used of them.
        names: whether definitions of traits or resource classes changed.
    """

    wholly: set[ProviderId]
    usage_only: set[ProviderId]
    names: bool


class Names(NamedTuple):
    """The deployment's resource classes and traits: name -> id."""

    classes: dict[str, ClassId]
    traits: dict[str, TraitId]


class FleetRows(NamedTuple):
    """The rows of some whole trees, unordered.

    Attributes:
        providers: (id, uuid, parent id or None, root id).
        inventories: (provider id, class id, total - reserved, allocation_ratio, used, min_unit,
            max_unit, step_size).
        traits: (provider id, trait id).
        aggregates: (provider id, aggregate id).
    """

    providers: list[tuple[ProviderId, str, ProviderId | None, ProviderId]]
    inventories: list[tuple[ProviderId, ClassId, int, float, int, int, int, int]]
    traits: list[tuple[ProviderId, TraitId]]
    aggregates: list[tuple[ProviderId, AggregateId]]


_HEADS: Final = select(berth_writer.c.id, berth_writer.c.seq, berth_writer.c.trimmed_seq)
#: PERF grouped by the database: of an hour of claims on a few providers one row for each provider
#: comes back, not one for each claim. Two million notes took 280 MB and two seconds in Python.
_NOTED: Final = (
    select(berth_journal.c.provider_id, func.min(cast(berth_journal.c.usage_only, Integer)))
    .where(
        berth_journal.c.writer_id == bindparam("writer"), berth_journal.c.seq > bindparam("applied")
    )
    .group_by(berth_journal.c.provider_id)
)
_USAGES: Final = select(
    berth_usages.c.resource_provider_id, berth_usages.c.resource_class_id, berth_usages.c.used
).where(berth_usages.c.resource_provider_id.in_(bindparam("providers", expanding=True)))


class _TreeQueries(NamedTuple):
    """What fetches the rows of whole trees: see `FleetRows`."""

    providers: Select[Any]
    inventories: Select[Any]
    traits: Select[Any]
    aggregates: Select[Any]


def _tree_queries(trees: ColumnElement[bool]) -> _TreeQueries:
    """Queries for the trees of the roots that meet a condition on `resource_providers`."""
    rp, inv, usage = resource_providers.c, inventories.c, berth_usages.c
    having, member = resource_provider_traits.c, resource_provider_aggregates.c
    return _TreeQueries(
        select(rp.id, rp.uuid, rp.parent_provider_id, rp.root_provider_id).where(trees),
        select(
            inv.resource_provider_id,
            inv.resource_class_id,
            inv.total - inv.reserved,
            inv.allocation_ratio,
            func.coalesce(usage.used, 0),
            inv.min_unit,
            inv.max_unit,
            inv.step_size,
        )
        .select_from(
            resource_providers.join(inventories, inv.resource_provider_id == rp.id).outerjoin(
                berth_usages,
                and_(
                    usage.resource_provider_id == inv.resource_provider_id,
                    usage.resource_class_id == inv.resource_class_id,
                ),
            )
        )
        .where(trees),
        select(having.resource_provider_id, having.trait_id)
        .select_from(
            resource_providers.join(resource_provider_traits, having.resource_provider_id == rp.id)
        )
        .where(trees),
        select(member.resource_provider_id, member.aggregate_id)
        .select_from(
            resource_providers.join(
                resource_provider_aggregates, member.resource_provider_id == rp.id
            )
        )
        .where(trees),
    )


_root: Final = resource_providers.c.root_provider_id
_OF_ROOTS: Final = _tree_queries(_root.in_(bindparam("roots", expanding=True)))
_OF_ROOT_RANGE: Final = _tree_queries(
    and_(_root > bindparam("after"), _root <= bindparam("upto", type_=BigInteger))
)
_LAST_ROOT_OF_PART: Final = (
    select(_root)
    .where(_root > bindparam("after"))
    .order_by(_root)
    .limit(1)
    .offset(bindparam("skipped", type_=BigInteger))
)


def writer_heads(tx: Tx) -> dict[int, WriterHead]:
    """All writers; one query over a table with a row for each process that wrote of late."""
    return {row[0]: WriterHead(row[1], row[2]) for row in tx.rows(_HEADS, {})}


def journal_since(tx: Tx, applied: Mapping[int, int]) -> Changes:
    """What writers noted after the seq given for each; a query for each of them."""
    wholly: set[ProviderId] = set()
    reused: set[ProviderId] = set()
    for writer, seq in applied.items():
        for provider, usage_only in tx.rows(_NOTED, {"writer": writer, "applied": seq}):
            (reused if usage_only else wholly).add(provider)
    names_changed = NAMES_CHANGED in wholly
    wholly.discard(NAMES_CHANGED)
    return Changes(wholly, reused - wholly, names_changed)


def usages_of(
    tx: Tx, providers: Collection[ProviderId], portions: Portions = USUAL
) -> dict[ProviderId, dict[ClassId, int]]:
    """provider -> class -> what is used of it, of those of some providers that have inventory."""
    usages: dict[ProviderId, dict[ClassId, int]] = {}
    for chunk in _chunks(list(providers), portions):
        for provider, class_id, used in tx.rows(_USAGES, {"providers": chunk}):
            usages.setdefault(provider, {})[class_id] = used
    return usages


def names(tx: Tx) -> Names:
    """All resource classes and traits."""
    return Names(
        dict(_pairs(tx, select(resource_classes.c.name, resource_classes.c.id))),
        dict(_pairs(tx, select(traits.c.name, traits.c.id))),
    )


def roots_of(
    tx: Tx, providers: Collection[ProviderId], portions: Portions = USUAL
) -> set[ProviderId]:
    """The roots of those of some providers that exist."""
    rp = resource_providers.c
    return {
        root
        for part in _parts(rp.id, providers, portions)
        for root in tx.connection.execute(select(rp.root_provider_id).where(*part)).scalars()
    }


def fleet_rows(tx: Tx, roots: Collection[ProviderId], portions: Portions = USUAL) -> FleetRows:
    """The trees of some roots; four queries for each portion of them."""
    rows = FleetRows([], [], [], [])
    for chunk in _chunks(sorted(roots), portions):
        part = _tree_rows(tx, _OF_ROOTS, {"roots": chunk})
        rows.providers.extend(part.providers)
        rows.inventories.extend(part.inventories)
        rows.traits.extend(part.traits)
        rows.aggregates.extend(part.aggregates)
    return rows


def fleet_parts(tx: Tx, portions: Portions = USUAL) -> Iterator[FleetRows]:
    """All trees, some thousand providers at a time; five queries for each part."""
    after, more = -1, True
    while more:
        found = tx.rows(
            _LAST_ROOT_OF_PART, {"after": after, "skipped": portions.part_providers - 1}
        )
        upto = found[0][0] if found else _NO_ROOT_BEYOND
        yield _tree_rows(tx, _OF_ROOT_RANGE, {"after": after, "upto": upto})
        after, more = upto, bool(found)


def _tree_rows(tx: Tx, queries: _TreeQueries, parameters: Parameters) -> FleetRows:
    return FleetRows._make(tx.rows(query, parameters) for query in queries)


def used_amounts(tx: Tx) -> dict[tuple[ProviderId, ClassId], int]:
    """(provider, class) -> the sum of all allocations: computed, not remembered."""
    held = allocations.c
    rows = tx.connection.execute(
        select(held.resource_provider_id, held.resource_class_id, func.sum(held.used)).group_by(
            held.resource_provider_id, held.resource_class_id
        )
    )
    return {(provider, class_id): int(used) for provider, class_id, used in rows}


def _pairs(tx: Tx, statement: Select[Any]) -> Iterator[tuple[Any, Any]]:
    return (tuple(row) for row in tx.connection.execute(statement))


def _parts(
    column: Column[int], wanted: Collection[int] | None, portions: Portions
) -> Iterator[tuple[ColumnElement[bool], ...]]:
    """WHERE clauses that together hold a column to some values: a single empty one for "all"."""
    if wanted is None:
        yield ()
        return
    for chunk in _chunks(sorted(wanted), portions):
        yield (column.in_(chunk),)


def _chunks(values: Sequence[Any], portions: Portions) -> Iterator[list[Any]]:
    pending = iter(values)
    while chunk := list(islice(pending, portions.in_list_max)):
        yield chunk
