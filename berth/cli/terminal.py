# SPDX-License-Identifier: Apache-2.0
"""The terminal that a command prints to: its width, and colours unless NO_COLOR is set."""

import os
import sys

from rich.console import Console


def terminal() -> Console | None:
    """The terminal of standard output; None for a pipe or a file, which get plain text."""
    if not sys.stdout.isatty():
        return None
    # With NO_COLOR, rich itself would still print bold and dim.
    return Console(
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
    )
