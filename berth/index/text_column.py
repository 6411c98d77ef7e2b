# SPDX-License-Identifier: Apache-2.0
"""A column of texts of any length, without an object for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class TextColumn(Struct, frozen=True, eq=False):
    """Texts of any length and of shape (K, R), none of which ever changes.

    There is no object for each, which takes more than most names do; and an array of texts of one
    length would be as wide as the longest one.

    Attributes:
        pool: the texts, one behind another: those of the first node, then those of the second.
        bounds: (K * R + 1,), int32: where each text begins, and where the last one ends.
        rows: R.
    """

    pool: Bytes
    bounds: NDArray[np.int32]
    rows: int

    @classmethod
    def of(cls, texts: Sequence[bytes], rows: int) -> TextColumn:
        """The column of K * R texts, in the order of the pool."""
        lengths = np.fromiter(map(len, texts), np.int32, len(texts))
        return cls(np.frombuffer(b"".join(texts), np.uint8), _bounds_of(lengths), rows)

    @classmethod
    def joined(cls, columns: Sequence[TextColumn]) -> TextColumn:
        """The rows of several, one's behind another's."""
        nodes = len(columns[0].bounds[1:]) // columns[0].rows
        lengths = np.concatenate([column._lengths() for column in columns], axis=1)
        parts = [column._part(node, 0, column.rows) for node in range(nodes) for column in columns]
        return cls(np.concatenate(parts), _bounds_of(lengths.ravel()), lengths.shape[1])

    @property
    def nbytes(self) -> int:
        """The bytes that it takes, like an array's."""
        return self.pool.nbytes + self.bounds.nbytes

    def item(self, node: int, row: int) -> bytes:
        """One text."""
        text: bytes = self._part(node, row, row + 1).tobytes()
        return text

    def texts(self, node: int, rows: range) -> list[bytes]:
        """The texts of one node in consecutive rows."""
        first = node * self.rows
        return self._texts(first + rows.start, first + rows.stop)

    def every(self) -> list[bytes]:
        """All texts, in the order of the pool."""
        return self._texts(0, len(self.bounds) - 1)

    def lengths(self, nodes: Ints, rows: Ints) -> NDArray[np.int32]:
        """How long some texts are."""
        places = nodes * self.rows + rows
        lengths: NDArray[np.int32] = self.bounds[places + 1] - self.bounds[places]
        return lengths

    def padded(self, nodes: Ints, rows: Ints) -> NDArray[np.void]:
        """Some texts, at least one, with zero bytes behind those that are not the longest."""
        lengths = self.lengths(nodes, rows)
        places = np.arange(lengths.max())
        at = self.bounds[nodes * self.rows + rows, None] + places
        matrix: Bytes = self.pool.take(at, mode="clip")
        if lengths.min() < len(places):
            matrix[places >= lengths[:, None]] = 0
        return matrix.view(f"V{len(places)}")[:, 0]

    def take(self, index: Ints) -> TextColumn:
        """Some rows, in the order given. Cost: a copy of the pool, piece by piece for each run of
        consecutive rows."""
        lengths = self._lengths()
        runs = np.split(index, np.flatnonzero(np.diff(index) != 1) + 1)
        parts = [
            self._part(node, int(run[0]), int(run[-1]) + 1)
            for node in range(len(lengths))
            for run in runs
        ]
        return TextColumn(
            np.concatenate(parts), _bounds_of(lengths.take(index, axis=1).ravel()), len(index)
        )

    def with_rows(self, changed: Mapping[int, Sequence[bytes]]) -> TextColumn:
        """The column with other texts in some rows, one for each node; itself if they are the texts
        that it has."""
        others = {
            row: texts
            for row, texts in changed.items()
            if any(self.item(node, row) != text for node, text in enumerate(texts))
        }
        if not others:
            return self
        texts = [text for of_node in zip(*others.values(), strict=True) for text in of_node]
        index = np.arange(self.rows)
        index[list(others)] = range(self.rows, self.rows + len(others))
        return TextColumn.joined((self, TextColumn.of(texts, len(others)))).take(index)

    def _texts(self, begin: int, end: int) -> list[bytes]:
        bounds = self.bounds[begin : end + 1].tolist()
        pool = self.pool[bounds[0] : bounds[-1]].tobytes()
        return [pool[at - bounds[0] : after - bounds[0]] for at, after in pairwise(bounds)]

    def _lengths(self) -> NDArray[np.int32]:
        lengths: NDArray[np.int32] = np.diff(self.bounds).reshape(-1, self.rows)
        return lengths

    def _part(self, node: int, begin: int, end: int) -> Bytes:
        """The texts of one node in consecutive rows."""
        first = node * self.rows
        return self.pool[self.bounds.item(first + begin) : self.bounds.item(first + end)]


def _bounds_of(lengths: NDArray[np.int32]) -> NDArray[np.int32]:
    bounds = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=bounds[1:])
    return bounds
