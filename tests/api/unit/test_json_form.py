# SPDX-License-Identifier: Apache-2.0
"""Estimates of a JSON text's size from its bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.json_form import count_elements, is_deeper

#: Strings full of what could be mistaken for form.
TEXTS = st.text(alphabet='"\\[]{},:a', max_size=6)

VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


def depth_of(value: Any) -> int:
    """How deeply arrays and objects are nested."""
    if isinstance(value, list | dict):
        inner = value if isinstance(value, list) else value.values()
        return 1 + max(map(depth_of, inner), default=0)
    return 0


def elements_of(value: Any) -> int:
    """The number of array items and object members, and of arrays and objects."""
    if isinstance(value, list | dict):
        inner = value if isinstance(value, list) else value.values()
        return 1 + max(len(value) - 1, 0) + sum(map(elements_of, inner))
    return 0


@given(VALUES, st.integers(0, 5), st.booleans())
def test_depth_is_that_of_the_decoded_value(value: Any, levels: int, is_compact: bool) -> None:
    """Whatever strings contain, and however much white space there is."""
    text = json.dumps(value, separators=(",", ":") if is_compact else (" , ", " : "))
    assert is_deeper(text.encode(), levels) == (depth_of(value) > levels)


@given(VALUES)
def test_elements_are_never_counted_too_few(value: Any) -> None:
    """Brackets and commas in strings may make it larger, but nothing makes it smaller."""
    assert count_elements(json.dumps(value).encode()) >= elements_of(value)


@pytest.mark.parametrize(
    ("text", "is_deep"),
    [
        (b"[" * 5, True),
        (b'"' + b"[" * 5 + b'"', False),
        (b'"\\"' + b"[" * 5 + b'"', False),
        (b'"\\\\"' + b"[" * 5, True),
        (b"]" * 9 + b"[" * 5, False),
        (b"", False),
    ],
)
def test_a_text_that_is_no_json_is_judged_too(text: bytes, is_deep: bool) -> None:
    """A decoder reads it up to its first fault."""
    assert is_deeper(text, 4) == is_deep
