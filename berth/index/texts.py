# SPDX-License-Identifier: Apache-2.0
"""Texts of many rows at once: templates, whose gaps are filled from columns; and the texts of
`provider_summaries`.

A few rows are formatted one by one. For many, one buffer takes all rows side by side, with a field
of the same width in each for every gap, into which NumPy copies a whole column. What is shorter
than its field is padded with zero bytes, which no text has, and which are removed at the end.

Trees of one shape have summaries that differ in uuids and numbers only, so that there is one
template for each shape. From microversion 1.29 on an answer describes whole trees, always alike:
such a text is kept until its tree changes.

Source: spec/allocation-candidates.md 7.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Generic, Literal, TypeVar, cast

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from berth.index.block import UUID_LENGTH, Block, Floats
from berth.index.shape import NO_PARENT, Shape
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, TraitId

Numbers = NDArray[np.float64] | NDArray[np.int64]

#: What fills a gap: a text for all rows, or for each row a text (of dtype V) or a whole number.
Column = bytes | NDArray[Any]

G = TypeVar("G", bound=Hashable)

#: Text of about this size is made at a time: the processor's cache holds it, and the allocator
#: gives its memory to the next one. Much larger buffers are new memory each time, and the kernel's
#: work to provide that takes longer than ours to fill it.
PIECE_BYTES: Final = 1 << 20

#: From this many rows on, texts are made by columns.
#: PERF bench, flat: up to ten times as fast as making them one by one, but begins with several
#: microseconds of preparation.
MANY_ROWS: Final = 24
#: From this many rows on, the digits of numbers are computed by columns.
#: PERF bench.unlimited: as above, but the preparation takes several tens of microseconds.
MANY_NUMBERS: Final = 128

#: What a gap takes, about, beside the text.
_GAP_BYTES: Final = 100

_PADDING: Final = b"\0"
#: A gap in the form of a template, and what stands for a percent sign meanwhile: texts are UTF-8.
_PLACE: Final = re.compile(rb"%[abd]")
_NO_TEXT: Final = b"\xff"
#: The first number of which float64 does not hold each one.
_EXACT_BELOW: Final = 2**53
#: Numbers with this many digits fit into int32.
_INT32_DIGITS: Final = 9


class Template(Struct, Generic[G], frozen=True, dict=True):
    """A text that is the same in many rows but for its gaps.

    Attributes:
        form: the text, to be formatted with a value for each gap.
        gaps: in their order; a name may occur several times.
    """

    form: bytes
    gaps: tuple[G, ...]

    @classmethod
    def of(cls, pieces: Iterable[bytes | tuple[G, bytes]]) -> Template[G]:
        """A template of some pieces.

        Args:
            pieces: texts, and gaps: a name, and how `%` writes its values, maybe in quotes.
        """
        form: list[bytes] = []
        gaps: list[G] = []
        for piece in pieces:
            if isinstance(piece, bytes):
                form.append(piece.replace(b"%", b"%%"))
            else:
                gap, written = piece
                gaps.append(gap)
                form.append(written)
        return cls(b"".join(form), tuple(gaps))

    @cached_property
    def literals(self) -> tuple[bytes, ...]:
        """The texts before each gap, and behind the last."""
        pieces = _PLACE.split(self.form.replace(b"%%", _NO_TEXT))
        return tuple([piece.replace(_NO_TEXT, b"%") for piece in pieces])

    @cached_property
    def literal_bytes(self) -> int:
        """The length of all literals."""
        return sum(map(len, self.literals))

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 2 * len(self.form) + _GAP_BYTES * len(self.gaps)

    def each(self, columns: Mapping[G, Column], count: int) -> list[bytes]:
        """The text of each of `count` rows."""
        if count < MANY_ROWS:
            few = self.formatted(_values(columns, count))
            return [each.replace(_PADDING, b"") for each in few]
        text = self._filled(columns, count)
        texts: list[bytes] = np.frombuffer(text, f"S{len(text) // count}").tolist()
        return [each.replace(_PADDING, b"") for each in texts] if _PADDING in text else texts

    def joined(self, columns: Mapping[G, Column], count: int) -> bytes:
        """The texts of `count` rows, one behind another."""
        return without_padding(self.padded(columns, count))

    def padded(self, columns: Mapping[G, Column], count: int) -> bytes | bytearray:
        """As `joined`; texts in columns keep their length, with zero bytes behind shorter ones."""
        if count < MANY_ROWS:
            return b"".join(self.formatted(_values(columns, count)))
        return self._filled(columns, count)

    def formatted(self, columns: Mapping[G, Sequence[object]]) -> list[bytes]:
        """The text of each row, made one by one.

        Args:
            columns: a value for each row.
        """
        form, in_order = self.form, [columns[gap] for gap in self.gaps]
        return [form % row for row in zip(*in_order, strict=True)]

    def length(self, lengths: Mapping[G, int], count: int) -> int:
        """How long the texts of `count` rows are together.

        Args:
            lengths: of all values of each gap together.
        """
        return self.literal_bytes * count + sum(lengths[gap] for gap in self.gaps)

    def _filled(self, columns: Mapping[G, Column], count: int) -> bytearray:
        fields = {gap: _field(column) for gap, column in columns.items()}
        first, *literals = self.literals
        row = bytearray(first)
        places: list[tuple[int, NDArray[np.void]]] = []
        for gap, literal in zip(self.gaps, literals, strict=True):
            field = fields[gap]
            if isinstance(field, bytes):
                row += field
            else:
                places.append((len(row), field))
                row += bytes(field.itemsize)
            row += literal
        text = row * count
        for offset, field in places:
            np.ndarray(count, field.dtype, text, offset, (len(row),))[:] = field
        return text


def without_padding(text: bytes | bytearray | memoryview) -> bytes:
    """The text without the zero bytes that fill short values."""
    whole = bytes(text)
    return whole.replace(_PADDING, b"") if _PADDING in whole else whole


def numbers_length(numbers: Numbers) -> int:
    """The length of all texts of some whole numbers together."""
    low, high = numbers.min().item(), numbers.max().item()
    if low == high:
        return len(b"%d" % low) * numbers.size
    if not _is_plain(low, high):
        return sum(len(b"%d" % number) for number in numbers.tolist())
    longer = (np.count_nonzero(numbers >= 10.0**n) for n in range(1, len(str(int(high)))))
    return numbers.size + int(sum(longer))


def _values(columns: Mapping[G, Column], count: int) -> dict[G, Sequence[object]]:
    """A value for each row."""
    return {
        gap: [column] * count if isinstance(column, bytes) else column.tolist()
        for gap, column in columns.items()
    }


def _field(column: Column) -> bytes | NDArray[np.void]:
    """A text for all rows, or elements of the same width, one for each row."""
    if isinstance(column, bytes):
        return column
    return column if column.dtype.kind == "V" else _numbers_column(column)


def _numbers_column(numbers: Numbers) -> bytes | NDArray[np.void]:
    """Whole numbers in decimal, at least one."""
    low, high = numbers.min().item(), numbers.max().item()
    if low == high:
        return b"%d" % low
    if len(numbers) < MANY_NUMBERS or not _is_plain(low, high):
        texts = np.array([b"%d" % number for number in numbers.tolist()])
        return texts.view(f"V{texts.itemsize}")
    width = len(str(int(high)))
    rest: NDArray[np.signedinteger] = numbers.astype(
        np.int32 if width <= _INT32_DIGITS else np.int64
    )
    digits = np.empty((width, len(numbers)), dtype=np.uint8)
    for place in range(width - 1, -1, -1):
        above = rest // 10
        digit = rest - above * 10 + ord("0")
        # What is above the first digit is padding.
        digits[place] = digit if place == width - 1 else digit * (rest != 0)
        rest = above
    return np.ascontiguousarray(digits.T).view(f"V{width}")[:, 0]


def _is_plain(low: float, high: float) -> bool:
    """Whether numbers between these have no sign and are exact; others are formatted one by
    one."""
    return low >= 0 and high < _EXACT_BELOW


Rows = NDArray[np.int64]

#: The uuid of a node, or a number of a class that it has.
Gap = int | tuple[Literal["capacity", "used"], ClassId, int]

#: Precedes each entry.
SEPARATOR: Final = b", "

#: What a text takes beside its letters.
OBJECT_BYTES: Final = 40


def template_of(
    shape: Shape,
    nodes: Sequence[int],
    class_names: Mapping[ClassId, str],
    trait_names: Mapping[TraitId, str] | None,
    *,
    places: bool,
) -> Template[Gap]:
    """The entries of some nodes of a shape, a separator before each.

    Args:
        class_names: the classes to show.
        trait_names: names of traits, None to show none. Traits are ordered by id.
        places: whether to show each node's parent and root.
    """
    return Template.of(_pieces(shape, nodes, class_names, trait_names, places=places))


def _pieces(
    shape: Shape,
    nodes: Sequence[int],
    class_names: Mapping[ClassId, str],
    trait_names: Mapping[TraitId, str] | None,
    *,
    places: bool,
) -> Iterator[bytes | tuple[Gap, bytes]]:
    for node in nodes:
        node_type = shape.node_types[node]
        yield SEPARATOR
        yield node, b'"%b"'
        yield b': {"resources": {'
        shown = (class_id for class_id in node_type.classes if class_id in class_names)
        for number, class_id in enumerate(shown):
            yield b", " if number else b""
            yield f'"{class_names[class_id]}": {{"capacity": '.encode()
            yield ("capacity", class_id, node), b"%d"
            yield b', "used": '
            yield ("used", class_id, node), b"%d"
            yield b"}"
        yield b"}"
        if trait_names is not None:
            traits = ", ".join(f'"{trait_names[trait]}"' for trait in sorted(node_type.traits))
            yield f', "traits": [{traits}]'.encode()
        if places:
            yield b', "parent_provider_uuid": '
            parent = shape.parents[node]
            yield b"null" if parent == NO_PARENT else (parent, b'"%b"')
            yield b', "root_provider_uuid": '
            yield 0, b'"%b"'
        yield b"}"


def tree_template_of(
    shape: Shape, class_names: Mapping[ClassId, str], trait_names: Mapping[TraitId, str]
) -> Template[Gap]:
    """The template of whole trees, as answers have them from 1.29 on."""
    return template_of(shape, range(shape.size), class_names, trait_names, places=True)


def texts_of(template: Template[Gap], block: Block, rows: Rows) -> list[bytes]:
    """The text for each of some rows."""
    return [
        text
        for part in windows(template, rows)
        for text in template.each(_columns(template, block, part), len(part))
    ]


def joined_text(template: Template[Gap], block: Block, rows: Rows) -> bytes:
    """The texts of some rows, one behind another."""
    return template.joined(_columns(template, block, rows), len(rows))


def joined_length(template: Template[Gap], block: Block, rows: Rows) -> int:
    """The length of `joined_text` if all uuids have 36 characters."""
    # All rows in whatever order: nothing needs to be copied.
    some = rows if len(rows) < block.rows else slice(None)
    lengths = {
        gap: UUID_LENGTH * len(rows)
        if isinstance(gap, int)
        else numbers_length(_numbers(block, gap, some))
        for gap in dict.fromkeys(template.gaps)
    }
    return template.length(lengths, len(rows))


def windows(template: Template[Gap], rows: Rows) -> Iterator[Rows]:
    """Some rows in parts whose texts have about `PIECE_BYTES`."""
    step = PIECE_BYTES // len(template.form) + 1
    return (rows[start : start + step] for start in range(0, len(rows), step))


def tree_texts(snapshot: Snapshot, block: Block, rows: Rows) -> list[bytes]:
    """The texts of whole trees of a snapshot's block, kept or made now.

    A text depends on its tree and on the names of its classes and traits. It is in
    `Block.summaries` until the tree changes, until a name of the block changes
    (`Fleet.set_names`), or until the memory is full.
    """
    kept: list[bytes | None] = block.summaries.take(rows).tolist()
    if not all(kept):
        missing = [place for place, text in enumerate(kept) if text is None]
        absent = rows[missing]
        made = texts_of(tree_template(snapshot, block.shape), block, absent)
        size = sum(map(len, made)) + OBJECT_BYTES * len(made)
        snapshot.memory.keep_texts(block, absent, made, size)
        for place, text in zip(missing, made, strict=True):
            kept[place] = text
    return cast("list[bytes]", kept)


def tree_text(snapshot: Snapshot, block: Block, rows: Rows) -> bytes:
    """The texts of whole trees, one behind another; if the memory has room to spare, they are
    kept."""
    kept = block.summaries.take(rows).tolist()
    if not all(kept):
        template, missing = tree_template(snapshot, block.shape), kept.count(None)
        size = joined_length(template, block, rows) * missing // len(rows) + OBJECT_BYTES * missing
        if not snapshot.memory.has_room_for_long(size):
            return joined_text(template, block, rows)
        kept = tree_texts(snapshot, block, rows)
    return b"".join(kept)


def tree_template(snapshot: Snapshot, shape: Shape) -> Template[Gap]:
    """The template of a shape's trees, kept or made now."""
    memory, names = snapshot.memory, snapshot.names
    template: Template[Gap] | None = memory.get_for(shape, names)
    if template is None:
        template = tree_template_of(shape, names.class_names, names.trait_names)
        memory.keep_for(shape, names, template, template.size)
    return template


def _columns(template: Template[Gap], block: Block, rows: Rows) -> dict[Gap, Column]:
    return {
        # PERF bench.unlimited: elements of dtype S take several times as long.
        gap: block.uuid_elements[gap].take(rows)
        if isinstance(gap, int)
        else _numbers(block, gap, rows)
        for gap in dict.fromkeys(template.gaps)
    }


def _numbers(
    block: Block, gap: tuple[Literal["capacity", "used"], ClassId, int], rows: Rows | slice
) -> Floats:
    name, class_id, node = gap
    columns = block.columns[class_id]
    numbers: Floats = getattr(columns, name)[block.shape.row_of_node[class_id][node], rows]
    return numbers
