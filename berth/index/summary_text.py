# SPDX-License-Identifier: Apache-2.0
"""The texts of `provider_summaries`: made from the arrays of a block, and kept with it.

Trees of one shape have texts that differ in uuids and numbers only, so that a text is filled into
the template of its shape. From microversion 1.29 on an answer describes whole trees, always alike:
such a text is kept until its tree changes.

Source: spec/allocation-candidates.md 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from berth.index.block import UUID_LENGTH, Block
from berth.index.shape import NO_PARENT, Shape
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, TraitId

Rows = NDArray[np.int64]

#: What stands before each entry.
SEPARATOR: Final = b", "

#: The texts that one index keeps take about so many bytes at most; one more, and all are forgotten.
KEPT_BYTES_MAX: Final = 64 << 20
#: What an object takes beside its letters.
OBJECT_BYTES: Final = 40


class Template(NamedTuple):
    """The text of some nodes of a shape with places to be formatted; a separator before each.

    Attributes:
        uuids: the nodes whose uuids stand at the places, in their order; None where a number
            stands: numbers come in pairs, capacity and used.
        amounts: (class, node) of each pair of numbers, in their order.
    """

    text: bytes
    uuids: tuple[int | None, ...]
    amounts: tuple[tuple[ClassId, int], ...]


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
        trait_names: what traits are called, None to show none. They stand in the order of their
            ids.
        places: whether to show each node's parent and root.
    """
    uuids: list[int | None] = []
    amounts: list[tuple[ClassId, int]] = []
    entries = []
    for node in nodes:
        kind = shape.kinds[node]
        having = [class_id for class_id in kind.classes if class_id in class_names]
        uuids += [node, *[None] * (2 * len(having))]
        amounts += [(class_id, node) for class_id in having]
        resources = ", ".join(
            f'"{class_names[class_id]}": {{"capacity": %d, "used": %d}}' for class_id in having
        )
        entry = f'"%s": {{"resources": {{{resources}}}'
        if trait_names is not None:
            traits = ", ".join(f'"{trait_names[trait]}"' for trait in sorted(kind.traits))
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
    """The text for each of some rows."""
    texts = block.uuid_bytes.view(f"S{UUID_LENGTH}")[:, :, 0]
    uuids = {node: texts[node, rows].tolist() for node in set(template.uuids) - {None}}
    numbers: Iterator[list[int]] = iter(
        column
        for class_id, node in template.amounts
        for column in _amounts(block, class_id, node, rows)
    )
    columns = [next(numbers) if node is None else uuids[node] for node in template.uuids]
    return [template.text % values for values in zip(*columns, strict=True)]


def tree_texts(snapshot: Snapshot, block: Block, rows: Rows) -> list[bytes]:
    """The texts of whole trees of a snapshot's block, kept or made now.

    A text depends on its tree, and on what classes and traits are called. It is kept in
    `Block.summaries` and ends with a change of its tree, with a block whose names have changed
    (`Fleet.set_names`), or when the index keeps `KEPT_BYTES_MAX`.
    """
    texts: list[bytes | None] = block.summaries.take(rows).tolist()
    if not all(texts):
        missing = [place for place, text in enumerate(texts) if text is None]
        absent = rows[missing]
        made = filled(_tree_template(snapshot, block.shape), block, absent)
        _keep(snapshot, block, absent, made)
        for place, text in zip(missing, made, strict=True):
            texts[place] = text
    return cast("list[bytes]", texts)


def _tree_template(snapshot: Snapshot, shape: Shape) -> Template:
    """The template of a shape's trees, kept in the snapshot's memory: it ends with the shape, or
    with the first change of any name."""
    templates, names = snapshot.memory.templates, snapshot.names
    template = templates.get(shape)
    if template is None:
        template = tree_template_of(shape, names.class_names, names.trait_names)
        templates[shape] = template
    return template


def _keep(snapshot: Snapshot, block: Block, rows: Rows, texts: list[bytes]) -> None:
    """Keep texts with a block of the snapshot, as far as there is room for them."""
    kept = snapshot.memory.texts
    size = sum(map(len, texts)) + OBJECT_BYTES * len(texts)
    if size > KEPT_BYTES_MAX:
        return
    if kept.size + size > KEPT_BYTES_MAX:
        for _, each in snapshot.occupied():
            each.summaries.fill(None)
        kept.size = 0
    block.summaries[rows] = texts
    kept.size += size


def _amounts(block: Block, class_id: ClassId, node: int, rows: Rows) -> tuple[list[int], list[int]]:
    columns = block.columns[class_id]
    line = block.shape.row_of_node[class_id][node]
    return columns.capacity[line, rows].tolist(), columns.used[line, rows].tolist()
