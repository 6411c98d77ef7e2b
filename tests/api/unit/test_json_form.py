# SPDX-License-Identifier: Apache-2.0
"""Values of JSON: estimates of their size from their bytes, and how they are shown in messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.body import count_elements, is_deeper
from berth.api.schema import LENGTH_MAX, bounded, shortened
from tests.effort import scaled

#: Strings full of what could be mistaken for form.
TEXTS = st.text(alphabet='"\\[]{},:a', max_size=6)

VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


def measured(value: Any) -> tuple[int, int]:
    """How deeply arrays and objects are nested, and how many there are with all that is in them."""
    if not isinstance(value, list | dict):
        return 0, 0
    inner = [measured(each) for each in (value if isinstance(value, list) else value.values())]
    elements = 1 + max(len(value) - 1, 0) + sum(count for _, count in inner)
    return 1 + max((depth for depth, _ in inner), default=0), elements


@settings(max_examples=scaled(100))
@given(VALUES, st.integers(0, 5), st.booleans())
def test_depth_is_that_of_the_decoded_value(value: Any, levels: int, is_compact: bool) -> None:
    """Whatever strings contain, and however much white space there is; elements are never counted
    too few, and what is short is shown whole."""
    text = json.dumps(value, separators=(",", ":") if is_compact else (" , ", " : ")).encode()
    depth, elements = measured(value)
    assert is_deeper(text, levels) == (depth > levels)
    assert count_elements(text) >= elements
    assert shortened(value) == repr(value)
    assert bounded(value) == value
    assert repr(bounded(value)) == repr(value)


@pytest.mark.parametrize(
    ("text", "is_deep"),
    [
        (b"[" * 5, True),
        (b'"' + b"[" * 5 + b'"', False),
        (b'"\\"' + b"[" * 5 + b'"', False),
        (b'"\\\\"' + b"[" * 5, True),
        (b'"\\\\"' + b"[" * 5 + b'"\\\\"', True),
        (b"]" * 9 + b"[" * 5, False),
        (b"", False),
    ],
)
def test_a_text_that_is_no_json_is_judged_too(text: bytes, is_deep: bool) -> None:
    """A decoder reads it up to its first fault."""
    assert is_deeper(text, 4) == is_deep


class Watched(list[object]):
    """Counts how many of its items are read."""

    seen = 0

    def __iter__(self) -> Any:
        for item in super().__iter__():
            self.seen += 1
            yield item


def test_of_what_is_long_only_the_begin_is_looked_at() -> None:
    """The cost depends on what is shown; three dots stand at its end. What is deep is cut too."""
    value = Watched([[]] * 100_000)
    assert shortened(value, 10) == "[[], [], [..."
    assert value.seen < 10
    assert shortened("abc", 5) == "'abc'"
    cut = [shortened(each, 5) for each in ("abcdef", ["abcdef"], {"abcdef": 1}, 12345678)]
    assert cut == ["'abcd...", "['abc...", "{'abc...", "12345..."]
    deep: list[object] = []
    for _ in range(900):
        deep = [deep]
    assert "..." in shortened(deep)
    assert len(repr(bounded("x" * 10**6))) == LENGTH_MAX + 3
