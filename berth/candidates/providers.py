# SPDX-License-Identifier: Apache-2.0
"""Which providers match the filters of a list: each by itself, with the masks of candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, cast

import numpy as np

from berth.candidates.conditions import ANYWHERE, all_of, fits
from berth.candidates.plan import Demand
from berth.candidates.resolve import class_id, membership_test, trait_test
from berth.index.block import Block, Ints
from berth.index.records import json_of
from berth.index.sets import Mask
from berth.index.shape import NodeType
from berth.index.snapshot import Location, Snapshot, packed
from berth.model.errors import InvalidInput
from berth.model.inventory import MAX_INT
from berth.model.provider import ProviderFilters

#: Different conditions of one query: each costs a pass over the fleet.
CONDITIONS_MAX: Final = 300

_NONE: Final = np.zeros(0, dtype=np.int64)


class _Span(NamedTuple):
    """Some consecutive rows of a block, and some of their nodes."""

    block_id: int
    block: Block
    rows: Ints
    #: Of shape (nodes, 1).
    nodes: Ints


def find_providers(snapshot: Snapshot, filters: ProviderFilters) -> Ints:
    """The providers that match all filters, as packed locations in the order of their creation.

    Raises:
        UnknownResourceClass: `filters.resources` names one.
        UnknownTraits: `filters.required` or `filters.forbidden` name some.
        InvalidInput: there are more than `CONDITIONS_MAX` filters.
    """
    if not _has_conditions(filters):
        spans = _spans(snapshot, filters)
        if spans is None:
            return snapshot.locations.ascending()
        return _in_order([(span, span.nodes, span.rows) for span in spans])
    demand = _demand_of(snapshot, filters)
    if demand is None:
        return _NONE
    spans = _spans(snapshot, filters)
    return _in_order(_passing(demand, _everywhere(snapshot) if spans is None else spans))


def _demand_of(snapshot: Snapshot, filters: ProviderFilters) -> Demand | None:
    """The conditions on a provider's amounts, traits and aggregates; None if nothing can match."""
    # COMPAT: of an unknown class and an unknown trait, the trait is told.
    required = tuple(dict.fromkeys(filters.required))
    traits = trait_test(snapshot, required, filters.forbidden)
    amounts = tuple((class_id(snapshot, name), each) for name, each in filters.resources.items())
    existing = snapshot.names.aggregate_ids.keys()
    if any(amount > MAX_INT for _, amount in amounts) or any(
        existing.isdisjoint(uuids) for uuids in filters.member_of
    ):
        return None
    own = (filters.name, filters.uuid, filters.in_tree)
    count = (
        sum(each is not None for each in own)
        + len(amounts)
        + len(required)
        + bool(filters.forbidden)
        + len(set(filters.member_of))
        + (not existing.isdisjoint(filters.not_member_of))
    )
    if count > CONDITIONS_MAX:
        raise InvalidInput(
            f"The query has {count} different conditions; at most {CONDITIONS_MAX} are possible"
        )
    return Demand(
        suffix="",
        query_id=0,
        amounts=amounts,
        traits=traits,
        membership=membership_test(
            snapshot,
            cast("tuple[frozenset[str], ...]", filters.member_of),
            cast("frozenset[str]", filters.not_member_of),
        ),
        places=ANYWHERE,
        unsuffixed=False,
    )


def _has_conditions(filters: ProviderFilters) -> bool:
    """Whether there are conditions on amounts, traits or aggregates."""
    return bool(
        filters.resources
        or filters.required
        or filters.forbidden
        or filters.member_of
        or filters.not_member_of
    )


def _spans(snapshot: Snapshot, filters: ProviderFilters) -> list[_Span] | None:
    """The tree or the provider that the filters name, if it exists; None if they name none."""
    named: list[Location | None] = []
    if filters.uuid is not None:
        named.append(snapshot.locate_uuid(filters.uuid))
    if filters.name is not None:
        named.append(snapshot.locate_name(json_of(filters.name)))
    if filters.in_tree is not None:
        places = [*named, snapshot.locate_uuid(filters.in_tree)]
    elif named:
        places = named
    else:
        return None
    existing = [place for place in places if place is not None]
    trees = {place[:2] for place in existing}
    if len(existing) < len(places) or len(trees) > 1 or len(set(named)) > 1:
        return []
    at = existing[0]
    block = snapshot.block(at.block_id)
    nodes = [at.node] if named else range(block.shape.size)
    return [_Span(at.block_id, block, np.array([at.row]), np.array(nodes)[:, None])]


def _everywhere(snapshot: Snapshot) -> Iterator[_Span]:
    for block_id, block in snapshot.occupied():
        yield _Span(block_id, block, np.arange(block.rows), np.arange(block.shape.size)[:, None])


def _passing(demand: Demand, spans: Iterable[_Span]) -> Iterator[tuple[_Span, Ints, Ints]]:
    """The providers of some spans that meet all conditions: nodes, and rows of each."""
    able: dict[NodeType, bool] = {}
    for span in spans:
        rows = slice(int(span.rows[0]), int(span.rows[-1]) + 1)
        for node in span.nodes.ravel().tolist():
            node_type = span.block.shape.node_types[node]
            is_able = able.get(node_type)
            if is_able is None:
                is_able = able[node_type] = demand.admits(node_type)
            if is_able:
                mask = _mask(demand, span.block, node, rows)
                yield span, np.array([[node]]), span.rows if mask is None else span.rows[mask]


def _mask(demand: Demand, block: Block, node: int, rows: slice) -> Mask | None:
    """The rows in which a node has the amounts and the aggregates; None for all of them."""
    of_class = block.shape.row_of_node
    fitting = [
        fits(block.columns[number], amount, (of_class[number][node], rows))
        for number, amount in demand.amounts
    ]
    return all_of((*fitting, demand.members(block, node, rows)))


def _in_order(parts: Iterable[tuple[_Span, Ints, Ints]]) -> Ints:
    """The locations of providers, by their ids."""
    ids, places = [_NONE], [_NONE]
    for span, nodes, rows in parts:
        ids.append(span.block.provider_ids[nodes, rows].ravel())
        places.append(packed(span.block_id, rows, nodes).ravel())
    by_id: Ints = np.concatenate(places)[np.concatenate(ids).argsort()]
    return by_id
