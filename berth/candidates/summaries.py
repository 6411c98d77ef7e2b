# SPDX-License-Identifier: Apache-2.0
"""The texts of `provider_summaries`.

From 1.29 on whole trees are described, always alike: such a text is kept with its block until the
tree changes, or until too much is kept. Trees of one shape have texts that differ in uuids and
numbers only, so that a text which is not kept is filled into the form of its shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np

from berth.candidates.batch import Batch
from berth.candidates.local import Rows
from berth.candidates.plan import Plan
from berth.candidates.request import ResponseForm
from berth.index.block import UUID_LENGTH, Block
from berth.index.shape import NO_PARENT, Shape
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId

_SEPARATOR: Final = b", "


class _Template(NamedTuple):
    """The text of some nodes of a shape with places to be formatted; a separator before each.

    Attributes:
        uuids: the nodes whose uuids stand at the places, in their order; None where a number
            stands: numbers come in pairs, capacity and used.
        amounts: (class, node) of each pair of numbers, in their order.
    """

    text: bytes
    uuids: tuple[int | None, ...]
    amounts: tuple[tuple[ClassId, int], ...]


#: The texts that the blocks of a process keep take about so many bytes at most; one more, and all
#: are forgotten.
KEPT_BYTES_MAX: Final = 64 << 20
#: What an object takes beside its letters.
_OBJECT_BYTES: Final = 40


class _Kept:
    """How much is kept: all texts made since they were last forgotten."""

    size = 0


#: Of whole trees, from 1.29 on. What a shape's classes and traits are called never changes.
_TREE_TEMPLATES: WeakKeyDictionary[Shape, _Template] = WeakKeyDictionary()


class SummaryTexts:
    """Collects which providers are to be described, and describes them."""

    def __init__(self, snapshot: Snapshot, plan: Plan, form: ResponseForm) -> None:
        self._snapshot = snapshot
        self._form = form
        self._class_names: Mapping[ClassId, str] = snapshot.names.class_names
        if not form.all_classes:
            asked = {class_id for slot in plan.slots for class_id, _ in slot.amounts}
            self._class_names = {number: self._class_names[number] for number in asked}
        self._giving = plan.giving
        #: slot -> rows of whole trees; or, below 1.29, (slot, node) -> rows.
        self._trees: dict[int, list[Rows]] = {}
        self._providers: dict[tuple[int, int], list[Rows]] = {}

    def add(self, batch: Batch) -> None:
        """Note the providers of some candidates that give resources."""
        trees = batch.trees
        size = trees.block.shape.size
        is_tree_noted = False
        for choice in {batch.choices[number] for number in self._giving}:
            if choice >= size:
                self._add_foreign(batch, choice - size)
            elif not self._form.trees:
                self._providers.setdefault((trees.slot, choice), []).append(batch.rows)
            elif not is_tree_noted:
                is_tree_noted = True
                self._add_trees(trees.slot, batch.rows)

    def written(self) -> list[bytes]:
        """The entries of `provider_summaries` with separators between them, to be joined."""
        texts: list[bytes] = []
        for slot, parts in self._trees.items():
            block = self._snapshot.block(slot)
            texts += self._of_trees(block, _distinct(parts, block))
        for (slot, node), parts in self._providers.items():
            block = self._snapshot.block(slot)
            template = self._template(block.shape, (node,))
            texts += _filled(template, block, _distinct(parts, block))
        if texts:
            texts[0] = texts[0].removeprefix(_SEPARATOR)
        return texts

    def _add_trees(self, slot: int, rows: Rows) -> None:
        noted = self._trees.setdefault(slot, [])
        # A tree that is searched alone has one array for all of its candidates.
        if not noted or noted[-1] is not rows:
            noted.append(rows)

    def _add_foreign(self, batch: Batch, place: int) -> None:
        trees = batch.trees
        if trees.served_by is None:
            foreign = [trees.foreign[place]]
        else:
            met = np.zeros(len(trees.known), dtype=np.bool_)
            met[trees.served_by[place, batch.positions]] = True
            foreign = [trees.known[number] for number in met.nonzero()[0].tolist()]
        rows: dict[tuple[int, int], set[int]] = {}
        for each in foreign:
            slot, row, node = each.location
            rows.setdefault((slot, 0 if self._form.trees else node), set()).add(row)
        for (slot, node), several in rows.items():
            part = np.array(sorted(several), dtype=np.int64)
            if self._form.trees:
                self._trees.setdefault(slot, []).append(part)
            else:
                self._providers.setdefault((slot, node), []).append(part)

    def _of_trees(self, block: Block, rows: Rows) -> list[bytes]:
        """The texts of whole trees, kept or made now."""
        texts: list[bytes | None] = block.summaries.take(rows).tolist()
        if not all(texts):
            missing = [place for place, text in enumerate(texts) if text is None]
            absent = rows[missing]
            made = _filled(self._tree_template(block.shape), block, absent)
            _keep(self._snapshot, block, absent, made)
            for place, text in zip(missing, made, strict=True):
                texts[place] = text
        return cast("list[bytes]", texts)

    def _tree_template(self, shape: Shape) -> _Template:
        template = _TREE_TEMPLATES.get(shape)
        if template is None:
            template = _TREE_TEMPLATES[shape] = self._template(shape, range(shape.size))
        return template

    def _template(self, shape: Shape, nodes: Sequence[int]) -> _Template:
        uuids: list[int | None] = []
        amounts: list[tuple[ClassId, int]] = []
        entries = []
        for node in nodes:
            having = [c for c in shape.kinds[node].classes if c in self._class_names]
            uuids += [node, *[None] * (2 * len(having))]
            amounts += [(class_id, node) for class_id in having]
            resources = ", ".join(
                f'"{self._class_names[class_id]}": {{"capacity": %d, "used": %d}}'
                for class_id in having
            )
            entry = f'"%s": {{"resources": {{{resources}}}'
            if self._form.traits:
                names = self._snapshot.names.trait_names
                traits = ", ".join(sorted(f'"{names[t]}"' for t in shape.kinds[node].traits))
                entry += f', "traits": [{traits}]'
            if self._form.trees:
                parent = shape.parents[node]
                if parent == NO_PARENT:
                    entry += ', "parent_provider_uuid": null'
                else:
                    entry += ', "parent_provider_uuid": "%s"'
                    uuids.append(parent)
                entry += ', "root_provider_uuid": "%s"'
                uuids.append(0)
            entries.append(entry + "}")
        text = b"".join(_SEPARATOR + entry.encode() for entry in entries)
        return _Template(text, tuple(uuids), tuple(amounts))


def _filled(template: _Template, block: Block, rows: Rows) -> list[bytes]:
    """The text for each of some rows."""
    texts = block.uuid_bytes.view(f"S{UUID_LENGTH}")[:, :, 0]
    uuids = {node: texts[node, rows].tolist() for node in set(template.uuids) - {None}}
    numbers: Iterator[list[int]] = iter(
        column
        for class_id, node in template.amounts
        for column in _amounts(block, class_id, node, rows)
    )
    columns = [next(numbers) if node is None else uuids[node] for node in template.uuids]
    return [template.text % values for values in zip(*columns, strict=True)]


def _keep(snapshot: Snapshot, block: Block, rows: Rows, texts: list[bytes]) -> None:
    """Keep texts with a block of the snapshot, as far as there is room for them."""
    size = sum(map(len, texts)) + _OBJECT_BYTES * len(texts)
    if size > KEPT_BYTES_MAX:
        return
    if _Kept.size + size > KEPT_BYTES_MAX:
        for _, each in snapshot.occupied():
            each.summaries.fill(None)
        _Kept.size = 0
    block.summaries[rows] = texts
    _Kept.size += size


def _amounts(block: Block, class_id: ClassId, node: int, rows: Rows) -> tuple[list[int], list[int]]:
    columns = block.columns[class_id]
    line = block.shape.row_of_node[class_id][node]
    return columns.capacity[line, rows].tolist(), columns.used[line, rows].tolist()


def _distinct(parts: Sequence[Rows], block: Block) -> Rows:
    """The rows of several arrays, each once; those of one array are distinct."""
    if len(parts) == 1:
        return parts[0]
    # PERF bench, nested: marking them takes a twentieth of the time of `np.unique`.
    marked = np.zeros(block.rows, dtype=np.bool_)
    marked[np.concatenate(parts)] = True
    return marked.nonzero()[0]
