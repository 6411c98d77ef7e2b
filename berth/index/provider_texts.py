# SPDX-License-Identifier: Apache-2.0
"""The JSON of providers, rendered from the arrays of blocks: one at a time, or a whole list in
pieces."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import IntEnum
from typing import Final

import numpy as np

from berth.index.block import UUID_LENGTH, Block, Ints
from berth.index.providers import time_of
from berth.index.shape import NO_PARENT
from berth.index.snapshot import Location, Snapshot, location_of, unpacked
from berth.index.texts import MANY_ROWS, Column, Template, numbers_length
from berth.store.index_feed import NO_TIME

#: Providers rendered at a time.
PART: Final = 1000

_NULL: Final = b"null"


class Field(IntEnum):
    """What differs between the texts of two providers."""

    UUID = 0
    #: As JSON.
    NAME = 1
    GENERATION = 2
    #: Its parent's uuid as JSON, or null.
    PARENT = 3
    #: Its root's uuid.
    ROOT = 4


def provider_text(form: Template[Field], block: Block, node: int, row: int) -> bytes:
    """The text of one provider; `form` takes bytes for each gap but the generation."""
    parent = block.shape.parents[node]
    values = (
        block.uuid_text(node, row),
        block.names.item(node, row),
        block.generations.item(node, row),
        _NULL if parent == NO_PARENT else b'"%b"' % block.uuid_text(parent, row),
        block.uuid_text(0, row),
    )
    return form.form % tuple([values[field] for field in form.gaps])


class ProviderList:
    """Some providers of a snapshot, as a list in JSON.

    Attributes:
        length: of the whole text.
        modified: when the newest of them was changed, or created; None if unknown.
    """

    def __init__(
        self, snapshot: Snapshot, places: Ints, form: Template[Field], head: bytes
    ) -> None:
        """
        Args:
            places: packed locations, in order.
            form: of a provider.
            head: the text before the list's elements.
        """
        self._snapshot = snapshot
        self._places = places
        self._form = form
        self._head = head
        newest = NO_TIME
        self.length = len(head) + len(_TAIL) + max(len(places) - 1, 0)
        if len(places) < MANY_ROWS:
            # PERF bench, hosts: agents poll this, and array operations would take longer.
            few = [(snapshot.block(at.block_id), at.node, at.row) for at in _each(places)]
            self._few = [provider_text(form, *at) for at in few]
            self.length += sum(map(len, self._few))
            newest = max((block.modified.item(*at) for block, *at in few), default=NO_TIME)
        else:
            for block, nodes, rows, _ in _by_block(snapshot, places):
                newest = max(newest, int(block.modified[nodes, rows].max()))
                if not snapshot.has_short_uuids:
                    self.length += _length(form, block, nodes, rows)
            if snapshot.has_short_uuids:
                self.length = sum(map(len, self.pieces()))
        self.modified: datetime | None = time_of(newest)

    def pieces(self) -> Iterator[bytes]:
        """The text, `PART` providers at a time."""
        before = self._head
        if len(self._places) < MANY_ROWS:
            yield before + b",".join(self._few) + _TAIL
            return
        for begin in range(0, len(self._places), PART):
            yield before + self._text(self._places[begin : begin + PART])
            before = b","
        yield _TAIL

    def _text(self, places: Ints) -> bytes:
        """The texts of some providers."""
        texts = np.empty(len(places), np.object_)
        for block, nodes, rows, at in _by_block(self._snapshot, places):
            texts[at] = _texts(self._form, block, nodes, rows)
        return b",".join(texts.tolist())


_TAIL: Final = b"]}"


def _each(places: Ints) -> Iterator[Location]:
    return (at for place in places.tolist() if (at := location_of(place)) is not None)


def _by_block(snapshot: Snapshot, places: Ints) -> Iterator[tuple[Block, Ints, Ints, Ints]]:
    """Each block of some places, with their nodes and rows, and where they are among the places."""
    block_ids, rows, nodes = unpacked(places)
    order = np.argsort(block_ids, kind="stable")
    edges = np.flatnonzero(np.diff(block_ids[order])) + 1
    for at in np.split(order, edges):
        yield snapshot.block(int(block_ids[at[0]])), nodes[at], rows[at], at


def _length(form: Template[Field], block: Block, nodes: Ints, rows: Ints) -> int:
    """How long the texts of some providers are together, if all uuids have 36 characters."""
    children = int(np.count_nonzero(_parents(block)[nodes] != NO_PARENT))
    lengths = {
        Field.UUID: UUID_LENGTH * len(nodes),
        Field.NAME: int(block.names.lengths(nodes, rows).sum()),
        Field.GENERATION: numbers_length(block.generations[nodes, rows]),
        Field.PARENT: children * (UUID_LENGTH + 2) + (len(nodes) - children) * len(_NULL),
        Field.ROOT: UUID_LENGTH * len(nodes),
    }
    return form.length(lengths, len(nodes))


def _texts(form: Template[Field], block: Block, nodes: Ints, rows: Ints) -> list[bytes]:
    """The texts of some providers of a block."""
    if len(nodes) < MANY_ROWS:
        return [
            provider_text(form, block, node, row)
            for node, row in zip(nodes.tolist(), rows.tolist(), strict=True)
        ]
    return form.each(_columns(form, block, nodes, rows), len(nodes))


def _columns(form: Template[Field], block: Block, nodes: Ints, rows: Ints) -> dict[Field, Column]:
    uuids = block.uuid_elements
    columns: dict[Field, Column] = {
        Field.UUID: uuids[nodes, rows],
        Field.NAME: block.names.padded(nodes, rows),
        Field.GENERATION: block.generations[nodes, rows],
    }
    if Field.ROOT in form.gaps:
        columns[Field.PARENT] = _parents_column(block, nodes, rows)
        columns[Field.ROOT] = uuids[0].take(rows)
    return columns


def _parents_column(block: Block, nodes: Ints, rows: Ints) -> Column:
    parents = _parents(block)[nodes]
    roots = parents == NO_PARENT
    if roots.all():
        return _NULL
    quoted = np.full((len(nodes), UUID_LENGTH + 2), ord('"'), np.uint8)
    quoted[:, 1:-1] = block.uuid_bytes[parents, rows]
    quoted[roots] = np.frombuffer(_NULL.ljust(UUID_LENGTH + 2, b"\0"), np.uint8)
    return quoted.view(f"V{UUID_LENGTH + 2}")[:, 0]


def _parents(block: Block) -> Ints:
    return np.array(block.shape.parents, np.int64)
