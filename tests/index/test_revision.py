# SPDX-License-Identifier: Apache-2.0
"""Revisions: a text for the clock of a snapshot.

Source: spec/beyond.md 1.6.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.index.revision import Clock
from berth.model.errors import RevisionForeign, RevisionGone

IDENTITY = bytes(range(8))
HEADS = st.dictionaries(st.integers(1, 2**31), st.integers(1, 2**63), max_size=20)


@given(HEADS, HEADS)
def test_equal_revisions_mean_equal_states(heads: dict[int, int], others: dict[int, int]) -> None:
    """And different ones different states."""
    is_equal = Clock(IDENTITY, heads).revision == Clock(IDENTITY, others).revision
    assert is_equal == (heads == others)


def test_its_form() -> None:
    """As the specification gives it: 300 is 172, 2 as a varint."""
    raw = IDENTITY + bytes([1, 172, 2, 9, 5])
    expected = "b1." + urlsafe_b64encode(raw).decode().rstrip("=")
    assert Clock(IDENTITY, {9: 5, 1: 300, 2: 0}).revision == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "b1.", "b1.====", "b1.\u20ac", "b2.AAECAwQFBgc", "AAECAwQFBgc", "b1.AAECAwQFBgcB"),
        *("b1.AAECAwQFBgcBgA", "b1.AAECAwQFBgcB!A", "b1.AAECAwQFBgcBAA", "x" * 100_000),
        # Another identity; the same pair twice; writers in another order; a number that is padded.
        Clock(bytes(8), {1: 1}).revision,
        *(
            "b1." + urlsafe_b64encode(IDENTITY + bytes(raw)).decode().rstrip("=")
            for raw in ([1, 1, 1, 1], [2, 1, 1, 1], [1, 129, 0])
        ),
    ],
)
def test_what_this_database_has_not_written_is_foreign(text: str) -> None:
    """Whatever it is."""
    with pytest.raises(RevisionForeign) as foreign:
        Clock(IDENTITY, {1: 1, 2: 1}).since(text)
    assert len(str(foreign.value)) < 200


def test_a_revision_ahead_of_the_clock_is_gone() -> None:
    """As after a restore from a copy that kept its identity."""
    then = Clock(IDENTITY, {1: 5, 2: 7}).revision
    assert Clock(IDENTITY, {1: 5, 2: 8}).since(then) == {1: 5, 2: 7}
    for heads in ({1: 5, 2: 6}, {1: 5}, {}):
        with pytest.raises(RevisionGone):
            Clock(IDENTITY, heads).since(then)
