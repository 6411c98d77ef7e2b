# SPDX-License-Identifier: Apache-2.0
"""What the index reads: the writers' clock, the journal, and the rows of whole trees.

Every function takes a read transaction. The clock, the journal and the rows must be read in one of
them, in this order: then a provider that changes in between is either in the rows already or in the
journal of the next refresh.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import Column, ColumnElement, Select, and_, func, or_, select

from berth.model.ids import AggregateId, ClassId, ProviderId, TraitId
from berth.store import journal
from berth.store.database import Tx
from berth.store.tables import (
    allocations,
    berth_journal,
    berth_usages,
    berth_writer,
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)

#: In the journal: not a provider, but the definitions of traits or resource classes changed.
NAMES_CHANGED: Final = ProviderId(journal.NAMES)

#: Values in one IN list; engines limit the number of parameters of a statement.
_IN_LIST_MAX: Final = 500


class WriterHead(NamedTuple):
    """How far a writer has come, and up to where its journal has been trimmed away."""

    seq: int
    trimmed_seq: int


class Names(NamedTuple):
    """The deployment's resource classes and traits: name -> id."""

    classes: dict[str, ClassId]
    traits: dict[str, TraitId]


class FleetRows(NamedTuple):
    """The rows of some whole trees, unordered.

    Attributes:
        providers: (id, uuid, parent id or None, root id).
        inventories: (provider id, class id, capacity, used, min_unit, max_unit, step_size).
        traits: (provider id, trait id).
        aggregates: (provider id, aggregate id).
    """

    providers: list[tuple[ProviderId, str, ProviderId | None, ProviderId]]
    inventories: list[tuple[ProviderId, ClassId, float, int, int, int, int]]
    traits: list[tuple[ProviderId, TraitId]]
    aggregates: list[tuple[ProviderId, AggregateId]]


def writer_heads(tx: Tx) -> dict[int, WriterHead]:
    """All writers; one query over a table with a row for each process that wrote of late."""
    writer = berth_writer.c
    rows = tx.connection.execute(select(writer.id, writer.seq, writer.trimmed_seq))
    return {row[0]: WriterHead(row[1], row[2]) for row in rows}


def journal_since(tx: Tx, applied: Mapping[int, int]) -> set[ProviderId]:
    """The provider ids (and `NAMES_CHANGED`) that writers noted after the seq given for each."""
    noted = berth_journal.c
    changed: set[ProviderId] = set()
    for chunk in _chunks(list(applied.items())):
        since = or_(*(and_(noted.writer_id == writer, noted.seq > seq) for writer, seq in chunk))
        changed.update(tx.connection.execute(select(noted.provider_id).where(since)).scalars())
    return changed


def names(tx: Tx) -> Names:
    """All resource classes and traits."""
    return Names(
        dict(_pairs(tx, select(resource_classes.c.name, resource_classes.c.id))),
        dict(_pairs(tx, select(traits.c.name, traits.c.id))),
    )


def aggregate_ids(tx: Tx, wanted: Collection[AggregateId] | None) -> dict[str, AggregateId]:
    """uuid -> id, of the aggregates with some ids, or of all."""
    statement = select(placement_aggregates.c.uuid, placement_aggregates.c.id)
    return {
        uuid: number
        for part in _parts(placement_aggregates.c.id, wanted)
        for uuid, number in _pairs(tx, statement.where(*part))
    }


def roots_of(tx: Tx, providers: Collection[ProviderId]) -> set[ProviderId]:
    """The roots of those of some providers that exist."""
    rp = resource_providers.c
    return {
        root
        for part in _parts(rp.id, providers)
        for root in tx.connection.execute(select(rp.root_provider_id).where(*part)).scalars()
    }


def fleet_rows(tx: Tx, roots: Collection[ProviderId] | None) -> FleetRows:
    """The trees of some roots, or all trees; four queries for each 500 roots, or four for
    everything."""
    rp, inv, used = resource_providers.c, inventories.c, berth_usages.c
    rows = FleetRows([], [], [], [])
    for part in _parts(rp.root_provider_id, roots):
        rows.providers.extend(
            tuple(row)
            for row in tx.connection.execute(
                select(rp.id, rp.uuid, rp.parent_provider_id, rp.root_provider_id).where(
                    rp.root_provider_id.is_not(None), *part
                )
            )
        )
        amounts = tx.connection.execute(
            _of_trees(
                select(
                    inv.resource_provider_id,
                    inv.resource_class_id,
                    inv.total - inv.reserved,
                    inv.allocation_ratio,
                    used.used,
                    inv.min_unit,
                    inv.max_unit,
                    inv.step_size,
                ).select_from(
                    inventories.outerjoin(
                        berth_usages,
                        and_(
                            used.resource_provider_id == inv.resource_provider_id,
                            used.resource_class_id == inv.resource_class_id,
                        ),
                    )
                ),
                inv.resource_provider_id,
                part,
            )
        )
        rows.inventories.extend(
            (provider, class_id, float(math.trunc(net * ratio)), taken or 0, least, most, step)
            for provider, class_id, net, ratio, taken, least, most, step in amounts
        )
        having = resource_provider_traits.c
        rows.traits.extend(
            _pairs(
                tx,
                _of_trees(
                    select(having.resource_provider_id, having.trait_id),
                    having.resource_provider_id,
                    part,
                ),
            )
        )
        member = resource_provider_aggregates.c
        rows.aggregates.extend(
            _pairs(
                tx,
                _of_trees(
                    select(member.resource_provider_id, member.aggregate_id),
                    member.resource_provider_id,
                    part,
                ),
            )
        )
    return rows


def used_amounts(tx: Tx) -> dict[tuple[ProviderId, ClassId], int]:
    """(provider, class) -> the sum of all allocations: computed, not remembered."""
    held = allocations.c
    rows = tx.connection.execute(
        select(held.resource_provider_id, held.resource_class_id, func.sum(held.used)).group_by(
            held.resource_provider_id, held.resource_class_id
        )
    )
    return {(provider, class_id): int(used) for provider, class_id, used in rows}


def _of_trees(
    statement: Select[Any], provider: Column[int], part: Sequence[ColumnElement[bool]]
) -> Select[Any]:
    """The statement, held to providers whose tree is in the part; as it is when the part is
    everything."""
    if not part:
        return statement
    return statement.join(resource_providers, resource_providers.c.id == provider).where(*part)


def _pairs(tx: Tx, statement: Select[Any]) -> Iterator[tuple[Any, Any]]:
    return (tuple(row) for row in tx.connection.execute(statement))


def _parts(
    column: Column[int], wanted: Collection[int] | None
) -> Iterator[tuple[ColumnElement[bool], ...]]:
    """WHERE clauses that together hold a column to some values: a single empty one for "all"."""
    if wanted is None:
        yield ()
        return
    for chunk in _chunks(sorted(wanted)):
        yield (column.in_(chunk),)


def _chunks(values: Sequence[Any]) -> Iterator[list[Any]]:
    pending = iter(values)
    while chunk := list(islice(pending, _IN_LIST_MAX)):
        yield chunk
