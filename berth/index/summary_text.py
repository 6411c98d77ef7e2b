# SPDX-License-Identifier: Apache-2.0
"""The texts of `provider_summaries`, rendered from the arrays of a block and kept with it.

Trees of one shape have texts that differ in uuids and numbers only, so that a text is filled into
the template of its shape. From microversion 1.29 on an answer describes whole trees, always alike:
such a text is kept until its tree changes.

Source: spec/allocation-candidates.md 7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from berth.index.block import UUID_LENGTH, Block, Floats
from berth.index.shape import NO_PARENT, Shape
from berth.index.snapshot import Snapshot
from berth.index.text_columns import (
    PIECE_BYTES,
    Column,
    numbers_column,
    numbers_length,
    rows_text,
)
from berth.model.ids import ClassId, TraitId

Rows = NDArray[np.int64]

#: Precedes each entry.
SEPARATOR: Final = b", "

#: What a text takes beside its letters.
OBJECT_BYTES: Final = 40
#: What a template's names take beside its text, for each of its places.
PLACE_BYTES: Final = 100

#: From so many rows on, texts are made by columns.
#: PERF bench.unlimited: a tenth to a third of the time of making them one by one, but begins with
#: up to a hundred microseconds of preparation.
MANY_ROWS: Final = 128
#: Ends each row while many are made, and is in none: texts are UTF-8.
_ROW_END: Final = b"\xff"
#: A place in a template's text.
_PLACE: Final = re.compile(rb"%[sd]")


class Template(NamedTuple):
    """The text of some nodes of a shape with places to be formatted; a separator before each.

    Attributes:
        uuids: for each place in order the node whose uuid it takes, or None for a number; numbers
            come in pairs, capacity and used.
        amounts: (class, node) of each pair of numbers, in their order.
    """

    text: bytes
    uuids: tuple[int | None, ...]
    amounts: tuple[tuple[ClassId, int], ...]

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return len(self.text) + PLACE_BYTES * (len(self.uuids) + len(self.amounts))


def template_of(
    shape: Shape,
    nodes: Sequence[int],
    class_names: Mapping[ClassId, str],
    trait_names: Mapping[TraitId, str] | None,
    *,
    places: bool,
) -> Template:
    """The template of some nodes of a shape.

    Args:
        class_names: the classes to show.
        trait_names: names of traits, None to show none. Traits are ordered by id.
        places: whether to show each node's parent and root.
    """
    uuids: list[int | None] = []
    amounts: list[tuple[ClassId, int]] = []
    entries = []
    for node in nodes:
        node_type = shape.node_types[node]
        having = [class_id for class_id in node_type.classes if class_id in class_names]
        uuids += [node, *[None] * (2 * len(having))]
        amounts += [(class_id, node) for class_id in having]
        resources = ", ".join(
            f'"{class_names[class_id]}": {{"capacity": %d, "used": %d}}' for class_id in having
        )
        entry = f'"%s": {{"resources": {{{resources}}}'
        if trait_names is not None:
            traits = ", ".join(f'"{trait_names[trait]}"' for trait in sorted(node_type.traits))
            entry += f', "traits": [{traits}]'
        if places:
            parent = shape.parents[node]
            if parent == NO_PARENT:
                entry += ', "parent_provider_uuid": null'
            else:
                entry += ', "parent_provider_uuid": "%s"'
                uuids.append(parent)
            entry += ', "root_provider_uuid": "%s"'
            uuids.append(0)
        entries.append(entry + "}")
    text = b"".join(SEPARATOR + entry.encode() for entry in entries)
    return Template(text, tuple(uuids), tuple(amounts))


def tree_template_of(
    shape: Shape, class_names: Mapping[ClassId, str], trait_names: Mapping[TraitId, str]
) -> Template:
    """The template of whole trees, as answers have them from 1.29 on."""
    return template_of(shape, range(shape.size), class_names, trait_names, places=True)


def filled(template: Template, block: Block, rows: Rows) -> list[bytes]:
    """The text for each of some rows, made one by one."""
    texts = block.uuid_texts
    uuids = {node: texts[node, rows].tolist() for node in set(template.uuids) - {None}}
    numbers = (column.tolist() for column in _numbers(template, block, rows))
    columns = [next(numbers) if node is None else uuids[node] for node in template.uuids]
    return [template.text % values for values in zip(*columns, strict=True)]


def texts_of(template: Template, block: Block, rows: Rows) -> list[bytes]:
    """The text for each of some rows."""
    if len(rows) < MANY_ROWS:
        return filled(template, block, rows)
    texts: list[bytes] = []
    for part in windows(template, rows):
        text = rows_text([*_columns(template, block, part), _ROW_END], len(part))
        texts += text.split(_ROW_END)[:-1]
    return texts


def joined_text(template: Template, block: Block, rows: Rows) -> bytes:
    """The texts of some rows, one behind another."""
    if len(rows) < MANY_ROWS:
        return b"".join(filled(template, block, rows))
    return rows_text(_columns(template, block, rows), len(rows))


def joined_length(template: Template, block: Block, rows: Rows) -> int:
    """The length of `joined_text` if all uuids have 36 characters."""
    uuids_count = len(template.uuids) - template.uuids.count(None)
    fixed = sum(map(len, _PLACE.split(template.text))) + UUID_LENGTH * uuids_count
    # All rows in whatever order: nothing needs to be copied.
    some = rows if len(rows) < block.rows else slice(None)
    return fixed * len(rows) + sum(map(numbers_length, _numbers(template, block, some)))


def windows(template: Template, rows: Rows) -> Iterator[Rows]:
    """Some rows in parts whose texts have about `PIECE_BYTES`."""
    step = PIECE_BYTES // len(template.text) + 1
    return (rows[start : start + step] for start in range(0, len(rows), step))


def tree_texts(snapshot: Snapshot, block: Block, rows: Rows) -> list[bytes]:
    """The texts of whole trees of a snapshot's block, kept or made now.

    A text depends on its tree and on the names of its classes and traits. It is in
    `Block.summaries` until the tree changes, until a name of the block changes
    (`Fleet.set_names`), or until the memory is full.
    """
    texts: list[bytes | None] = block.summaries.take(rows).tolist()
    if not all(texts):
        missing = [place for place, text in enumerate(texts) if text is None]
        absent = rows[missing]
        made = texts_of(tree_template(snapshot, block.shape), block, absent)
        size = sum(map(len, made)) + OBJECT_BYTES * len(made)
        snapshot.memory.keep_texts(block, absent, made, size)
        for place, text in zip(missing, made, strict=True):
            texts[place] = text
    return cast("list[bytes]", texts)


def tree_text(snapshot: Snapshot, block: Block, rows: Rows) -> bytes:
    """The texts of whole trees, one behind another; if the memory has room to spare, they are
    kept."""
    texts = block.summaries.take(rows).tolist()
    if not all(texts):
        template, missing = tree_template(snapshot, block.shape), texts.count(None)
        size = joined_length(template, block, rows) * missing // len(rows) + OBJECT_BYTES * missing
        if not snapshot.memory.has_room_for_long(size):
            return joined_text(template, block, rows)
        texts = tree_texts(snapshot, block, rows)
    return b"".join(texts)


def tree_template(snapshot: Snapshot, shape: Shape) -> Template:
    """The template of a shape's trees, kept or made now."""
    memory, names = snapshot.memory, snapshot.names
    template: Template | None = memory.get_for(shape, names)
    if template is None:
        template = tree_template_of(shape, names.class_names, names.trait_names)
        memory.keep_for(shape, names, template, template.size)
    return template


def _columns(template: Template, block: Block, rows: Rows) -> list[Column]:
    """The columns of a template's text in some rows."""
    uuids = {node: block.uuid_elements[node].take(rows) for node in set(template.uuids) - {None}}
    numbers = map(numbers_column, _numbers(template, block, rows))
    first, *constants = _PLACE.split(template.text)
    columns: list[Column] = [first]
    for node, constant in zip(template.uuids, constants, strict=True):
        columns += next(numbers) if node is None else uuids[node], constant
    return columns


def _numbers(template: Template, block: Block, rows: Rows | slice) -> Iterator[Floats]:
    """Capacity and used amount, for each place in turn."""
    for class_id, node in template.amounts:
        columns = block.columns[class_id]
        line = block.shape.row_of_node[class_id][node]
        yield columns.capacity[line, rows]
        yield columns.used[line, rows]
