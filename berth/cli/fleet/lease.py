# SPDX-License-Identifier: Apache-2.0
"""`berth lease`: when berth takes back what consumers hold. Source: spec/beyond.md 7.3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from berth.cli.columns import counted, print_columns
from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.durations import lease_seconds, time_left, utc_time
from berth.cli.output import say

if TYPE_CHECKING:
    from berth.client import Lease


@click.group()
def lease() -> None:
    """List, set, end and sweep leases of consumers.

    When a lease expires, berth releases everything that its consumer uses. Any other write of the
    consumer's allocations ends the lease.
    """


@lease.command(name="list")
@accessing
def list_leases(access: Access) -> None:
    """List leases, the next to expire first."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import LEASES, print_answer
    from berth.client import Lease
    from berth.client.client import lines_of

    with access.client() as client:
        answer = client.get(LEASES)
        if access.as_json:
            print_answer(answer)
            return
        leases = sorted(map(Lease.of, lines_of(answer)[0]), key=_order)
    rows = [
        [_named(each), each.user_id, utc_time(each.expires_at), time_left(each.seconds_left)]
        for each in leases
    ]
    if rows:
        print_columns(("CONSUMER", "USER", "EXPIRES", "LEFT"), rows)
    say(counted(len(rows), "lease"))


@lease.command(name="set")
@click.argument("consumer", metavar="CONSUMER")
@click.argument("seconds", metavar="TIME", type=lease_seconds)
@accessing
def set_lease(access: Access, consumer: str, seconds: int) -> None:
    """Give a consumer a lease, or renew the one that it has.

    \b
      berth lease set web/job-17 10m

    CONSUMER is a UUID, or PROJECT/NAME. TIME counts from now: 90s, 10m, 2h, at most 1d.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.client import Lease

    with access.client() as client:
        answer = client.send("PUT", client.lease_path(consumer), {"seconds": seconds})
    if access.as_json:
        print_answer(answer)
    else:
        say(f"{consumer} is leased until {utc_time(Lease.of(answer.json()).expires_at)}")


@lease.command()
@click.argument("consumers", metavar="CONSUMER...", nargs=-1, required=True)
@accessing
def end(access: Access, consumers: Sequence[str]) -> None:
    """End leases: the consumers keep their allocations.

    CONSUMER is a UUID, or PROJECT/NAME.
    """
    with access.client() as client:
        for consumer in consumers:
            client.end_lease(consumer)
            if not access.as_json:
                say(f"ended the lease of {consumer}; it keeps its allocations")


@lease.command()
@accessing
def sweep(access: Access) -> None:
    """Release consumers whose leases have expired.

    A running service does this every few seconds; without one, nothing expires until this command
    runs.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.client import LEASES, print_answer

    with access.client() as client:
        answer = client.send("POST", LEASES)
    if access.as_json:
        print_answer(answer)
        return
    released = answer.json()["released"]
    for each in released:
        say(
            f"released {each['consumer']} of project {each['project_id']} on "
            f"{', '.join(each['hosts'])}"
        )
    say(f"released {counted(len(released), 'consumer')}")


def _named(lease: Lease) -> str:
    return f"{lease.project_id}/{lease.name}" if lease.name else lease.consumer


def _order(lease: Lease) -> tuple[int, str]:
    return lease.seconds_left, _named(lease)
