# SPDX-License-Identifier: Apache-2.0
"""`berth place`: choose hosts for consumers, and claim there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.durations import lease_seconds as seconds_of
from berth.cli.fleet.ordering import ordering
from berth.cli.fleet.owners import consumer_typed
from berth.cli.fleet.wanted import Wanted, wanting

#: Options that `berth place` and `berth move` share.
placing_order = ordering(
    "Which host is best: the fullest (pack) or the emptiest (spread).  [default: spread]"
)
dry_running: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
    "--dry-run", is_flag=True, help="Print what would be done, and write nothing."
)


def leasing(text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add `--lease`; the command gets it as `lease_seconds`.

    Args:
        text: the help.
    """
    return click.option("--lease", "lease_seconds", type=seconds_of, metavar="TIME", help=text)


@click.command()
@wanting
@click.option(
    "--for",
    "names",
    multiple=True,
    metavar="PROJECT/NAME",
    help="Place a consumer with a name, instead of --project and --consumer; may be repeated.",
)
@click.option("--project", metavar="PROJECT", help="The consumers' project.")
@click.option(
    "--user", metavar="USER", help="The consumers' user.  [default with --for: the PROJECT]"
)
@consumer_typed("The consumers' type.")
@click.option(
    "--consumer",
    "consumers",
    multiple=True,
    metavar="UUID",
    help="Place this consumer; may be repeated.  [default: --count new ones]",
)
@click.option(
    "--count",
    metavar="N",
    type=click.IntRange(1, 256),
    help="Place N new consumers, all of them or none.  [default: 1]",
)
@click.option(
    "--max-per",
    multiple=True,
    metavar="KEY=N",
    help="At most N of them on one host (host=N), or on the hosts with one value of a label "
    "(rack=N); may be repeated.",
)
@click.option(
    "--within",
    metavar="KEY",
    help="All of them on one host (host), or on hosts with one value of a label (rack).",
)
@leasing(
    "Take back what they get after this time, such as 10m, unless `berth lease set` renews it.  "
    "[default: never]"
)
@placing_order
@dry_running
@accessing
def place(
    access: Access,
    wanted: Wanted,
    names: Sequence[str],
    project: str | None,
    user: str | None,
    consumer_type: str,
    consumers: Sequence[str],
    count: int | None,
    max_per: Sequence[str],
    within: str | None,
    lease_seconds: int | None,
    order: dict[str, Any] | None,
    dry_run: bool,
) -> None:
    """Choose hosts for consumers, and claim there, in one transaction.

    \b
      berth place VCPU=8 MEMORY_MB=16384 --for web/job-17 --user alice
      berth place VCPU=8 MEMORY_MB=16384 --for web/job-18 --user alice --lease 10m
      berth place m1.large --count 8 --max-per host=1 --within rack \\
        --project web --user alice --dry-run

    It takes the arguments and options of `berth candidates`. With --for or --consumer, a command
    that failed can be run again: a consumer that was placed already is not placed twice.
    --nothing-used and the like need --dry-run.

    Exit codes: 0 placed; 13 a dry run found places; 14 nothing fits.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.placing import limits_of, named_consumers, new_consumers, send_placement

    if names:
        if project or consumers or count is not None:
            raise click.UsageError("--for excludes --project, --consumer and --count")
        placed = named_consumers(names, user, consumer_type)
    elif project and user:
        owner = {"project_id": project, "user_id": user, "consumer_type": consumer_type}
        placed = new_consumers(consumers, count, owner)
    else:
        raise click.UsageError("the consumers have no owner: give --for, or --project and --user")
    body: dict[str, Any] = {
        **wanted.body(),
        "consumers": placed,
        **limits_of(max_per),
        **({"within": within} if within else {}),
        **({"lease_seconds": lease_seconds} if lease_seconds else {}),
        **({"order": order} if order else {}),
    }
    with access.client() as client:
        send_placement(client, body, dry_run=dry_run)
