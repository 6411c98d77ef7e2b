# SPDX-License-Identifier: Apache-2.0
"""A child that is forked from the middle of a test."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from tests.e2e.serving import PATIENCE


def in_child(act: Callable[[], bool]) -> bool:
    """Whether a forked child did something and found it right; False where it got stuck."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if act() else 1
        finally:
            os._exit(status)
    # It has none of its parent's threads: what one of those held at the fork is held for ever.
    deadline = time.monotonic() + PATIENCE
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    return ended[1] == 0
