# SPDX-License-Identifier: Apache-2.0
"""From a text to the id of the provider that has it: its uuid, or its name.

A dictionary of a million uuids takes hundreds of megabytes. Here the texts of the load are in two
sorted arrays, by a hash, and only later ones in a dictionary.

The map never drops entries: it also has deleted providers, and several providers for a text that
was used again. So a writer need not consider the readers of older snapshots; every reader checks
that the provider has the text in its own snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.model.ids import ProviderId

Ints = NDArray[np.int64]

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
