# SPDX-License-Identifier: Apache-2.0
"""The terminal that a command prints to, if it does: its width, and colours unless NO_COLOR."""

import os
import sys

from rich.console import Console


def terminal() -> Console | None:
    """The terminal of the standard output; None for a pipe or a file, which get plain lines."""
    if not sys.stdout.isatty():
        return None
    # Not by rich's own reading of NO_COLOR, which leaves bold and dim.
    return Console(
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
    )
