# SPDX-License-Identifier: Apache-2.0
"""Shapes: the common structure of similar trees, so that a structural question is answered once for
all of them.

Two trees have the same shape when their nodes, in canonical order, have the same parents, the same
resource classes with inventory and the same traits. Amounts and aggregates are not part of it: they
differ from host to host and are in the arrays of `berth.index.block`.

Nodes are numbered in *tree order*: the root is 0, a parent comes before its children, and brothers
are in the order of their subtrees' canonical numbers (ties by provider id, which makes the order
repeatable and changes no answer).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import count
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from berth.index.records import NodeRecord
from berth.model.ids import ClassId, TraitId

#: The parent of a root.
NO_PARENT: Final = -1

_numbers: Final = count()


class NodeType(NamedTuple):
    """One provider without its numbers: classes (ascending) and traits."""

    classes: tuple[ClassId, ...]
    traits: frozenset[TraitId]


class Shape:
    """The structure of similar trees; immutable, one object for each structure of a registry.

    Attributes:
        parents: per node, the parent's number, `NO_PARENT` for the root.
        node_types: per node, its classes and traits.
        number: unique in the process, and never used again.
    """

    def __init__(self, parents: tuple[int, ...], node_types: tuple[NodeType, ...]) -> None:
        assert len(parents) == len(node_types)
        assert parents[0] == NO_PARENT
        self.parents = parents
        self.node_types = node_types
        self.number = next(_numbers)
        #: class -> the nodes that have inventory of it, ascending: the rows of the class's arrays
        #: in a block.
        self.nodes_of_class: dict[ClassId, tuple[int, ...]] = _nodes_of_class(node_types)
        #: class -> node -> row of the class's arrays in a block.
        self.row_of_node: dict[ClassId, dict[int, int]] = {
            class_id: {node: row for row, node in enumerate(nodes)}
            for class_id, nodes in self.nodes_of_class.items()
        }

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.parents)

    @cached_property
    def traits(self) -> frozenset[TraitId]:
        """All traits of all nodes."""
        return frozenset().union(*(node_type.traits for node_type in self.node_types))

    @cached_property
    def lineage(self) -> tuple[int, ...]:
        """Per node, the set of its ancestors and itself, as a bit mask."""
        masks: list[int] = []
        for node, parent in enumerate(self.parents):
            masks.append((1 << node) | (0 if parent == NO_PARENT else masks[parent]))
        return tuple(masks)

    @cached_property
    def below(self) -> tuple[int, ...]:
        """Per node, the set of its descendants and itself, as a bit mask."""
        masks = [1 << node for node in range(self.size)]
        for node in range(self.size - 1, 0, -1):
            masks[self.parents[node]] |= masks[node]
        return tuple(masks)


class ShapeRegistry:
    """Makes one `Shape` object for each structure, and puts trees in canonical order.

    A shape lives as long as some block has it: otherwise a tree that grows to a thousand providers
    one by one would leave a thousand large shapes behind. Canonical numbers are never dropped; they
    are small.
    """

    def __init__(self) -> None:
        self._node_types: dict[NodeType, int] = {}
        #: (node_type, canonical numbers of the children's subtrees, ascending) -> canonical number.
        self._subtrees: dict[tuple[int, tuple[int, ...]], int] = {}
        #: canonical number of a root's subtree -> shape.
        self._shapes: WeakValueDictionary[int, Shape] = WeakValueDictionary()

    def arrange(self, nodes: Iterable[NodeRecord]) -> tuple[Shape, tuple[NodeRecord, ...]]:
        """Put the providers of one tree in tree order.

        Args:
            nodes: all providers of one tree, in any order; exactly one of them has no parent.
        """
        nodes = tuple(nodes)
        if len(nodes) == 1:
            number = self._subtree(nodes[0], ())
            return self._shape(number, nodes, (NO_PARENT,)), nodes
        children: dict[int | None, list[NodeRecord]] = {}
        for node in nodes:
            children.setdefault(node.parent_id, []).append(node)
        (root,) = children[None]
        breadth_first = [root]
        for node in breadth_first:
            breadth_first.extend(children.get(node.provider_id, ()))
        assert len(breadth_first) == len(nodes), "every provider of a tree hangs below its root"

        numbers: dict[int, int] = {}
        # Leaves first, without recursion: a tree may be deeper than the interpreter's stack.
        for node in reversed(breadth_first):
            below = children.get(node.provider_id, [])
            below.sort(key=lambda child: (numbers[child.provider_id], child.provider_id))
            numbers[node.provider_id] = self._subtree(
                node, tuple(numbers[child.provider_id] for child in below)
            )
        ordered, parents = _depth_first(root, children)
        return self._shape(numbers[root.provider_id], ordered, parents), ordered

    def _subtree(self, node: NodeRecord, below: tuple[int, ...]) -> int:
        node_type = node_type_of(node)
        type_number = self._node_types.setdefault(node_type, len(self._node_types))
        return self._subtrees.setdefault((type_number, below), len(self._subtrees))

    def _shape(self, number: int, ordered: Sequence[NodeRecord], parents: tuple[int, ...]) -> Shape:
        shape = self._shapes.get(number)
        if shape is None:
            shape = self._shapes[number] = Shape(parents, tuple(map(node_type_of, ordered)))
        return shape


def node_type_of(node: NodeRecord) -> NodeType:
    """The type of a provider."""
    return NodeType(tuple([inventory[0] for inventory in node.inventories]), node.traits)


def _nodes_of_class(node_types: Sequence[NodeType]) -> dict[ClassId, tuple[int, ...]]:
    nodes: dict[ClassId, list[int]] = {}
    for node, node_type in enumerate(node_types):
        for class_id in node_type.classes:
            nodes.setdefault(class_id, []).append(node)
    return {class_id: tuple(having) for class_id, having in nodes.items()}


def _depth_first(
    root: NodeRecord, children: dict[int | None, list[NodeRecord]]
) -> tuple[tuple[NodeRecord, ...], tuple[int, ...]]:
    ordered: list[NodeRecord] = []
    parents: list[int] = []
    stack = [(root, NO_PARENT)]
    while stack:
        node, parent = stack.pop()
        place = len(ordered)
        ordered.append(node)
        parents.append(parent)
        stack.extend((child, place) for child in reversed(children.get(node.provider_id, [])))
    return tuple(ordered), tuple(parents)
