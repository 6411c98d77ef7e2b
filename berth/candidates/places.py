# SPDX-License-Identifier: Apache-2.0
"""Conditions on where a provider is: in certain trees, below certain providers, or not below
some."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Location

#: What a set of subtrees takes for each provider that it is made from.
PLACE_BYTES: Final = 384


class Subtrees:
    """Some providers, and all providers below them; with a root, its whole tree.

    Attributes:
        only: the only provider that it is made from, if there is one.
        size: about how many bytes it takes.
    """

    def __init__(self, locations: Iterable[Location]) -> None:
        places = tuple(dict.fromkeys(locations))
        self.only: Final = places[0] if len(places) == 1 else None
        self.size: Final = PLACE_BYTES * (1 + len(places))
        rows: dict[int, dict[int, list[int]]] = {}
        for block_id, row, node in places:
            rows.setdefault(block_id, {}).setdefault(node, []).append(row)
        #: block_id -> node -> rows.
        self._rows: Final[dict[int, dict[int, NDArray[np.int64]]]] = {
            block_id: {node: np.array(each) for node, each in nodes.items()}
            for block_id, nodes in rows.items()
        }

    def blocks(self) -> list[int]:
        """The blocks that have some of them, ascending."""
        return sorted(self._rows)

    def has_any_in(self, block_id: int) -> bool:
        """Whether a block has some of them."""
        return block_id in self._rows

    def mask(self, block_id: int, lineage: int, rows: slice) -> Mask:
        """Where a node is one of them.

        Args:
            lineage: the node's ancestors and itself, with a bit for each.
            rows: consecutive rows of the block.
        """
        mask: Mask = np.zeros(rows.stop - rows.start, dtype=np.bool_)
        for node, named in self._rows.get(block_id, {}).items():
            if lineage >> node & 1:
                mask[named[(named >= rows.start) & (named < rows.stop)] - rows.start] = True
        return mask


@dataclass(frozen=True, slots=True)
class Places:
    """Where the provider of a demand must be; None stands for no condition.

    Attributes:
        in_tree: the trees that may serve the demand. Of the unsuffixed group, only the tree itself
            can then serve it, and no sharing provider.
        under, not_under: below which providers it must be, or must not be.
    """

    in_tree: Subtrees | None = None
    under: Subtrees | None = None
    not_under: Subtrees | None = None

    @property
    def has_conditions(self) -> bool:
        """Whether there is any condition."""
        return not (self.in_tree is None and self.under is None and self.not_under is None)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        several = (self.in_tree, self.under, self.not_under)
        return sum(each.size for each in several if each is not None)

    def has_any_in(self, block_id: int) -> bool:
        """Whether a provider of a block can meet the conditions."""
        return all(each is None or each.has_any_in(block_id) for each in (self.in_tree, self.under))

    def mask(self, block_id: int, lineage: int, rows: slice) -> Mask | None:
        """Where a node meets the conditions, see `Subtrees.mask`; None for all rows."""
        mask: Mask | None = None
        for each in (self.in_tree, self.under):
            if each is not None:
                inside = each.mask(block_id, lineage, rows)
                mask = inside if mask is None else mask & inside
        if self.not_under is not None and self.not_under.has_any_in(block_id):
            outside = ~self.not_under.mask(block_id, lineage, rows)
            mask = outside if mask is None else mask & outside
        return mask


ANYWHERE: Final = Places()
