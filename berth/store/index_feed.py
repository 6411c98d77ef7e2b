# SPDX-License-Identifier: Apache-2.0
"""Queries for the index: the writers' clock, the journal, and the rows of whole trees.

Every function takes a read transaction. Read the clock, the journal and the rows in a single one,
in this order: then a change in between is either in the rows already or in the journal of the next
refresh.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Float,
    Integer,
    Select,
    String,
    Table,
    and_,
    bindparam,
    case,
    cast,
    func,
    or_,
    select,
)

from berth.model.ids import AggregateId, ClassId, ProviderId, TraitId
from berth.model.named import DrainId, NamedRecords
from berth.model.standard import STANDARD_CLASS_IDS
from berth.store.engine import journal
from berth.store.engine.expressions import epoch_seconds, joined, lines, stored_ratio
from berth.store.engine.prepared import Parameters
from berth.store.engine.tables import (
    NAMED_BY_DRAIN,
    berth_drained,
    berth_journal,
    berth_usages,
    berth_writer,
    inventories,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    same_inventory,
    traits,
)
from berth.store.engine.transaction import Tx
from berth.store.identity import read_identity
from berth.store.named import all_records

#: Instead of a time, if the database has none.
NO_TIME: Final = -1

#: In a text of numbers (`FleetPart`), instead of a parent, if a provider has none.
NO_PARENT_ID: Final = -(2**63)

#: In such a text, `allocation_ratio` is a whole number of these parts of one.
RATIO_PARTS: Final = 1e9

#: In the journal, instead of a provider: trait or resource class definitions, spellings or labels
#: of aggregates, flavors, drains, or the database's identity, changed.
NAMES_CHANGED: Final = ProviderId(journal.NAMES)

#: No root has a larger id.
_NO_ROOT_BEYOND: Final = 2**63 - 1


#: Providers in one part of a full load, roughly: enough for array operations. Besides its result, a
#: load keeps only the rows of one part in memory. Tests use small values, to cross the boundaries.
PART_PROVIDERS: Final = 16384


class WriterHead(NamedTuple):
    """A writer's count of commits, and the count up to which its journal was trimmed."""

    seq: int
    trimmed_seq: int


class Changes(NamedTuple):
    """The changes in the journal: each provider once.

    Attributes:
        wholly: providers of which anything may have changed.
        usage_only: providers of which only usages and generations changed.
        names: whether definitions of traits or resource classes, spellings or labels of
            aggregates, flavors, drains, or the database's identity, changed.
    """

    wholly: set[ProviderId]
    usage_only: set[ProviderId]
    names: bool


class Names(NamedTuple):
    """The deployment's resource classes, traits and named records, and what names the database
    itself.

    Attributes:
        classes, traits: name -> id.
        trait_times: when each trait was created, or changed since.
        identity: of the database.
    """

    classes: dict[str, ClassId]
    traits: dict[str, TraitId]
    trait_times: dict[TraitId, int]
    records: NamedRecords
    identity: bytes


class ProviderState(NamedTuple):
    """What a claim changes of a provider.

    Attributes:
        used: class -> usage.
    """

    generation: int
    modified: int
    used: dict[ClassId, int]


class FleetRows(NamedTuple):
    """The rows of some whole trees, unordered. Times are seconds since 1970, or `NO_TIME`.

    Attributes:
        providers: (id, uuid, parent id or None, root id, name, generation, time of the last
            change).
        inventories: (provider id, class id, total, reserved, allocation_ratio, used, min_unit,
            max_unit, step_size, time of the last change).
        traits: (provider id, trait id).
        aggregates: (provider id, aggregate id).
        drained: (provider id, drain id).
    """

    providers: list[tuple[ProviderId, str, ProviderId | None, ProviderId, str | None, int, int]]
    inventories: list[tuple[ProviderId, ClassId, int, int, float, int, int, int, int, int]]
    traits: list[tuple[ProviderId, TraitId]]
    aggregates: list[tuple[ProviderId, AggregateId]]
    drained: list[tuple[ProviderId, DrainId]]


class FleetPart(NamedTuple):
    """Some whole trees.

    Attributes:
        texts: the rows with a single one of each kind instead: their number, and for each column a
            text of all values, a comma behind each number and a newline behind each text. A text
            has another number of them, or another end, if it cannot hold one of the values, and is
            None without rows.
            None if there are only `rows`.
        rows: reads the rows, within the same transaction.
    """

    # PERF bench, start: with texts, a load takes half of the time.
    texts: FleetRows | None
    rows: Callable[[], FleetRows]


_HEADS: Final = select(berth_writer.c.id, berth_writer.c.seq, berth_writer.c.trimmed_seq)
#: PERF grouped by the database: for an hour of claims on a few providers it returns one row for
#: each provider, not one for each claim. Two million rows took 280 MB and two seconds in Python.
_NOTED: Final = (
    select(berth_journal.c.provider_id, func.min(cast(berth_journal.c.usage_only, Integer)))
    .where(
        berth_journal.c.writer_id == bindparam("writer"), berth_journal.c.seq > bindparam("applied")
    )
    .group_by(berth_journal.c.provider_id)
)


def _modified(table: Table) -> ColumnElement[int]:
    """The time of a row's last change."""
    return func.coalesce(
        epoch_seconds(func.coalesce(table.c.updated_at, table.c.created_at)), NO_TIME
    )


_GENERATION: Final = func.coalesce(resource_providers.c.generation, 0)
_STATES: Final = (
    select(
        resource_providers.c.id,
        _GENERATION,
        _modified(resource_providers),
        berth_usages.c.resource_class_id,
        berth_usages.c.used,
    )
    .select_from(
        resource_providers.outerjoin(
            berth_usages, berth_usages.c.resource_provider_id == resource_providers.c.id
        )
    )
    .where(resource_providers.c.id.in_(bindparam("providers", expanding=True)))
)
_CLASSES: Final = select(resource_classes.c.name, resource_classes.c.id)
_TRAITS: Final = select(traits.c.name, traits.c.id, _modified(traits))


class _TreeQueries(NamedTuple):
    """Queries for the rows of whole trees: see `FleetRows`."""

    providers: Select[Any]
    inventories: Select[Any]
    traits: Select[Any]
    aggregates: Select[Any]
    drained: Select[Any]


def _tree_queries(trees: ColumnElement[bool]) -> _TreeQueries:
    """Queries for the trees of the roots that meet a condition on `resource_providers`."""
    rp, inv, usage = resource_providers.c, inventories.c, berth_usages.c
    having, member = resource_provider_traits.c, resource_provider_aggregates.c
    return _TreeQueries(
        select(
            rp.id,
            rp.uuid,
            rp.parent_provider_id,
            rp.root_provider_id,
            rp.name,
            _GENERATION,
            _modified(resource_providers),
        ).where(trees),
        select(
            inv.resource_provider_id,
            inv.resource_class_id,
            inv.total,
            inv.reserved,
            inv.allocation_ratio,
            func.coalesce(usage.used, 0),
            inv.min_unit,
            inv.max_unit,
            inv.step_size,
            _modified(inventories),
        )
        .select_from(
            resource_providers.join(inventories, inv.resource_provider_id == rp.id).outerjoin(
                berth_usages,
                same_inventory(berth_usages, inventories),
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
        select(berth_drained.c.provider_id, berth_drained.c.drain_id)
        .select_from(resource_providers.join(berth_drained, NAMED_BY_DRAIN))
        .where(trees),
    )


def _texts(query: Select[Any]) -> Select[Any]:
    """A query for the texts of another one's rows: see `FleetPart`."""
    texts: list[Any] = [func.count(), *map(_text, query.selected_columns)]
    return query.with_only_columns(*texts)


def _text(column: Any) -> ColumnElement[str]:
    if isinstance(column.type, String):
        # NULL is two values, so the number of values is wrong.
        return lines(func.coalesce(column, "\n"))
    if column is inventories.c.allocation_ratio:
        ratio = stored_ratio(column)
        parts = func.round(ratio * RATIO_PARTS, type_=Float)
        # NULL unless a reader, who divides too, gets the same ratio.
        is_exact = and_(ratio.between(0, 1e6), parts / RATIO_PARTS == ratio)
        return joined(case((is_exact, cast(parts, BigInteger))))
    if column is resource_providers.c.parent_provider_id:
        return joined(func.coalesce(column, NO_PARENT_ID))
    return joined(column)


_root: Final = resource_providers.c.root_provider_id
_ROOTS_OF: Final = select(_root).where(
    resource_providers.c.id.in_(bindparam("providers", expanding=True))
)
_OF_ROOTS: Final = _tree_queries(_root.in_(bindparam("roots", expanding=True)))
_OF_ROOT_RANGE: Final = _tree_queries(
    and_(_root > bindparam("after"), _root <= bindparam("upto", type_=BigInteger))
)
_TEXTS_OF_ROOT_RANGE: Final = _TreeQueries._make(
    [*map(_texts, _OF_ROOT_RANGE[:4]), _OF_ROOT_RANGE.drained]
)
_OF_NO_ROOT: Final = _tree_queries(or_(_root.is_(None), _root < 0)).providers
_LAST_ROOT_OF_PART: Final = (
    select(_root)
    .where(_root > bindparam("after"))
    .order_by(_root)
    .limit(1)
    .offset(bindparam("skipped", type_=BigInteger))
)


def writer_heads(tx: Tx) -> dict[int, WriterHead]:
    """All writers; one query over a table with a row for each recent writer process."""
    return _heads_of(tx.rows(_HEADS, {}))


def heads_in(clock: str) -> dict[int, WriterHead]:
    """The writers in a text of the clock: see `Stamp`."""
    return _heads_of([*map(int, writer.split())] for writer in clock.split(","))


def _heads_of(rows: Iterable[Sequence[int]]) -> dict[int, WriterHead]:
    return {row[0]: WriterHead(row[1], row[2]) for row in rows if min(row[:2]) >= 0}


def journal_since(tx: Tx, applied: Mapping[int, int]) -> Changes:
    """The changes that each writer noted after the given seq; one query for each writer."""
    wholly: set[ProviderId] = set()
    reused: set[ProviderId] = set()
    for writer, seq in applied.items():
        for provider, usage_only in tx.rows(_NOTED, {"writer": writer, "applied": seq}):
            (reused if usage_only else wholly).add(provider)
    names_changed = NAMES_CHANGED in wholly
    wholly.discard(NAMES_CHANGED)
    return Changes(wholly, reused - wholly, names_changed)


def states_of(tx: Tx, providers: Collection[ProviderId]) -> dict[ProviderId, ProviderState]:
    """What a claim changes, for those of the providers that exist."""
    states: dict[ProviderId, ProviderState] = {}
    for chunk in tx.chunks(providers):
        for provider, generation, modified, class_id, used in tx.rows(
            _STATES, {"providers": chunk}
        ):
            state = states.setdefault(provider, ProviderState(generation, modified, {}))
            if class_id is not None:
                state.used[class_id] = used
    return states


def names(tx: Tx) -> Names:
    """All resource classes, traits and named records, and the database's identity."""
    rows = tx.rows(_TRAITS, {})
    return Names(
        # Standard classes always exist, with the same ids in every database.
        {**dict(tx.rows(_CLASSES, {})), **STANDARD_CLASS_IDS},
        {name: number for name, number, _ in rows},
        {number: modified for _, number, modified in rows},
        all_records(tx),
        read_identity(tx),
    )


def roots_of(tx: Tx, providers: Collection[ProviderId]) -> set[ProviderId]:
    """The roots of those of the providers that exist."""
    return {
        root
        for chunk in tx.chunks(sorted(providers))
        for (root,) in tx.rows(_ROOTS_OF, {"providers": chunk})
        if root is not None
    }


def fleet_rows(tx: Tx, roots: Collection[ProviderId], *, with_drains: bool = True) -> FleetRows:
    """The trees of some roots; four queries for each chunk of roots, and one for drains.

    Args:
        with_drains: False if there are no drains.
    """
    rows: list[list[Any]] = [[] for _ in FleetRows._fields]
    for chunk in tx.chunks(sorted(roots)):
        part: Sequence[list[Any]] = _tree_rows(
            tx, _OF_ROOTS, {"roots": chunk}, with_drains=with_drains
        )
        for of_all, of_part in zip(rows, part, strict=True):
            of_all.extend(of_part)
    return FleetRows._make(rows)


def fleet_parts(
    tx: Tx, part_providers: int = PART_PROVIDERS, *, with_drains: bool = True
) -> Iterator[FleetPart]:
    """All trees, in parts of some thousand providers; five queries for each part, and one for
    drains. The first part are the providers that have no root.

    Args:
        with_drains: False if there are no drains.
    """
    yield FleetPart(None, lambda: FleetRows(tx.rows(_OF_NO_ROOT, {}), [], [], [], []))
    after, more = -1, True
    while more:
        last_roots = tx.rows(_LAST_ROOT_OF_PART, {"after": after, "skipped": part_providers - 1})
        upto = last_roots[0][0] if last_roots else _NO_ROOT_BEYOND
        trees = {"after": after, "upto": upto}
        read = partial(_tree_rows, tx, parameters=trees, with_drains=with_drains)
        yield FleetPart(read(_TEXTS_OF_ROOT_RANGE), partial(read, _OF_ROOT_RANGE))
        after, more = upto, bool(last_roots)


def _tree_rows(
    tx: Tx, queries: _TreeQueries, parameters: Parameters, *, with_drains: bool
) -> FleetRows:
    *always, drained = queries
    rows = [tx.rows(query, parameters) for query in always]
    return FleetRows._make([*rows, tx.rows(drained, parameters) if with_drains else []])
