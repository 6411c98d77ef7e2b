# SPDX-License-Identifier: Apache-2.0
"""A child that is forked from the middle of a test."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

#: Seconds that a child may take. It has none of its parent's threads, so what one of those held at
#: the fork is held for ever.
_CHILD_S_MAX = 60


def in_child(act: Callable[[], bool]) -> bool:
    """Whether a forked child did something and found it right; False where it got stuck."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(_CHILD_S_MAX)
            status = 0 if act() else 1
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0
