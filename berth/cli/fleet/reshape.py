# SPDX-License-Identifier: Apache-2.0
"""`berth reshape`: moves inventories and allocations in one transaction."""

from __future__ import annotations

from typing import TextIO

import click

from berth.cli.fleet.access import Access, accessing


@click.command()
@click.argument("file", metavar="FILE", type=click.File())
@accessing
def reshape(access: Access, file: TextIO) -> None:
    """Replace inventories of providers and allocations of consumers in one transaction.

    FILE is JSON, the body of POST /reshaper, or - for standard input. Providers are named by UUID
    or by name.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.claims import reshape as reshape_by

    with access.client() as client:
        reshape_by(client, file)
