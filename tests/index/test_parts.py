# SPDX-License-Identifier: Apache-2.0
"""The small parts of the index: maps with cheap copies, sets of aggregates, shapes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from berth.index.maps import ABSENT, PagedMap
from berth.index.records import InventoryRecord, NodeRecord
from berth.index.sets import NO_AGGREGATES, AggregateSets
from berth.index.shape import Shape, ShapeRegistry
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


@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 2**40))), st.data())
def test_a_forked_map_keeps_what_it_had(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    """Writes to one fork are not visible in the other."""
    written = dict(pairs)
    first = PagedMap()
    first.set_many(np.array(list(written), np.int64), np.array(list(written.values()), np.int64))
    second = first.fork()
    changed = data.draw(st.lists(st.sampled_from(sorted(written)))) if written else []
    for key in changed:
        first.remove(key)
    for key, value in written.items():
        assert second.get(key) == value
        assert first.get(key) == (ABSENT if key in changed else value)


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


def test_a_shape_that_no_tree_has_any_more_is_forgotten() -> None:
    """A wide tree that grows child by child leaves no large shapes behind."""
    shapes = ShapeRegistry()
    nodes = [node(0)]
    seen: list[weakref.ref[Shape]] = []
    for number in range(1, 50):
        nodes.append(node(number, 0, VCPU))
        shape, _ = shapes.arrange(nodes)
        assert shapes.arrange(nodes)[0] is shape
        seen.append(weakref.ref(shape))
    gc.collect()
    assert [ref() for ref in seen if ref() is not None] == [shape]
