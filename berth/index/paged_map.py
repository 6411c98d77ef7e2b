# SPDX-License-Identifier: Apache-2.0
"""A map from small integers to integers that can be copied in no time: pages are shared until one
of them changes."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: What is read where nothing was written.
ABSENT: Final = -1

_PAGE_BITS: Final = 12
_PAGE_SIZE: Final = 1 << _PAGE_BITS
_PAGE_MASK: Final = _PAGE_SIZE - 1


class PagedMap:
    """Keys are database ids (non-negative, dense in the main); values are non-negative."""

    def __init__(self) -> None:
        self._pages: dict[int, Ints] = {}
        self._own: set[int] = set()

    def fork(self) -> PagedMap:
        """A copy that shares all pages; from now on neither map changes a page that the other can
        see."""
        twin = PagedMap()
        twin._pages = self._pages.copy()
        self._own = set()
        return twin

    def get(self, key: int) -> int:
        """The value, or `ABSENT`."""
        page = self._pages.get(key >> _PAGE_BITS)
        return ABSENT if page is None else int(page[key & _PAGE_MASK])

    def ascending(self) -> Ints:
        """All values, in the order of their keys."""
        if not self._pages:
            return np.zeros(0, dtype=np.int64)
        values = np.concatenate([self._pages[number] for number in sorted(self._pages)])
        present: Ints = values[values != ABSENT]
        return present

    def set_many(self, keys: Ints, values: Ints) -> None:
        """Write many values at once: arrays of the same length."""
        numbers = keys >> _PAGE_BITS
        for number in np.unique(numbers).tolist():
            here = numbers == number
            self._writable(number)[keys[here] & _PAGE_MASK] = values[here]

    def remove(self, key: int) -> None:
        """Forget a key; nothing happens when it is not there."""
        if self.get(key) != ABSENT:
            self._writable(key >> _PAGE_BITS)[key & _PAGE_MASK] = ABSENT

    def _writable(self, number: int) -> Ints:
        page = self._pages.get(number)
        if page is None:
            page = np.full(_PAGE_SIZE, ABSENT, dtype=np.int64)
        elif number not in self._own:
            page = page.copy()
        else:
            return page
        self._pages[number] = page
        self._own.add(number)
        return page
