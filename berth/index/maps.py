# SPDX-License-Identifier: Apache-2.0
"""Maps for a whole fleet: from small integers to integers, and from texts to providers.

A `PagedMap` can be copied in no time, because pages are shared until one of them changes.

A `TextMap` leads from a uuid or a name to the id of the provider that has it. A dictionary of a
million uuids takes hundreds of megabytes. Here the texts of the load are in two sorted arrays, by
a hash, and only later ones in a dictionary. The map never drops entries: it also has deleted
providers, and several providers for a text that was used again. So a writer need not consider the
readers of older snapshots; every reader checks that the provider has the text in its own snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.model.ids import ProviderId

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


#: The dictionary may have this many texts, and one more for every eight in the arrays.
_RECENT_MAX: Final = 1000


class TextMap:
    """A map from texts to the providers that may have them; one writer, any number of readers."""

    def __init__(self, parts: Iterable[tuple[Iterable[bytes], Ints]] = ()) -> None:
        """A map of texts, each with the provider at the same place of the array beside it."""
        keys = [np.zeros(0, dtype=np.int64)]
        ids = [np.zeros(0, dtype=np.int64)]
        for texts, providers in parts:
            keys.append(np.fromiter(map(hash, texts), np.int64, len(providers)))
            ids.append(providers)
        unsorted = np.concatenate(keys)
        order = np.argsort(unsorted)
        #: Ascending: the hashes of the texts, and at the same places the providers.
        self._keys: Ints = unsorted[order]
        self._ids: Ints = np.concatenate(ids)[order]
        self._recent: dict[bytes, tuple[ProviderId, ...]] = {}

    @property
    def is_crowded(self) -> bool:
        """Whether a new map of the present blocks would be better."""
        return len(self._recent) > _RECENT_MAX + len(self._keys) // 8

    def add(self, text: bytes, provider: ProviderId) -> None:
        """Note that a provider has a text."""
        providers = self._recent.get(text, ())
        if provider not in providers:
            self._recent[text] = (*providers, provider)

    def find(self, text: bytes) -> tuple[ProviderId, ...]:
        """The providers that may have a text: whoever has it is among them."""
        keys, key = self._keys, np.int64(hash(text))
        begin = end = int(keys.searchsorted(key))
        while end < len(keys) and keys[end] == key:
            end += 1
        return (*self._recent.get(text, ()), *map(ProviderId, self._ids[begin:end].tolist()))
