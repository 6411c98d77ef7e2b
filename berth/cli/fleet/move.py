# SPDX-License-Identifier: Apache-2.0
"""`berth move`: give a consumer another place."""

from __future__ import annotations

from typing import Any

import click

from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.completing import provider_names
from berth.cli.fleet.place import dry_running, leasing, placing_order
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
@leasing("Lease what it gets for this time, such as 10m.  [default: its lease ends]")
@placing_order
@dry_running
@accessing
def move(
    access: Access,
    consumer: str,
    wanted: Wanted,
    to: str | None,
    lease_seconds: int | None,
    order: dict[str, Any] | None,
    dry_run: bool,
) -> None:
    """Move a consumer to another host, or give it other amounts.

    \b
      berth move 9c2f3a52-7c1e-5b0e-9a86-0d5c1f2e7b44
      berth move web/job-17 --to cn31
      berth move web/job-17 --to cn31 --required HW_CPU_X86_AVX2
      berth move web/job-17 VCPU=16 MEMORY_MB=32768 --to cn31
      berth move web/job-17 m1.large --lease 10m

    CONSUMER is a UUID, or PROJECT/NAME. What it holds counts as free, and is given back in the same
    transaction. Without a flavor, CLASS=AMOUNT, --group and --request it keeps the request with
    which it was placed, groups and conditions included; --host-... and --tolerate restrict this
    move alone. Conditions such as --required make a new request, of the amounts that it holds,
    added up over its providers. It has no lease afterwards, unless --lease gives it one.

    If the request is not known, because the consumer was not placed by berth or has changed since,
    it is the only flavor that takes what the consumer holds, or else a group for each provider that
    it holds something of; then a warning says that its traits are unknown.

    Exit codes: 0 moved; 13 a dry run found a place; 14 nothing fits.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.placing import consumer_to_move, moving, send_placement

    with access.client() as client:
        moved = consumer_to_move(client, consumer)
        body = moving(client, moved, wanted, to)
        if order:
            body["order"] = order
        if lease_seconds:
            body["lease_seconds"] = lease_seconds
        had_lease = moved["lease"] is not None
        send_placement(client, body, dry_run=dry_run, called=[consumer], had_lease=had_lease)
