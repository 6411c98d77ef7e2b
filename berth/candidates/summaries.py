# SPDX-License-Identifier: Apache-2.0
"""Which providers an answer describes in `provider_summaries`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from berth.candidates.batch import Batch
from berth.candidates.local import Rows
from berth.candidates.plan import Plan
from berth.candidates.request import ResponseForm
from berth.index.block import Block
from berth.index.snapshot import Snapshot
from berth.index.summary_text import SEPARATOR, filled, template_of, tree_texts
from berth.model.ids import ClassId


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
        traits = self._snapshot.names.trait_names if self._form.traits else None
        texts: list[bytes] = []
        for slot, parts in self._trees.items():
            block = self._snapshot.block(slot)
            texts += tree_texts(self._snapshot, block, _distinct(parts, block))
        for (slot, node), parts in self._providers.items():
            block = self._snapshot.block(slot)
            template = template_of(block.shape, (node,), self._class_names, traits, places=False)
            texts += filled(template, block, _distinct(parts, block))
        if texts:
            texts[0] = texts[0].removeprefix(SEPARATOR)
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


def _distinct(parts: Sequence[Rows], block: Block) -> Rows:
    """The rows of several arrays, each once; those of one array are distinct."""
    if len(parts) == 1:
        return parts[0]
    # PERF bench, nested: marking them takes a twentieth of the time of `np.unique`.
    marked = np.zeros(block.rows, dtype=np.bool_)
    marked[np.concatenate(parts)] = True
    return marked.nonzero()[0]
