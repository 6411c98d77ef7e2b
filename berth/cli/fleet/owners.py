# SPDX-License-Identifier: Apache-2.0
"""Options that say whose consumers they are, of `berth claim` and `berth place`."""

from __future__ import annotations

from collections.abc import Callable

import click


def consumer_typed(text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add `--type`; the command gets it as `consumer_type`.

    Args:
        text: the help.
    """
    return click.option(
        "--type",
        "consumer_type",
        default="INSTANCE",
        show_default=True,
        metavar="TYPE",
        help=text,
    )
