# SPDX-License-Identifier: Apache-2.0
"""`berth why`: why a request does not fit, and what would help."""

from __future__ import annotations

import click

from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.wanted import Wanted, wanting


@click.command()
@wanting
@click.option(
    "--nearest", metavar="N", type=click.IntRange(0, 50), help="Name the N nearest hosts."
)
@click.option(
    "--seconds",
    metavar="S",
    type=click.FloatRange(min=0),
    help="Stop after S seconds.",
)
@accessing
def why(access: Access, wanted: Wanted, nearest: int | None, seconds: float | None) -> None:
    """Explain why a request does not fit, and what would help.

    \b
      berth why VCPU=16 MEMORY_MB=32768 --required HW_CPU_X86_AVX512F --host-member-of zone=z2
      berth why m1.large --host-in cn31
      berth why 'resources=VCPU:16&required=HW_CPU_X86_AVX512F'
      berth why '... "GET /placement/allocation_candidates?resources=VCPU%3A16" status: 200'

    The last two are pasted from a log: a query, or a whole line that has one. It takes the
    arguments and options of `berth candidates`. ALONE counts the hosts that satisfy one constraint
    by itself, and LEFT those that satisfy it and all above it.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import EXPLAIN, print_answer
    from berth.cli.fleet.explanations import print_explanations

    options = {"nearest_max": nearest, "seconds": seconds}
    body = wanted.body() | {name: value for name, value in options.items() if value is not None}
    with access.client() as client:
        answer = client.send("POST", EXPLAIN, body)
        if access.as_json:
            print_answer(answer)
        else:
            print_explanations(answer.json())
