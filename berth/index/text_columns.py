# SPDX-License-Identifier: Apache-2.0
"""Texts of many rows at once, column by column.

A row's text is a sequence of columns: some are the same in all rows, the others are uuids and
numbers. One buffer takes all rows side by side, with a field of the same width in each, into which
NumPy copies a whole column. What is shorter than its field is padded with zero bytes, which no text
has, and which are removed at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.index.block import Floats

#: A column: a text for all rows, or void elements, one for each row.
Column = bytes | NDArray[np.void]

#: Text of about this size is made at a time: the processor's cache holds it, and the allocator
#: gives its memory to the next one. Much larger buffers are new memory each time, and the kernel's
#: work to provide that takes longer than ours to fill it.
PIECE_BYTES: Final = 1 << 20

_PADDING: Final = b"\0"
#: The first number of which float64 does not hold each one.
_EXACT_BELOW: Final = 2**53
#: Numbers of so many digits fit into int32.
_INT32_DIGITS: Final = 9


def rows_text(columns: Sequence[Column], count: int) -> bytes:
    """The texts of `count` rows, one behind another."""
    text = bytearray()
    offsets: list[int] = []
    fields: list[NDArray[np.void]] = []
    for column in columns:
        if isinstance(column, bytes):
            text += column
        else:
            offsets.append(len(text))
            fields.append(column)
            text += bytes(column.itemsize)
    places = np.dtype(
        {
            "names": [str(offset) for offset in offsets],
            "formats": [field.dtype for field in fields],
            "offsets": offsets,
            "itemsize": len(text),
        }
    )
    buffer = text * count
    rows = np.frombuffer(buffer, dtype=places)
    for offset, field in zip(offsets, fields, strict=True):
        rows[str(offset)] = field
    return without_padding(buffer)


def without_padding(text: bytes | bytearray | memoryview) -> bytes:
    """The text without the zero bytes that fill short values."""
    whole = bytes(text)
    return whole.replace(_PADDING, b"") if _PADDING in whole else whole


def numbers_column(numbers: Floats) -> Column:
    """Whole numbers in decimal, at least one."""
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        return b"%d" % low
    if not _is_plain(low, high):
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


def numbers_length(numbers: Floats) -> int:
    """The length of all texts of `numbers_column` together."""
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        return len(b"%d" % low) * len(numbers)
    if not _is_plain(low, high):
        return sum(len(b"%d" % number) for number in numbers.tolist())
    longer = (np.count_nonzero(numbers >= 10.0**n) for n in range(1, len(str(int(high)))))
    return len(numbers) + int(sum(longer))


def _is_plain(low: float, high: float) -> bool:
    """Whether numbers between these have no sign and are exact; others are formatted one by
    one."""
    return low >= 0 and high < _EXACT_BELOW
