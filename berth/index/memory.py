# SPDX-License-Identifier: Apache-2.0
"""The cache of an index, which its readers share between requests.

A key names everything that the value depends on, and the size of all values together is limited; a
value that would exceed the limit empties the cache first. Names of classes and traits, and the ids
of aggregates, are part of a key as the snapshot's `Names`, which are a new object after every
change: a database may give the id of a deleted trait to the next one, so an id alone is ambiguous.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from berth.index.block import Block
    from berth.index.names import Names
    from berth.index.shape import Shape

#: What one index keeps takes at most about this many bytes.
BYTES_MAX: Final = 128 << 20

#: The part of the memory that answers of any length may fill with texts, in eighths.
_EIGHTHS_FOR_LONG: Final = 7

#: What an entry takes beside its value: its place in a dictionary, and its key.
ENTRY_BYTES: Final = 200


class Memory:
    """The memory of one index, shared by its snapshots and used by any number of threads.

    Values that depend on a shape end with the shape; the texts of whole trees stand with their
    trees in `Block.summaries` and end with those; all other values end when a name changes, unless
    they are lasting.

    Attributes:
        get: the value that is kept under a key, or None.
    """

    def __init__(self, bytes_max: int = BYTES_MAX, *, is_brief: bool = False) -> None:
        """An empty memory.

        Args:
            is_brief: its owner holds a snapshot, and ends before any shape of it.
        """
        self._bytes_max = bytes_max
        self._is_brief = is_brief
        #: What all values took when they were kept; some may have gone with their shape or tree.
        self._size = 0
        #: The part of `_size` that other names do not end: lasting values, and texts of trees.
        self._lasting_size = 0
        self._values: dict[Hashable, Any] = {}
        #: Those of `_values` that are lasting.
        self._lasting: dict[Hashable, Any] = {}
        #: Key -> number of a shape -> value.
        self._tables: dict[Hashable, dict[int, Any]] = {}
        #: The numbers of the shapes that will be removed from the tables when they die.
        self._shapes: set[int] = set()
        self._names: Names | None = None
        self._blocks: Sequence[Block | None] = ()
        #: Held while anything is kept or forgotten; readers need no lock.
        self._lock = threading.Lock()
        # PERF bench, flat: not a method, because every request looks up several values.
        self.get: Callable[[Hashable], Any] = self._values.get

    def keep(self, key: Hashable, value: object, size: int, *, is_lasting: bool = False) -> None:
        """Keep a value of `size` bytes, unless it is larger than the whole memory.

        Args:
            is_lasting: whether it depends on no names.
        """
        with self._lock:
            if self._make_room(size + ENTRY_BYTES):
                self._values[key] = value
                if is_lasting:
                    self._lasting[key] = value
                    self._lasting_size += size + ENTRY_BYTES

    def table(self, key: Hashable) -> Mapping[int, Any]:
        """What is kept for shapes under a key, by the shape's number: for a reader who looks up
        many shapes."""
        # PERF bench, flat: by number, because a `WeakKeyDictionary` takes three times as long.
        table = self._tables.get(key)
        return self._tables.setdefault(key, {}) if table is None else table

    def get_for(self, shape: Shape, key: Hashable) -> Any:
        """The value that is kept for a shape under a key, or None."""
        table = self._tables.get(key)
        return None if table is None else table.get(shape.number)

    def keep_for(self, shape: Shape, key: Hashable, value: object, size: int) -> None:
        """Keep a value of `size` bytes for as long as the shape lives."""
        with self._lock:
            if self._make_room(size + ENTRY_BYTES):
                number = shape.number
                if not self._is_brief and number not in self._shapes:
                    self._shapes.add(number)
                    finalize(
                        shape, _remove_shape, self._tables, self._shapes, number
                    ).atexit = False
                self._tables.setdefault(key, {})[number] = value

    def keep_texts(
        self, block: Block, rows: NDArray[np.int64], texts: Sequence[bytes], size: int
    ) -> None:
        """Keep the texts of some trees of a block, of `size` bytes together, in
        `Block.summaries`."""
        with self._lock:
            if self._make_room(size):
                self._lasting_size += size
                block.summaries[rows] = texts

    def has_room_for_long(self, size: int) -> bool:
        """Whether texts of `size` bytes fit without forgetting anything, and leave an eighth to
        short answers, whose texts would otherwise end all of them."""
        return self._size + size <= self._bytes_max * _EIGHTHS_FOR_LONG // 8

    def follow(self, names: Names, blocks: Sequence[Block | None]) -> None:
        """Take over the names and blocks of the newest snapshot: other names end what depends on
        names, and these are the blocks whose texts are dropped when the memory is full."""
        with self._lock:
            self._blocks = blocks
            if names is not self._names:
                self._names = names
                self._forget_values()
                self._values.update(self._lasting)
                self._size = self._lasting_size

    def reset_after_fork(self) -> None:
        """In a forked child: drop the lock, which another thread of the parent may have held."""
        self._lock = threading.Lock()

    def _make_room(self, size: int) -> bool:
        """Count `size` bytes more, and forget everything first if they would be too many.

        Returns:
            False if even an empty memory is too small.
        """
        if size > self._bytes_max:
            return False
        self._size += size
        if self._size > self._bytes_max:
            self._forget_values()
            for block in self._blocks:
                if block is not None:
                    block.summaries.fill(None)
            self._lasting.clear()
            self._size, self._lasting_size = size, 0
        return True

    def _forget_values(self) -> None:
        self._values.clear()
        for table in list(self._tables.values()):
            table.clear()
        self._tables.clear()


def _remove_shape(tables: dict[Hashable, dict[int, Any]], shapes: set[int], number: int) -> None:
    """Forget a shape that has died; it holds no memory, and so no block, alive."""
    shapes.discard(number)
    for table in list(tables.values()):
        table.pop(number, None)
