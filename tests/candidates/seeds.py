# SPDX-License-Identifier: Apache-2.0
"""How much chance the random tests take, and how a run is repeated."""

from __future__ import annotations

import os
from random import randrange
from typing import Final

#: The seed of every random test of this run: given by the environment, or new.
SEED: Final = int(os.environ.get("BERTH_SEED") or randrange(2**32))


def worlds_to_draw(usual: int) -> int:
    """The number of worlds for one test: `usual`, times BERTH_EFFORT (1 where it is not set)."""
    return max(1, int(usual * float(os.environ.get("BERTH_EFFORT", "1"))))


def repeat_with() -> str:
    """What to set in order to see the same again."""
    return f"repeat with BERTH_SEED={SEED}"
