# SPDX-License-Identifier: Apache-2.0
"""Moving providers within trees."""

from __future__ import annotations

import pytest

from berth.model.errors import ReparentNotAllowed, UnparentNotAllowed
from berth.model.ids import ProviderId, ProviderUUID
from berth.model.tree import check_move, subtree

A, B, C = (ProviderUUID(name) for name in "abc")


def test_a_subtree_has_parents_before_children() -> None:
    """1 has 2 and 5, 2 has 4, 4 has 3; 6 is in no tree with them."""
    parents = {1: None, 2: 1, 3: 4, 4: 2, 5: 1, 6: None}
    forest = {
        ProviderId(child): None if parent is None else ProviderId(parent)
        for child, parent in parents.items()
    }
    assert subtree(ProviderId(2), forest) == [2, 4, 3]
    assert subtree(ProviderId(1), forest) == [1, 2, 5, 4, 3]
    assert subtree(ProviderId(6), forest) == [6]


@pytest.mark.parametrize(
    ("current", "wanted", "refusal"),
    [
        (None, None, None),
        (None, B, None),
        (B, B, None),
        (B, None, UnparentNotAllowed),
        (B, C, ReparentNotAllowed),
    ],
)
def test_below_1_37_only_a_root_moves(
    current: ProviderUUID | None, wanted: ProviderUUID | None, refusal: type[Exception] | None
) -> None:
    """From 1.37 on all of these moves are allowed."""
    check_move(A, current=current, wanted=wanted, may_reparent=True)
    if refusal is None:
        check_move(A, current=current, wanted=wanted, may_reparent=False)
        return
    with pytest.raises(refusal, match=r"not currently allowed"):
        check_move(A, current=current, wanted=wanted, may_reparent=False)
