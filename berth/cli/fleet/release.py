# SPDX-License-Identifier: Apache-2.0
"""`berth release`: gives back what consumers have."""

from __future__ import annotations

from collections.abc import Sequence

import click

from berth.cli.fleet.access import Access, accessing


@click.command()
@click.argument("consumers", metavar="CONSUMER...", nargs=-1, required=True)
@accessing
def release(access: Access, consumers: Sequence[str]) -> None:
    """Remove all allocations of consumers, of all or of none.

    \b
      berth release web/job-17

    CONSUMER is a UUID, or the consumer's project and name.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.claims import release as release_all

    with access.client() as client:
        release_all(client, consumers)
