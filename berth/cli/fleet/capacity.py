# SPDX-License-Identifier: Apache-2.0
"""`berth capacity`: how many more fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import click

from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.wanted import Wanted, wanting

#: The name of the request that options ask for.
_REQUEST: Final = "request"


@click.command()
@wanting
@click.option(
    "--by",
    metavar="KEY",
    multiple=True,
    help="Also count by this label, such as zone; aggregate for each aggregate, host for each "
    "host.",
)
@click.option(
    "--hosts",
    metavar="N",
    type=click.IntRange(0, 1000),
    help="Name the N hosts that most fit on.",
)
@accessing
def capacity(access: Access, wanted: Wanted, by: Sequence[str], hosts: int | None) -> None:
    """Count how many more fit.

    \b
      berth capacity
      berth capacity m1.large gpu.a100 --by zone
      berth capacity VCPU=8 MEMORY_MB=16384 --required HW_CPU_X86_AVX2 --hosts 3
      berth capacity m1.large --without-host cn1 --add-host 'cn3*10'

    An argument without = is the name of a flavor; without any argument, all flavors are counted.
    The other arguments and options are those of `berth candidates`.

    COUNT is how many can be placed, one after another; 17-19 means at least 17 and at most 19.
    STRANDED is what no further placement can use, and LARGEST the largest amount that would still
    fit some host. With an assumption, such as --without-host, NOW is the present count.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.capacity_tables import print_capacities
    from berth.cli.fleet.client import CAPACITY, print_answer

    with access.client() as client:
        answer = client.send("POST", CAPACITY, _body(wanted, by, hosts))
        if access.as_json:
            print_answer(answer)
        else:
            print_capacities(answer.json(), by)


def _body(wanted: Wanted, by: Sequence[str], hosts: int | None) -> dict[str, Any]:
    """The question.

    Raises:
        UsageError: an option does not have its form.
    """
    flavors = [each for each in wanted.amounts if "=" not in each]
    wanted = replace(wanted, amounts=[each for each in wanted.amounts if "=" in each])
    body: dict[str, Any] = {}
    if wanted.is_empty:
        if what_if := wanted.what_if():
            body["what_if"] = what_if
    else:
        asked = wanted.body()
        body = {"requests": {_REQUEST: asked.pop("request")}, **asked}
    if flavors:
        body["flavors"] = flavors
    if by:
        body["by"] = list(by)
    if hosts is not None:
        body["hosts_max"] = hosts
    return body
