# SPDX-License-Identifier: Apache-2.0
"""`berth dump`: the whole fleet as JSON lines. Source: spec/beyond.md 6.1."""

from __future__ import annotations

from typing import TextIO

import click

from berth.cli.fleet.access import Access, accessing
from berth.model.printable import printable_json


@click.command()
@click.option(
    "--include",
    metavar="PARTS",
    help="What to print of each provider, separated by commas: inventories, usages, traits,"
    " aggregates, drains, allocations.  [default: all but allocations]",
)
@click.option(
    "--output",
    type=click.File("w", lazy=True, atomic=True),
    default="-",
    help="Write to this file.  [default: stdout]",
)
@accessing
def dump(access: Access, include: str | None, output: TextIO) -> None:
    """Print the whole fleet as JSON lines, in one consistent state.

    \b
      berth dump --output fleet.jsonl
      berth dump --include inventories,usages,allocations

    The first line has the revision from which `berth watch --after` continues; the last has `end`.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.client import FLEET
    from berth.client.client import lines_of

    with access.client() as client:
        answer = client.get(FLEET, [] if include is None else [("include", include)])
        lines_of(answer)
        output.write(printable_json(answer.text))
