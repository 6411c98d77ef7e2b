# SPDX-License-Identifier: Apache-2.0
"""How messages list things."""

from __future__ import annotations

from collections.abc import Iterable


def some_of(names: Iterable[str], most: int) -> str:
    """So many names at most, and how many more there are."""
    listed = list(names)
    few = ", ".join(listed[:most])
    return few if len(listed) <= most else f"{few} and {len(listed) - most} more"
