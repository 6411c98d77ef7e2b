# SPDX-License-Identifier: Apache-2.0
"""Texts made column by column are those made one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from berth.index.text_columns import numbers_column, numbers_length, rows_text

#: Amounts as they are; at the edges of digits and of int32; and what no sound database has.
_NUMBERS = st.one_of(
    st.integers(0, 12),
    st.integers(0, 20).map(lambda digits: 10**digits),
    st.integers(0, 20).map(lambda digits: 10**digits - 1),
    st.integers(0, 2**53),
    st.integers(-(2**70), 2**70),
).map(float)


@given(st.lists(_NUMBERS, min_size=1, max_size=20))
def test_numbers_are_written_as_one_by_one(numbers: list[float]) -> None:
    """Whatever their signs and sizes, and however many digits the others have."""
    texts = [b"%d" % number for number in numbers]
    column = numbers_column(np.array(numbers))
    assert rows_text([b"<", column, b">"], len(numbers)) == b"".join(b"<%b>" % t for t in texts)
    assert numbers_length(np.array(numbers)) == sum(map(len, texts))


def test_a_row_has_its_columns_in_order() -> None:
    """What all rows have, what each has, and a short text without its padding."""
    uuids = np.array([b"abc", b"d", b"ef"], dtype="S3").view("V3")
    columns = [b"{", uuids, b": ", numbers_column(np.array([7.0, 1234.0, 56.0])), b"}"]
    assert rows_text(columns, 3) == b"{abc: 7}{d: 1234}{ef: 56}"
