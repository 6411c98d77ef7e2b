# SPDX-License-Identifier: Apache-2.0
"""The small parts of the index: maps with cheap copies, sets of aggregates, shapes."""

from __future__ import annotations

from collections.abc import Iterator

from berth.index.aggregate_sets import NO_AGGREGATES, AggregateSets
from berth.index.records import InventoryRecord, NodeRecord
from berth.index.shape import ShapeRegistry
from berth.model.ids import AggregateId, ClassId, ProviderId, TraitId

VCPU, FPGA = ClassId(0), ClassId(16)


def node(number: int, parent: int | None = None, *classes: ClassId, trait: int = 0) -> NodeRecord:
    """A provider with inventory of some classes, and perhaps a trait."""
    return NodeRecord(
        provider_id=ProviderId(number),
        uuid=str(number),
        parent_id=None if parent is None else ProviderId(parent),
        inventories=tuple(
            InventoryRecord(c, 8.0, 0, 1, 8, 1, 8, 0, 1.0, 0) for c in sorted(classes)
        ),
        traits=frozenset({TraitId(trait)} if trait else ()),
        aggregate_set=NO_AGGREGATES,
        name=b'"%d"' % number,
        generation=0,
        modified=0,
    )


def test_a_set_given_out_meanwhile_does_not_upset_a_question() -> None:
    """A query runs while the next refresh registers a set with one of its aggregates."""
    sets = AggregateSets()
    a = AggregateId(1)
    first = sets.id_of(frozenset({a}))

    def meanwhile() -> Iterator[AggregateId]:
        sets.id_of(frozenset({a, AggregateId(2)}))
        yield a

    assert sets.having_any(meanwhile())[first]


def test_a_tree_may_be_deeper_than_the_interpreter_s_stack() -> None:
    """A client cannot crash the index with a long chain of providers."""
    chain = [node(0), *(node(number, number - 1) for number in range(1, 5000))]
    shape, order = ShapeRegistry().arrange(reversed(chain))
    assert [record.provider_id for record in order] == list(range(5000))
    assert shape.size == 5000
