# SPDX-License-Identifier: Apache-2.0
"""Batches: many candidates that the search found together, and their hosts.

The host of a candidate is its anchor. A candidate of sharing providers only may have several
anchors; its host is the one of them with the smallest uuid.

Source: spec/beyond.md 2.6 and 2.7.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from berth.candidates.conditions import Rows
from berth.candidates.plan import Plan
from berth.candidates.sharing import SharingProvider
from berth.candidates.trees import Trees
from berth.index.block import UUID_LENGTH, Block, Floats, Ints
from berth.index.sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, ProviderId

#: What a batch takes, and each candidate in it: positions, scores, hosts and the like.
_BYTES_OF_BATCH: Final = 1_000
_BYTES_OF_CANDIDATE: Final = 64

#: What each choice gives of each class: one amount, or one for each candidate.
Given = Mapping[tuple[int, ClassId], int | Ints]


class SplitAmount(NamedTuple):
    """Where an amount comes from that may be split.

    Attributes:
        choices: at least one.
        amounts: of each choice, for each of `Trees.rows`; meaningful for the batch's positions.
    """

    choices: tuple[int, ...]
    amounts: Ints


class Batch(Struct, eq=False):
    """Candidates that differ only in their hosts.

    Attributes:
        choices: for each demand of the plan, see `berth.candidates.trees`.
        positions: indexes into `trees.rows`, one for each candidate.
        parts: for each split of the plan, where its amount comes from.
    """

    trees: Trees
    choices: tuple[int, ...]
    positions: Rows
    parts: tuple[SplitAmount, ...] = ()
    _rows: Rows | None = None

    @property
    def size(self) -> int:
        """The bytes that it takes, about, with what is kept beside it."""
        return _BYTES_OF_BATCH + _BYTES_OF_CANDIDATE * len(self.positions)

    @property
    def rows(self) -> Rows:
        """The rows of `trees.block`, one for each candidate; always the same array."""
        if self._rows is None:
            rows = self.trees.rows
            self._rows = rows if len(rows) == 1 == len(self.positions) else rows[self.positions]
        return self._rows

    def first(self, count: int) -> Batch:
        """The first `count` candidates of the batch."""
        if len(self.positions) <= count:
            return self
        return Batch(self.trees, self.choices, self.positions[:count], self.parts)

    def split(self, count: int) -> Iterator[Batch]:
        """The candidates of the batch in batches of `count` at most."""
        for start in range(0, len(self.positions), count):
            positions = self.positions[start : start + count]
            yield Batch(self.trees, self.choices, positions, self.parts)

    def at(self, some: Mask | Rows) -> Batch:
        """Some of the candidates, by a mask or by their places in the batch."""
        return Batch(self.trees, self.choices, self.positions[some], self.parts)

    @property
    def all_choices(self) -> tuple[int, ...]:
        """The choices for each demand, and then those of each split."""
        parts = (choice for part in self.parts for choice in part.choices)
        return (*self.choices, *parts)

    @property
    def is_anchored(self) -> bool:
        """Whether the host of each candidate is the tree that it was found from: it has a provider
        that no other tree can use, or several of one split."""
        shape, sharing = self.trees.block.shape, self.trees.sharing_providers.sharing
        return (
            not sharing.by_aggregate
            or any(
                choice < shape.size and sharing.trait not in shape.node_types[choice].traits
                for choice in self.all_choices
            )
            or any(len(part.choices) > 1 for part in self.parts)
        )

    @property
    def key(self) -> Hashable:
        """The same for batches whose candidates differ in hosts and amounts only."""
        size, choices = self.trees.block.shape.size, self.all_choices
        # Which trees share is part of a shape.
        is_shared = max(choices, default=0) >= size or not self.is_anchored
        shape = self.trees.block.shape.number if is_shared else None
        return shape, size, self.choices, tuple(part.choices for part in self.parts)

    def given(self, plan: Plan) -> dict[tuple[int, ClassId], int | Ints]:
        """What each choice gives of each class: one amount, or one for each candidate."""
        given: dict[tuple[int, ClassId], int | Ints] = {}
        for demand, choice in zip(plan.demands, self.choices, strict=True):
            for class_id, amount in demand.amounts:
                key = choice, class_id
                given[key] = given.get(key, 0) + amount
        for split, part in zip(plan.splits, self.parts, strict=True):
            for choice, amounts in zip(part.choices, part.amounts, strict=True):
                key = choice, split.class_id
                given[key] = given.get(key, 0) + amounts[self.positions]
        return given

    def serving(self, plan: Plan) -> dict[str, tuple[int, ...]]:
        """suffix -> the choices that serve the group, each once."""
        serving: dict[str, dict[int, None]] = {}
        for demand, choice in zip(plan.demands, self.choices, strict=True):
            serving.setdefault(demand.suffix, {})[choice] = None
        for split, part in zip(plan.splits, self.parts, strict=True):
            serving.setdefault(split.demand.suffix, {}).update(dict.fromkeys(part.choices))
        return {suffix: tuple(choices) for suffix, choices in serving.items()}


class Duplicates:
    """Recognises candidates that were already found from another anchor.

    Only a candidate whose providers all share can be found twice: any other provider is in one
    tree only.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._trait = snapshot.sharing.trait
        #: The providers of a candidate -> the anchor from which it was found: (block_id, row).
        self._anchor_of: dict[tuple[ProviderId, ...], tuple[int, int]] = {}

    def removed_from(self, trees: Trees, choices: tuple[int, ...], positions: Rows) -> Rows:
        """The positions at which a candidate is new."""
        shape, trait = trees.block.shape, self._trait
        if not len(positions) or not (trees.serving or trait in shape.traits):
            return positions
        local = [choice for choice in choices if choice < shape.size]
        if any(trait not in shape.node_types[node].traits for node in local):
            return positions
        if not local and trees.served_by is None:
            # All rows have the same candidate.
            positions = positions[:1]
        new = [self._is_new(trees, choices, position) for position in positions.tolist()]
        return positions[np.array(new, dtype=np.bool_)]

    def _is_new(self, trees: Trees, choices: tuple[int, ...], position: int) -> bool:
        anchor = trees.block_id, int(trees.rows[position])
        key = tuple(trees.provider_id(choice, position) for choice in choices)
        return self._anchor_of.setdefault(key, anchor) == anchor


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
        return tree_keys(self.block_id, self.rows)

    def uuid_texts(self) -> NDArray[np.bytes_]:
        """The uuids of the hosts."""
        texts: NDArray[np.bytes_] = self.block.uuid_texts[0].take(self.rows)
        return texts


R = TypeVar("R", int, Rows)


def tree_keys(block_id: int, rows: R) -> R:
    """A number for each of some trees of a block, different for different trees of a snapshot."""
    return block_id << _ROW_BITS | rows


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


def of_hosts(snapshot: Snapshot, batch: Batch, value: Callable[[Hosts], NDArray[T]]) -> NDArray[T]:
    """A value of the host of each candidate."""
    return in_places(batch, hosts_of(snapshot, batch), value)


def in_places(
    batch: Batch, several: Sequence[Hosts], value: Callable[[Hosts], NDArray[T]]
) -> NDArray[T]:
    """A value of the host of each candidate.

    Args:
        several: the hosts of the batch (`hosts_of`).
    """
    values = [value(hosts) for hosts in several]
    if len(values) == 1:
        return values[0]
    spread = np.empty(len(batch.positions), dtype=values[0].dtype)
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
