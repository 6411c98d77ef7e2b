# SPDX-License-Identifier: Apache-2.0
"""The hosts of candidates: their anchors.

A candidate of sharing providers only may have several anchors; its host is the one of them with the
smallest uuid.

Source: spec/beyond.md 2.6 and 2.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.candidates.batch import Batch
from berth.candidates.masks import Rows
from berth.candidates.sharing import SharingProvider
from berth.index.block import UUID_LENGTH, Block, Floats
from berth.index.snapshot import Snapshot

T = TypeVar("T", bound=np.generic)

Hashes = NDArray[np.uint64]

#: Numbers that scatter bits: odd, with bits all over (SplitMix64).
_SCATTER: Final = np.uint64(0x9E3779B97F4A7C15)
_FOLD: Final = np.uint64(32)
#: The words of 32 bits in the text of a uuid.
_WORDS: Final = UUID_LENGTH // 4

_HEXADECIMAL: Final = "0123456789abcdefABCDEF"
#: ASCII -> the value of a hexadecimal digit, 0 for anything else.
_DIGITS: Final = np.array(
    [int(chr(code), 16) if chr(code) in _HEXADECIMAL else 0 for code in range(256)], dtype=np.uint8
)
#: Where the digits of a uuid stand in its text.
_DIGIT_PLACES: Final = np.array([n for n in range(UUID_LENGTH) if n not in (8, 13, 18, 23)])
_UUID_BYTES: Final = 16


#: Of the key of a host; its block is in the bits above.
_ROW_BITS: Final = 32


class Hosts(NamedTuple):
    """The hosts of some candidates of one batch, all in one block.

    Attributes:
        rows: of the block; one for each of the candidates.
        at: the places of these candidates in the batch.
    """

    block_id: int
    block: Block
    rows: Rows
    at: slice | Rows

    @property
    def keys(self) -> Rows:
        """A number for each host, different for different hosts of a snapshot."""
        return self.block_id << _ROW_BITS | self.rows

    def uuid_texts(self) -> NDArray[np.bytes_]:
        """The uuids of the hosts."""
        texts: NDArray[np.bytes_] = self.block.uuid_texts[0].take(self.rows)
        return texts


def located(keys: Rows) -> tuple[Rows, Rows]:
    """The blocks and the rows of the hosts with some keys."""
    return keys >> _ROW_BITS, keys & ((1 << _ROW_BITS) - 1)


def hosts_of(snapshot: Snapshot, batch: Batch) -> Sequence[Hosts]:
    """The hosts of a batch: in one block, unless the candidates consist of sharing providers."""
    trees = batch.trees
    if batch.is_anchored:
        return (Hosts(trees.block_id, trees.block, batch.rows, slice(None)),)
    of_block: dict[int, tuple[list[int], list[int]]] = {}
    for place, position in enumerate(batch.positions.tolist()):
        providers = tuple(trees.provider_id(choice, position) for choice in batch.all_choices)
        own = trees.block_id, int(trees.rows[position])
        block_id, row = trees.sharing_providers.least_anchor(providers) or own
        rows, places = of_block.setdefault(block_id, ([], []))
        rows.append(row)
        places.append(place)
    return tuple(
        Hosts(block_id, snapshot.block(block_id), np.array(rows), np.array(places))
        for block_id, (rows, places) in of_block.items()
    )


def in_places(values: Sequence[NDArray[T]], several: Sequence[Hosts]) -> NDArray[T]:
    """Values of hosts, put in the order of their candidates."""
    if len(values) == 1:
        return values[0]
    spread = np.empty(sum(map(len, values)), dtype=values[0].dtype)
    for each, hosts in zip(values, several, strict=True):
        spread[hosts.at] = each
    return spread


def serving_each(batch: Batch, choice: int) -> list[SharingProvider]:
    """The sharing provider that a choice means, for each candidate of a batch."""
    trees = batch.trees
    place = choice - trees.block.shape.size
    if trees.served_by is None:
        return [trees.serving[place]] * len(batch.positions)
    numbers = trees.served_by[place, batch.positions].tolist()
    return [trees.sharing_providers[number] for number in numbers]


def scattered(hosts: Hosts, seed: int) -> Hashes:
    """A hash of the seed and of the uuid of each host: an order that is the same for the same
    seed."""
    # PERF bench, candidates: one sum of products, because an empty fleet has equal scores.
    words = hosts.block.uuid_elements[0].take(hosts.rows).view("<u4").reshape(-1, _WORDS)
    factors = (np.arange(1, _WORDS + 1, dtype=np.uint64) + np.uint64(seed)) * _SCATTER
    hashes: Hashes = np.einsum("ij,j->i", words, factors | np.uint64(1))
    hashes ^= hashes >> _FOLD
    hashes *= _SCATTER
    return hashes


def random_of(hosts: Hosts, seed: int) -> Floats:
    """For each host a number from 0 to 1 that follows from the seed and its uuid alone.

    Source: spec/beyond.md 2.7, `random`.
    """
    prefix = seed.to_bytes(8, "big")
    digits = _DIGITS[hosts.block.uuid_bytes[0][hosts.rows][:, _DIGIT_PLACES]]
    uuids = (digits[:, 0::2] << 4 | digits[:, 1::2]).tobytes()
    hashes = [
        blake2b(prefix + uuids[start : start + _UUID_BYTES]).digest()[:8]
        for start in range(0, len(uuids), _UUID_BYTES)
    ]
    numbers: Floats = np.frombuffer(b"".join(hashes), dtype=">u8") / 2.0**64
    return numbers
