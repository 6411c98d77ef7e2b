# SPDX-License-Identifier: Apache-2.0
"""Conditions on providers: their traits, aggregates, amounts, and where they are.

What is asked of many rows is answered with a mask. A mask that would be true everywhere is None:
most conditions hold for all rows, and nothing is computed for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from berth.index.block import Columns, Ints
from berth.index.sets import Mask
from berth.index.snapshot import Location
from berth.model.ids import TraitId

Rows = NDArray[np.int64]

#: query id -> choice -> the rows in which that choice could serve the query; None for all of them.
Masks = Mapping[int, Mapping[int, Mask | None]]


def any_of(masks: Iterable[Mask | None]) -> Mask | None:
    """The union of some masks; None if it is all rows."""
    union: Mask | None = None
    for mask in masks:
        if mask is None:
            return None
        union = mask if union is None else union | mask
    return union


def all_of(masks: Iterable[Mask | None]) -> Mask | None:
    """The intersection of some masks; None if it is all rows."""
    common: Mask | None = None
    for mask in masks:
        if mask is not None:
            common = mask if common is None else common & mask
    return common


def take_rows(rows: Rows, masks: Masks) -> dict[int, dict[int, Mask | None]]:
    """The masks of some of the rows."""
    return {
        query_id: {choice: None if mask is None else mask[rows] for choice, mask in choices.items()}
        for query_id, choices in masks.items()
    }


class TraitTest(Struct, frozen=True):
    """Conditions on a set of traits: one of each required set, none of the forbidden."""

    required: tuple[frozenset[TraitId], ...] = ()
    forbidden: frozenset[TraitId] = frozenset()

    @property
    def has_conditions(self) -> bool:
        """Whether there is any condition."""
        return bool(self.required or self.forbidden)

    def passes(self, traits: frozenset[TraitId]) -> bool:
        """Whether these traits, of one provider or of several together, meet the conditions."""
        return self.forbidden.isdisjoint(traits) and not any(
            wanted.isdisjoint(traits) for wanted in self.required
        )


class MembershipTest(Struct, frozen=True):
    """Conditions on aggregates as tables over ids of `AggregateSets`; None stands for no
    condition."""

    #: True where a set satisfies every positive `member_of`.
    member: Mask | None = None
    #: True where a set contains a forbidden aggregate.
    forbidden: Mask | None = None

    @property
    def has_conditions(self) -> bool:
        """Whether there is any condition."""
        return self.member is not None or self.forbidden is not None

    @property
    def size(self) -> int:
        """The bytes that the tables take."""
        return sum(table.nbytes for table in (self.member, self.forbidden) if table is not None)

    def mask(self, sets: Ints, spanning: Ints | None = None) -> Mask | None:
        """Where the memberships of some providers satisfy the conditions; None for all.

        Args:
            spanning: sets that count too for what is required.
        """
        inside = None if self.member is None else self.member[sets]
        if inside is not None and self.member is not None and spanning is not None:
            inside = inside | self.member[spanning]
        return all_of((inside, None if self.forbidden is None else ~self.forbidden[sets]))


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


class Places(Struct, frozen=True):
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
        masks = [
            each.mask(block_id, lineage, rows)
            for each in (self.in_tree, self.under)
            if each is not None
        ]
        if self.not_under is not None and self.not_under.has_any_in(block_id):
            masks.append(~self.not_under.mask(block_id, lineage, rows))
        return all_of(masks)


ANYWHERE: Final = Places()


def fits(columns: Columns, amount: int, at: tuple[int | slice, slice]) -> Mask:
    """Which providers could give `amount` more of one class.

    Args:
        amount: 1 to 2147483647; 0 asks for any inventory of the class.
        at: the nodes of the class, and the rows of the block.

    Source: spec/allocation-candidates.md 5.1.
    """
    # PERF bench, flat: `room` and the two bounds make one comparison of what would be four.
    fit: Mask = columns.room[at] >= amount
    return _in_units(fit, columns, amount, at)


def fits_if_unused(columns: Columns, amount: int, at: tuple[int | slice, slice]) -> Mask:
    """As `fits`, with nothing used."""
    fit: Mask = columns.capacity[at] >= amount
    fit &= columns.max_unit[at] >= amount
    return _in_units(fit, columns, amount, at)


def _in_units(fit: Mask, columns: Columns, amount: int, at: tuple[int | slice, slice]) -> Mask:
    if 0 < amount < columns.min_unit_max:
        fit &= columns.min_unit[at] <= amount
    if columns.stepped:
        fit &= amount % columns.step_size[at] == 0
    return fit
