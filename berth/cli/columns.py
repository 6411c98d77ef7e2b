# SPDX-License-Identifier: Apache-2.0
"""Lists for people: columns as wide as what stands in them."""

from collections.abc import Collection, Sequence

import click


def print_columns(heads: Sequence[str], rows: Collection[Sequence[str]]) -> None:
    """Print rows of text under their heads."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
