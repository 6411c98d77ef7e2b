# SPDX-License-Identifier: Apache-2.0
"""The memory of an index: one limit in bytes, and nothing outlives its inputs."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import numpy as np
import pytest

from berth.index.block import Block, Tree
from berth.index.memory import ENTRY_BYTES, Memory
from berth.index.records import NodeRecord
from berth.index.shape import NodeType, Shape
from berth.index.snapshot import Names
from berth.model.ids import ProviderId

EACH = 1000 + ENTRY_BYTES


def shape() -> Shape:
    """A tree of one provider."""
    return Shape((-1,), (NodeType((), frozenset()),))


def block() -> Block:
    """Two trees of one provider each."""
    common = shape()
    return Block.of(common, [tree(common, number) for number in (1, 2)])


def tree(of: Shape, number: int) -> Tree:
    """A provider without inventory or traits."""
    provider = ProviderId(number)
    record = NodeRecord(provider, f"host{number}", None, (), frozenset(), 0, b"", 0, 0)
    return Tree(of, (record,), 0)


def test_a_value_that_does_not_fit_any_more_empties_the_memory() -> None:
    """All entries are dropped, whatever they belong to; then the new value is stored."""
    memory, common, trees = Memory(3 * EACH), shape(), block()
    memory.follow(Names.of({}, {}, {}), [trees, None])
    memory.keep("first", 1, 1000)
    memory.keep_for(common, "second", 2, 1000)
    memory.keep_texts(trees, np.array([1]), [b"text"], EACH)
    assert (memory.get("first"), memory.get_for(common, "second")) == (1, 2)
    assert trees.summaries.tolist() == [None, b"text"]
    memory.keep("third", 3, 1000)
    assert (memory.get("first"), memory.get_for(common, "second")) == (None, None)
    assert trees.summaries.tolist() == [None, None]
    assert memory.get("third") == 3
    memory.keep("fourth", 4, 1000)
    assert (memory.get("third"), memory.get("fourth")) == (3, 4)


@pytest.mark.parametrize("before", [[], ["first"]])
def test_a_value_that_is_larger_than_the_memory_is_not_kept(before: Sequence[str]) -> None:
    """The other entries stay."""
    memory = Memory(EACH)
    for key in before:
        memory.keep(key, key, 1000)
    memory.keep("large", 1, 1001)
    assert memory.get("large") is None
    assert [memory.get(key) for key in before] == before


def test_other_names_end_everything_but_texts_and_what_lasts() -> None:
    """A text is dropped when a name in it changes, and entries without names stay; the space of the
    others is free again."""
    memory, common, trees = Memory(4 * EACH), shape(), block()
    names = Names.of({}, {}, {})
    memory.follow(names, [trees])
    memory.keep("first", 1, 1000)
    memory.keep_for(common, "second", 2, 1000)
    memory.keep_texts(trees, np.array([0]), [b"text"], EACH)
    memory.keep("lasting", 0, 1000, is_lasting=True)
    memory.follow(names, [trees])
    assert memory.get("first") == 1
    memory.follow(Names.of({}, {}, {}), [trees])
    assert (memory.get("first"), memory.get_for(common, "second")) == (None, None)
    for key in ("third", "fourth"):
        memory.keep(key, key, 1000)
    assert (trees.summaries.tolist(), memory.get("lasting")) == ([b"text", None], 0)
    memory.keep("fifth", 5, 1000)
    assert (trees.summaries.tolist(), memory.get("lasting")) == ([None, None], None)


def test_what_is_kept_for_a_shape_ends_with_it() -> None:
    """A tree that grows child by child leaves many shapes behind."""
    memory, common = Memory(), shape()
    memory.keep_for(common, "key", 1, 1)
    assert (memory._tables, memory._shapes) == ({"key": {common.number: 1}}, {common.number})
    del common
    gc.collect()
    assert (memory._tables, memory._shapes) == ({"key": {}}, set())
