# SPDX-License-Identifier: Apache-2.0
"""An overlay: a fleet with other amounts used, of which one owner changes more and more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from berth.index.block import Columns, no_texts, room_of
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, ProviderId

#: From so many changes on, arrays are faster than one change after another.
_MANY: Final = 10


class Overlay:
    """A fleet with other amounts used; all else is shared with the snapshot that it is made from.

    Attributes:
        snapshot: what it is now. Each `use` changes it, unless `fix` came before; so only its
            owner may read it, and must not keep it beyond the next one.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._blocks = list(snapshot.blocks)
        #: The columns that are in arrays of its own.
        self._own: set[tuple[int, ClassId]] = set()
        self._is_fixed = False
        self.snapshot = replace(snapshot, blocks=self._blocks)

    def use(self, change: Mapping[tuple[ProviderId, ClassId], int]) -> None:
        """From now on so much more is used of some providers' classes; less if negative, but never
        less than nothing. Those that are not part of the fleet are passed over.

        Cost: a few microseconds for each; the first change of a class in a block copies two arrays.
        """
        if self._is_fixed:
            self._begin_another()
        changes: dict[tuple[int, ClassId], list[tuple[int, int, int]]] = {}
        located, at = None, None
        for (provider, class_id), amount in change.items():
            if provider != located:
                located, at = provider, self.snapshot.locate(provider)
            if at is None:
                continue
            line = self.snapshot.block(at.block_id).shape.row_of_node.get(class_id, {}).get(at.node)
            if line is not None:
                changes.setdefault((at.block_id, class_id), []).append((line, at.row, amount))
        for (block_id, class_id), of_class in changes.items():
            _use_more(self._writable(block_id, class_id), of_class)

    def fix(self) -> None:
        """Never change the present `snapshot`: the next `use` copies again."""
        self._is_fixed = True

    def _begin_another(self) -> None:
        self._own.clear()
        self._blocks = list(self._blocks)
        self.snapshot = replace(self.snapshot, blocks=self._blocks)
        self._is_fixed = False

    def _writable(self, block_id: int, class_id: ClassId) -> Columns:
        """The columns of a class, in arrays that nobody else has."""
        block = self.snapshot.block(block_id)
        if (block_id, class_id) in self._own:
            return block.columns[class_id]
        self._own.add((block_id, class_id))
        own = block.columns[class_id].with_used(())
        self._blocks[block_id] = replace(
            block, columns={**block.columns, class_id: own}, summaries=no_texts(block.rows)
        )
        return own


def _use_more(columns: Columns, changes: Sequence[tuple[int, int, int]]) -> None:
    """Use so much more, but never less than nothing, in arrays that nobody else has.

    Args:
        changes: (place along M, row, amount), each place once.
    """
    if len(changes) < _MANY:
        for line, row, amount in changes:
            columns.set_used(line, row, max(int(columns.used.item(line, row)) + amount, 0))
        return
    lines, rows, amounts = np.array(changes).T
    places = lines, rows
    used = np.maximum(columns.used[places] + amounts, 0)
    columns.used[places] = used
    columns.room[places] = room_of(columns.capacity[places], used, columns.max_unit[places])
