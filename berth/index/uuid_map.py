# SPDX-License-Identifier: Apache-2.0
"""From a uuid to the id of the provider that has it.

A dictionary of a million uuids takes hundreds of megabytes. Here those that were there when the
fleet was loaded stand in two sorted arrays, and only later ones in a dictionary.

The map never forgets: it also names providers that are gone, and for one uuid several when it was
used again. So readers of older snapshots need not be thought of when it grows; every reader looks
whether the provider found has that uuid in its own snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.index.block import UUID_LENGTH, Block, Bytes, Ints, bytes_of
from berth.model.ids import ProviderId

Keys = NDArray[np.uint64]

#: Odd numbers without a pattern (digits of pi): a text's key is the sum of its words times these,
#: modulo 2^64. Other texts may have the same key.
_FACTORS: Final = np.array(
    [
        0x243F6A8885A308D3,
        0x13198A2E03707345,
        0xA4093822299F31D1,
        0x082EFA98EC4E6C89,
        0x452821E638D01377,
        0xBE5466CF34E90C6D,
        0xC0AC29B7C97C50DD,
        0x3F84D5B5B5470917,
        0x9216D5D98979FB1B,
    ],
    dtype=np.uint64,
)

#: So many uuids may stand in the dictionary, and one more for every eight in the arrays.
_RECENT_MAX: Final = 1000


class UuidMap:
    """One writer at a time, any number of readers meanwhile."""

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        keys = [np.zeros(0, dtype=np.uint64)]
        ids = [np.zeros(0, dtype=np.int64)]
        for block in blocks:
            keys.append(_keys(block.uuid_bytes.reshape(-1, UUID_LENGTH)))
            ids.append(block.provider_ids.ravel())
        unsorted = np.concatenate(keys)
        order = np.argsort(unsorted)
        #: Ascending: the keys of the uuids, and at the same places the providers.
        self._keys: Keys = unsorted[order]
        self._ids: Ints = np.concatenate(ids)[order]
        self._recent: dict[str, tuple[ProviderId, ...]] = {}

    @property
    def is_crowded(self) -> bool:
        """Whether a new map of the present blocks would be better."""
        return len(self._recent) > _RECENT_MAX + len(self._keys) // 8

    def add(self, uuid: str, provider: ProviderId) -> None:
        """Note that a provider has a uuid."""
        known = self._recent.get(uuid, ())
        if provider not in known:
            self._recent[uuid] = (*known, provider)

    def find(self, uuid: str) -> tuple[ProviderId, ...]:
        """The providers that may have a uuid: whoever has it is among them."""
        (key,) = _keys(bytes_of([uuid]))
        begin = np.searchsorted(self._keys, key, side="left")
        end = np.searchsorted(self._keys, key, side="right")
        return (*self._recent.get(uuid, ()), *map(ProviderId, self._ids[begin:end].tolist()))


def _keys(uuids: Bytes) -> Keys:
    """The keys of texts, of shape (N, 36)."""
    words = np.ascontiguousarray(uuids).view(np.uint32)
    keys: Keys = (words * _FACTORS).sum(axis=1, dtype=np.uint64)
    return keys
