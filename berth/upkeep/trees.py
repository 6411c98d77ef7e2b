# SPDX-License-Identifier: Apache-2.0
"""The trees of all providers, derived from their parents, to compare them with the stored roots.

A million providers take some 50 MB. All arrays have one entry for each provider, in order of the
ids; a position is an index into them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select

from berth.store.engine.tables import resource_providers
from berth.store.engine.transaction import Tx

#: Instead of an id: none. The smallest number that a column of ids can hold.
NO_PROVIDER: Final = -(2**31)

#: Instead of a parent's position: no parent, or one that does not exist.
_NO_PARENT: Final = -1
_LOST_PARENT: Final = -2

#: Rows that are fetched at a time.
_ROWS: Final = 10_000

_Ids = NDArray[np.int64]
_Mask = NDArray[np.bool_]


class WrongRoot(NamedTuple):
    """A provider that names a root which is not that of its tree; `stored` may be NO_PROVIDER."""

    provider: int
    stored: int
    right: int


@dataclass(frozen=True, slots=True)
class Trees:
    """The trees as arrays.

    Attributes:
        ids: of the providers, ascending.
        parents, roots: ids, or NO_PROVIDER.
        above: position of the parent, or _NO_PARENT, or _LOST_PARENT.
        ends: position of the topmost ancestor; for a provider on a loop, that of any on it.
    """

    ids: _Ids
    parents: _Ids
    roots: _Ids
    above: _Ids
    ends: _Ids

    def is_endless(self) -> _Mask:
        """The providers whose ancestors form a loop."""
        endless: _Mask = self.above[self.ends] >= 0
        return endless

    def on_loops(self) -> _Mask:
        """The providers that are below themselves."""
        mask = np.zeros(len(self.ids), dtype=np.bool_)
        mask[self.ends[self.is_endless()]] = True
        return mask

    def right_roots(self) -> _Ids:
        """The ids of the roots that follow from the parents; NO_PROVIDER if that is undetermined.

        That is the case below a loop, below a parent that does not exist, and below a provider that
        has no parent but names another as its root: one of the two is wrong.
        """
        end_ids, end_roots = self.ids[self.ends], self.roots[self.ends]
        tells = (self.above[self.ends] == _NO_PARENT) & (
            (end_roots == NO_PROVIDER) | (end_roots == end_ids)
        )
        return np.where(tells, end_ids, NO_PROVIDER)

    def lost_parents(self) -> _Mask:
        """The providers whose parent does not exist."""
        lost: _Mask = self.above == _LOST_PARENT
        return lost

    def misled(self) -> _Mask:
        """Providers whose root is wrong, but whose right root is unknown."""
        astray = np.where(
            self.above >= 0,
            self.roots != self.roots[self.above],
            (self.above == _NO_PARENT) & (self.roots != self.ids),
        )
        misled: _Mask = (self.right_roots() == NO_PROVIDER) & ((self.roots == NO_PROVIDER) | astray)
        return misled


def read_trees(tx: Tx) -> Trees:
    """Read all providers. Cost: reads one table once."""
    rp = resource_providers.c
    query = select(
        rp.id,
        func.coalesce(rp.parent_provider_id, NO_PROVIDER),
        func.coalesce(rp.root_provider_id, NO_PROVIDER),
    ).order_by(rp.id)
    rows = tx.connection.execute(query, execution_options={"yield_per": _ROWS})
    parts = [np.array(part, dtype=np.int64).reshape(-1, 3) for part in rows.partitions()]
    columns = np.concatenate(parts) if parts else np.empty((0, 3), dtype=np.int64)
    ids, parents, roots = (np.ascontiguousarray(columns[:, place]) for place in range(3))
    above = _positions(ids, parents)
    return Trees(ids, parents, roots, above, _ends(above))


def wrong_roots(trees: Trees) -> list[WrongRoot]:
    """The providers whose stored root is not the one that follows from their parents."""
    right = trees.right_roots()
    wrong = np.flatnonzero((right != NO_PROVIDER) & (right != trees.roots))
    return [
        WrongRoot(int(trees.ids[at]), int(trees.roots[at]), int(right[at])) for at in wrong.tolist()
    ]


def _positions(ids: _Ids, parents: _Ids) -> _Ids:
    if not len(ids):
        return ids
    places = np.minimum(np.searchsorted(ids, parents), len(ids) - 1)
    positions = np.where(ids[places] == parents, places, _LOST_PARENT)
    return np.where(parents == NO_PROVIDER, _NO_PARENT, positions)


def _ends(above: _Ids) -> _Ids:
    """The topmost ancestors, found by doubling the length of the steps."""
    at = np.where(above >= 0, above, np.arange(len(above)))
    for _ in range(len(above).bit_length()):
        at = at[at]
    return at
