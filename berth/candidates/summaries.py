# SPDX-License-Identifier: Apache-2.0
"""The entries of `provider_summaries`: the providers of an answer, with their trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from berth.candidates.batch import Batch
from berth.candidates.masks import Rows
from berth.candidates.plan import Plan
from berth.candidates.request import ResponseForm
from berth.index.block import Block
from berth.index.snapshot import Snapshot
from berth.index.summary_text import (
    SEPARATOR,
    Template,
    joined_length,
    joined_text,
    template_of,
    tree_template,
    tree_text,
    tree_texts,
    windows,
)
from berth.model.ids import ClassId

#: A block, some of its rows, and the node to describe, or None for whole trees.
Part = tuple[Block, int | None, Rows]


class SummaryTexts:
    """Collects the providers of candidates and renders their summaries."""

    def __init__(self, snapshot: Snapshot, plan: Plan, form: ResponseForm) -> None:
        self._snapshot = snapshot
        self._form = form
        self._class_names: Mapping[ClassId, str] = snapshot.names.class_names
        if not form.all_classes:
            requested = {class_id for demand in plan.demands for class_id, _ in demand.amounts}
            self._class_names = {number: self._class_names[number] for number in requested}
        self._giving = plan.giving
        #: block_id -> rows of whole trees; or, below 1.29, (block_id, node) -> rows.
        self._trees: dict[int, list[Rows]] = {}
        self._providers: dict[tuple[int, int], list[Rows]] = {}

    def add(self, batch: Batch) -> None:
        """Note the providers of some candidates that give resources."""
        trees = batch.trees
        size = trees.block.shape.size
        is_tree_noted = False
        choices = {batch.choices[number] for number in self._giving}
        for part in batch.parts:
            choices.update(part.choices)
        for choice in choices:
            if choice >= size:
                self._add_foreign(batch, choice - size)
            elif not self._form.trees:
                self._providers.setdefault((trees.block_id, choice), []).append(batch.rows)
            elif not is_tree_noted:
                is_tree_noted = True
                self._add_trees(trees.block_id, batch.rows)

    def parts(self) -> list[Part]:
        """All that there is to write, each provider once."""
        parts: list[Part] = []
        for block_id, rows in self._trees.items():
            block = self._snapshot.block(block_id)
            parts.append((block, None, _distinct(rows, block)))
        for (block_id, node), rows in self._providers.items():
            block = self._snapshot.block(block_id)
            parts.append((block, node, _distinct(rows, block)))
        return parts

    def written(self, parts: Iterable[Part]) -> list[bytes]:
        """The entries of `provider_summaries` with separators between them, to join."""
        texts: list[bytes] = []
        for block, node, rows in parts:
            if node is None:
                texts += tree_texts(self._snapshot, block, rows)
            else:
                texts.append(joined_text(self._template(block, node), block, rows))
        if texts:
            texts[0] = texts[0].removeprefix(SEPARATOR)
        return texts

    def long(self, parts: Iterable[Part]) -> LongSummaries:
        """The same for a long answer."""
        return LongSummaries(
            self._snapshot,
            [(block, node, rows, self._template(block, node)) for block, node, rows in parts],
        )

    def _template(self, block: Block, node: int | None) -> Template:
        if node is None:
            return tree_template(self._snapshot, block.shape)
        traits = self._snapshot.names.trait_names if self._form.traits else None
        return template_of(block.shape, (node,), self._class_names, traits, places=False)

    def _add_trees(self, block_id: int, rows: Rows) -> None:
        noted = self._trees.setdefault(block_id, [])
        # A tree that is searched alone has one array for all of its candidates.
        if not noted or noted[-1] is not rows:
            noted.append(rows)

    def _add_foreign(self, batch: Batch, place: int) -> None:
        trees = batch.trees
        if trees.served_by is None:
            foreign = [trees.serving[place]]
        else:
            met = np.zeros(len(trees.sharing_providers), dtype=np.bool_)
            met[trees.served_by[place, batch.positions]] = True
            foreign = [trees.sharing_providers[number] for number in met.nonzero()[0].tolist()]
        rows: dict[tuple[int, int], set[int]] = {}
        for each in foreign:
            block_id, row, node = each.location
            rows.setdefault((block_id, 0 if self._form.trees else node), set()).add(row)
        for (block_id, node), several in rows.items():
            part = np.array(sorted(several), dtype=np.int64)
            if self._form.trees:
                self._trees.setdefault(block_id, []).append(part)
            else:
                self._providers.setdefault((block_id, node), []).append(part)


class LongSummaries:
    """The entries of `provider_summaries` of a long answer, made piece by piece."""

    def __init__(
        self, snapshot: Snapshot, parts: Sequence[tuple[Block, int | None, Rows, Template]]
    ) -> None:
        self._snapshot = snapshot
        self._parts = parts

    def length_about(self) -> int:
        """About how long they are, at little cost."""
        return sum(len(rows) * len(template.text) for _, _, rows, template in self._parts)

    def length(self) -> int:
        """How long they are, to the byte, if all uuids have 36 characters."""
        return -len(SEPARATOR) + sum(
            joined_length(template, block, rows) for block, _, rows, template in self._parts
        )

    def pieces(self) -> Iterator[bytes]:
        """The entries with separators between them, each piece made when its turn comes."""
        skipped = len(SEPARATOR)
        for block, node, rows, template in self._parts:
            for window in windows(template, rows):
                if node is None:
                    text = tree_text(self._snapshot, block, window)
                else:
                    text = joined_text(template, block, window)
                yield text[skipped:]
                skipped = 0


def _distinct(parts: Sequence[Rows], block: Block) -> Rows:
    """The rows of several arrays, each once; those of one array are distinct."""
    if len(parts) == 1:
        return parts[0]
    # PERF bench, nested: marking them takes a twentieth of the time of `np.unique`.
    marked = np.zeros(block.rows, dtype=np.bool_)
    marked[np.concatenate(parts)] = True
    return marked.nonzero()[0]
