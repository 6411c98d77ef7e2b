# SPDX-License-Identifier: Apache-2.0
"""Values in messages, with a limited length."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from berth.api.shortened import LENGTH_MAX, bounded, shortened
from tests.api.unit.test_json_form import VALUES


@given(VALUES)
def test_what_is_short_is_shown_whole(value: Any) -> None:
    """As its `repr`; an object with a `repr` of its own too."""
    assert shortened(value) == repr(value)
    assert bounded(value) == value
    assert repr(bounded(value)) == repr(value)


class Watched(list[object]):
    """Counts how many of its items are read."""

    seen = 0

    def __iter__(self) -> Any:
        for item in super().__iter__():
            self.seen += 1
            yield item


def test_of_what_is_long_only_the_begin_is_looked_at() -> None:
    """The cost depends on what is shown."""
    value = Watched([[]] * 100_000)
    assert shortened(value, 10) == "[[], [], [..."
    assert value.seen < 10


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("abcdef", "'abcd..."),
        ("abc", "'abc'"),
        (["abcdef"], "['abc..."),
        ({"abcdef": 1}, "{'abc..."),
        (12345678, "12345..."),
    ],
)
def test_what_is_cut_says_so(value: object, shown: str) -> None:
    """With three dots at its end."""
    assert shortened(value, 5) == shown


def test_what_is_deep_is_cut_too() -> None:
    """However short it is."""
    deep: list[object] = []
    for _ in range(900):
        deep = [deep]
    assert "..." in shortened(deep)
    assert len(repr(bounded("x" * 10**6))) == LENGTH_MAX + 3
