# SPDX-License-Identifier: Apache-2.0
"""`berth move`: give a consumer another place."""

from __future__ import annotations

import click

from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.completing import provider_names
from berth.cli.fleet.place import dry_running, ordering
from berth.cli.fleet.wanted import Wanted, wanting


@click.command()
@click.argument("consumer", metavar="CONSUMER")
@wanting
@click.option(
    "--to",
    metavar="HOST",
    shell_complete=provider_names,
    help="Move it to this host, or resize it there.  [default: any host but its own]",
)
@ordering
@dry_running
@accessing
def move(
    access: Access, consumer: str, wanted: Wanted, to: str | None, order: str | None, dry_run: bool
) -> None:
    """Move a consumer to another host, or give it other amounts.

    \b
      berth move 9c2f3a52-7c1e-5b0e-9a86-0d5c1f2e7b44
      berth move web/job-17 --to cn31 --required HW_CPU_X86_AVX2
      berth move web/job-17 VCPU=16 MEMORY_MB=32768 --to cn31

    CONSUMER is a UUID, or PROJECT/NAME. What it holds counts as free, and is given back in the same
    transaction. Without CLASS=AMOUNT, --group, --flavor and --request it keeps its amounts, added
    up over its providers; conditions that its first request had must be given again.

    Exit codes: 0 moved; 13 a dry run found a place; 14 nothing fits.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.placing import moving, send_placement

    with access.client() as client:
        body = moving(client, consumer, wanted, to)
        if order:
            body["order"] = {"by": order}
        send_placement(client, body, dry_run=dry_run)
