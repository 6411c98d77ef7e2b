# SPDX-License-Identifier: Apache-2.0
"""Splits whole amounts so that the parts add up exactly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def share_out(amount: int, weights: Sequence[int]) -> list[int]:
    """Split an amount in proportion to weights, which are not all 0.

    Each part differs from its exact share by less than one, and is at most its weight if the amount
    is
    at most the sum of the weights.
    """
    whole = sum(weights)
    marks = [amount * reached // whole for reached in accumulate(weights)]
    return [mark - before for mark, before in zip(marks, [0, *marks], strict=False)]


def share_to_first(amount: int, weights: Sequence[int], *, step: int = 1) -> list[int]:
    """Split an amount in proportion to weights, each part a whole number of steps.

    The remainder goes to the first part.
    Source: spec/compute-side.md 8, B.
    """
    whole = sum(weights)
    parts = [amount // step * weight // whole * step for weight in weights]
    parts[0] += amount - sum(parts)
    return parts
