# SPDX-License-Identifier: Apache-2.0
"""The JSON of providers, rendered from the arrays of blocks: one at a time, or a whole list in
pieces.

Most of a provider's text is links, which differ by its uuid only. Providers of one block whose
texts are of one length fill a matrix of bytes, a column of text at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.index.block import UUID_LENGTH, Block, Bytes, Ints
from berth.index.providers import time_of
from berth.index.shape import NO_PARENT
from berth.index.snapshot import Location, Snapshot, location_of, unpacked
from berth.store.index_feed import NO_TIME

#: Providers rendered at a time.
PART: Final = 1000

#: Fewer providers than this are rendered one by one.
_FEW: Final = 12

_NULL: Final = b"null"
_QUOTED_LENGTH: Final = UUID_LENGTH + 2

#: The smallest generation of each number of digits but the first.
_POWERS: Final = 10 ** np.arange(1, 10)


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


@dataclass(frozen=True)
class ProviderForm:
    """The JSON of a provider.

    Attributes:
        literals: the texts before each field, and behind the last.
        fields: in their order.
    """

    literals: tuple[bytes, ...]
    fields: tuple[Field, ...]

    @cached_property
    def template(self) -> bytes:
        """The text with a place for each field."""
        return b"%b".join(literal.replace(b"%", b"%%") for literal in self.literals)

    @cached_property
    def size(self) -> int:
        """The bytes of the literals and of the uuids that a provider always has."""
        uuids = sum(field in (Field.UUID, Field.ROOT) for field in self.fields)
        return sum(map(len, self.literals)) + uuids * UUID_LENGTH

    def text(self, block: Block, node: int, row: int) -> bytes:
        """The text of one provider."""
        parent = block.shape.parents[node]
        values = (
            block.uuid_text(node, row),
            block.names.item(node, row),
            b"%d" % block.generations.item(node, row),
            _NULL if parent == NO_PARENT else b'"%b"' % block.uuid_text(parent, row),
            block.uuid_text(0, row),
        )
        return self.template % tuple([values[field] for field in self.fields])


class ProviderList:
    """Some providers of a snapshot, as a list in JSON.

    Attributes:
        length: of the whole text.
        modified: when the newest of them was changed, or created; None if unknown.
    """

    def __init__(self, snapshot: Snapshot, places: Ints, form: ProviderForm, head: bytes) -> None:
        """
        Args:
            places: packed locations, in order.
            head: the text before the list's elements.
        """
        self._snapshot = snapshot
        self._places = places
        self._form = form
        self._head = head
        self.length = len(head) + len(_TAIL) + max(len(places) - 1, 0)
        newest = NO_TIME
        if len(places) < _FEW:
            # PERF bench, hosts: agents poll this, and array operations would take longer.
            few = [(snapshot.block(at.block_id), at.node, at.row) for at in _each(places)]
            self._few = [form.text(*at) for at in few]
            self.length += sum(map(len, self._few))
            newest = max((block.modified.item(*at) for block, *at in few), default=NO_TIME)
        else:
            for block, nodes, rows, _ in _by_block(snapshot, places):
                newest = max(newest, int(block.modified[nodes, rows].max()))
                self.length += _length(form, block, nodes, rows)
        self.modified: datetime | None = time_of(newest)

    def pieces(self) -> Iterator[bytes]:
        """The text, `PART` providers at a time."""
        before = self._head
        if len(self._places) < _FEW:
            yield before + b",".join(self._few) + _TAIL
            return
        for begin in range(0, len(self._places), PART):
            yield before + b",".join(self._texts(self._places[begin : begin + PART]))
            before = b","
        yield _TAIL

    def _texts(self, places: Ints) -> Sequence[bytes]:
        texts = np.empty(len(places), np.object_)
        for block, nodes, rows, at in _by_block(self._snapshot, places):
            _render(self._form, block, nodes, rows, texts, at)
        rendered: list[bytes] = texts.tolist()
        return rendered


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


def _length(form: ProviderForm, block: Block, nodes: Ints, rows: Ints) -> int:
    """How long the texts of some providers are together."""
    if _has_short_uuids(block, rows):
        return sum(
            len(form.text(block, node, row))
            for node, row in zip(nodes.tolist(), rows.tolist(), strict=True)
        )
    length = form.size * len(nodes)
    if Field.NAME in form.fields:
        length += int(block.names.lengths(nodes, rows).sum())
    if Field.GENERATION in form.fields:
        length += int(_digits(block.generations[nodes, rows]).sum())
    if Field.PARENT in form.fields:
        children = int(np.count_nonzero(_parents(block)[nodes] != NO_PARENT))
        length += children * _QUOTED_LENGTH + (len(nodes) - children) * len(_NULL)
    return length


def _render(
    form: ProviderForm,
    block: Block,
    nodes: Ints,
    rows: Ints,
    texts: NDArray[np.object_],
    at: Ints,
) -> None:
    """Put the texts of some providers of a block where they belong."""
    if len(at) < _FEW or _has_short_uuids(block, rows):
        _render_each(form, block, nodes, rows, texts, at)
        return
    generations = block.generations[nodes, rows]
    parents = _parents(block)[nodes]
    looks = (
        block.names.lengths(nodes, rows) * 32 + _digits(generations) * 2 + (parents != NO_PARENT)
    )
    for look in np.unique(looks).tolist():
        alike = np.flatnonzero(looks == look)
        some, of_rows, to = nodes[alike], rows[alike], at[alike]
        if len(alike) < _FEW:
            _render_each(form, block, some, of_rows, texts, to)
            continue
        uuids = block.uuid_bytes
        values = {
            Field.UUID: uuids[some, of_rows],
            Field.NAME: block.names.matrix(some, of_rows),
            Field.GENERATION: _decimals(generations[alike]),
            Field.ROOT: uuids[0, of_rows],
        }
        if look & 1:
            values[Field.PARENT] = _quoted(uuids[parents[alike], of_rows])
        else:
            values[Field.PARENT] = np.frombuffer(_NULL, np.uint8)[None, :]
        texts[to] = _matrix(form, values, len(alike))


def _render_each(
    form: ProviderForm,
    block: Block,
    nodes: Ints,
    rows: Ints,
    texts: NDArray[np.object_],
    at: Ints,
) -> None:
    for place, node, row in zip(at.tolist(), nodes.tolist(), rows.tolist(), strict=True):
        texts[place] = form.text(block, node, row)


def _matrix(form: ProviderForm, values: dict[Field, Bytes], count: int) -> NDArray[np.object_]:
    """The texts of providers that differ in no length.

    Args:
        values: each of shape (count, width), or (1, width) if all have the same.
    """
    widths = [values[field].shape[1] for field in form.fields]
    blank = [literal + bytes(width) for literal, width in zip(form.literals, widths, strict=False)]
    template = b"".join(blank) + form.literals[-1]
    matrix = np.empty((count, len(template)), np.uint8)
    matrix[:] = np.frombuffer(template, np.uint8)
    begin = 0
    for literal, field, width in zip(form.literals, form.fields, widths, strict=False):
        begin += len(literal)
        matrix[:, begin : begin + width] = values[field]
        begin += width
    return matrix.view(f"S{len(template)}")[:, 0].astype(np.object_)


def _parents(block: Block) -> Ints:
    return np.array(block.shape.parents, np.int64)


def _has_short_uuids(block: Block, rows: Ints) -> bool:
    """Whether a provider of some trees has a uuid without dashes, as only old databases do."""
    return not block.uuid_bytes[:, rows, -1].all()


def _digits(generations: Ints) -> Ints:
    """How many digits each has."""
    return _POWERS.searchsorted(generations, side="right") + 1


def _decimals(generations: Ints) -> Bytes:
    """Numbers of the same number of digits as text."""
    powers = 10 ** np.arange(int(_digits(generations[:1])[0]) - 1, -1, -1)
    digits: Bytes = (generations[:, None] // powers % 10 + ord("0")).astype(np.uint8)
    return digits


def _quoted(uuids: Bytes) -> Bytes:
    quoted = np.full((len(uuids), _QUOTED_LENGTH), ord('"'), np.uint8)
    quoted[:, 1:-1] = uuids
    return quoted
