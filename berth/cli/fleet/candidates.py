# SPDX-License-Identifier: Apache-2.0
"""`berth candidates`: where a request fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.ordering import ordering
from berth.cli.fleet.wanted import Wanted, wanting

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client


@click.command()
@wanting
@ordering("Which candidate comes first: one on the fullest host (pack) or the emptiest (spread).")
@click.option(
    "--limit", metavar="N", type=click.IntRange(1, 10_000), help="At most N.  [default: 10]"
)
@click.option(
    "--per-host",
    metavar="N",
    type=click.IntRange(min=1),
    help="At most N of one host.  [default: 1; any number with --json]",
)
@accessing
def candidates(
    access: Access,
    wanted: Wanted,
    order: dict[str, Any] | None,
    limit: int | None,
    per_host: int | None,
) -> None:
    """Find where a request fits.

    \b
      berth candidates VCPU=8 MEMORY_MB=16384 --required HW_CPU_X86_AVX2
      berth candidates m1.large --host-member-of zone=z1
      berth candidates VCPU=4 --group '_GPU0 VGPU=1' --group '_GPU1 VGPU=1' \\
        --apart _GPU0,_GPU1@HW_NUMA_ROOT
      berth candidates 'resources=VCPU:16&required=HW_CPU_X86_AVX512F'

    An argument without = is the name of a flavor. The last example takes a query of GET
    /allocation_candidates, as a log shows it. LEVEL is provider, tree, subtree, or a trait of the
    nearest provider above that has it.

    If nothing fits, it prints what `berth why` would print.

    Exit codes: 0 something fits; 14 nothing does.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.candidate_tables import print_candidates
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.explanations import print_explanations
    from berth.cli.fleet.warned import warnings_in

    options = {"limit": limit, "per_host": per_host, "order": order}
    body = {
        "limit": 10,
        **wanted.body(),
        **{name: value for name, value in options.items() if value is not None},
    }
    with access.client() as client:
        answer = ask(client, body)
        result = answer.json()
        every = result.get("candidates", result.get("allocation_requests"))
        if access.as_json:
            print_answer(answer)
        elif every:
            print_candidates(client, result, body["limit"])
        elif explanation := result.get("explanation"):
            print_explanations(explanation)
    if not every:
        raise nothing_fits(body, warnings_in(answer), "nothing fits")


def nothing_fits(
    body: Mapping[str, Any], warnings: Iterable[Mapping[str, str]], sentence: str
) -> CommandFailed:
    """The failure where nothing fits, or where the request insists on what does not exist."""
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.warned import narrowing

    # What does not exist in an assumed fleet may well exist.
    names = [] if "what_if" in body else narrowing(warnings)
    if names:
        return CommandFailed(
            "nothing fits, because the request names what does not exist: "
            f"{', '.join(dict.fromkeys(names))}",
            ExitCode.SERVICE,
        )
    return CommandFailed(sentence, ExitCode.NOTHING_FITS)


def ask(client: Client, body: dict[str, Any]) -> Any:
    """The answer of berth's own API, or of the old route of a service that does not have it."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import CANDIDATES
    from berth.cli.fleet.old_queries import old_query
    from berth.cli.fleet.refusals import NoOwnApi

    for_people = {"per_host": 1, **body, "summaries": True, "explain": True}
    complete = body if client.as_json else for_people
    try:
        return client.send("POST", CANDIDATES, complete)
    except NoOwnApi:
        return client.get("/allocation_candidates", old_query(client, body))
