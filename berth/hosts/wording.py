# SPDX-License-Identifier: Apache-2.0
"""How messages list things."""

from __future__ import annotations

from collections.abc import Iterable


def some_of(names: Iterable[str], most: int) -> str:
    """List some names, and the number of the others."""
    listed = list(names)
    few = ", ".join(listed[:most])
    return few if len(listed) <= most else f"{few} and {len(listed) - most} more"
