# SPDX-License-Identifier: Apache-2.0
"""`berth capacity`: how many more fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from berth.cli.columns import amount, print_columns, print_line
from berth.cli.fleet.request_options import RequestOptions, takes_question, without_none
from berth.cli.options import asking, option
from berth.cli.output import say
from berth.model.paths import CAPACITY

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json


#: The name of the request that options ask for.
_REQUEST: Final = "request"


@click.command()
@takes_question
@option(
    "--by KEY...",
    "Also count by this label, such as zone; aggregate for each aggregate, host for each host.",
)
@option("--hosts N", "List the N hosts with room for the most.", type=click.IntRange(0, 1000))
@asking
def capacity(client: Client, request: RequestOptions, by: Sequence[str], hosts: int | None) -> None:
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
    answer = client.send("POST", CAPACITY, _body(request, by, hosts))
    client.show(answer, lambda sent: print_capacities(sent, by))


def _body(request: RequestOptions, by: Sequence[str], hosts: int | None) -> dict[str, Any]:
    """The question.

    Raises:
        UsageError: an option does not have its form.
    """
    flavors = [each for each in request.amounts if "=" not in each]
    request = request.with_typed(amounts=[each for each in request.amounts if "=" in each])
    if request.is_empty:
        body = without_none(what_if=request.what_if() or None)
    else:
        asked = request.body()
        body = {"requests": {_REQUEST: asked.pop("request")}, **asked}
    return body | without_none(flavors=flavors or None, by=[*by] or None, hosts_max=hosts)


#: The part of the fleet that is all of it.
_ALL: Final = "all"


def print_capacities(answer: Json, by: Sequence[str]) -> None:
    """Print a table, the best hosts, and what was not counted."""
    flavors = answer["flavors"]
    counted = {name: each for name, each in flavors.items() if "count" in each}
    has_now = any("now" in each for each in counted.values())
    if counted:
        parts = [key.upper() for key in by] if len(by) == 1 else ["PART"] if by else []
        counts = ["NOW", "THEN"] if has_now else ["COUNT"]
        heads = ["FLAVOR", *parts, *counts, "HOSTS", "STRANDED", "LARGEST"]
        rows = [row for name, each in counted.items() for row in _rows(name, each, by)]
        print_columns(heads, rows, right=(*counts, "HOSTS"))
    elif not flavors:
        say("There are no flavors.")
    for name, each in counted.items():
        if best := each.get("best"):
            hosts = (f"{host['host']['name']} {_count(host)}" for host in best)
            print_line(f"{name} on {', '.join(hosts)}")
    for name, each in flavors.items():
        if name not in counted:
            print_line(f"{name} was not counted: {_why_not(each)}")
    if not answer["complete"]:
        say("The time ended: some figures are lower bounds.")


def _rows(name: str, capacity: Json, by: Sequence[str]) -> Iterator[list[str]]:
    """The lines of one flavor: each part, and the whole."""
    for key in by:
        for value, line in capacity["by"][key].items():
            part = line["name"] or value if key == "host" else value
            shown = part if len(by) == 1 else f"{key}={part}"
            hosts = amount(line["hosts"]) if "hosts" in line else ""
            yield [name, shown, *_counts(line), hosts, "", ""]
    classes = capacity["classes"].items()
    stranded = (f"{each} {amount(c['stranded'])} of {amount(c['free'])}" for each, c in classes)
    largest = (f"{each} {amount(c['largest'])}" for each, c in classes)
    yield [
        name,
        *([_ALL] if by else []),
        *_counts(capacity),
        amount(capacity["hosts"]),
        ", ".join(stranded),
        ", ".join(largest),
    ]


def _counts(figures: Json) -> list[str]:
    """The count, behind the present one if there is a scenario."""
    if "now" not in figures:
        return [_count(figures)]
    return ["-" if figures["now"] is None else _count(figures["now"]), _count(figures)]


def _count(figures: Json) -> str:
    """A count, or its bounds if they differ."""
    count, at_most = figures["count"], figures["at_most"]
    return amount(count) if count == at_most else f"{amount(count)}-{amount(at_most)}"


def _why_not(capacity: Json) -> str:
    if "invalid" in capacity:
        return str(capacity["invalid"])
    names = (
        f"there is no {each['kind'].replace('_', ' ')} {each['name']}"
        for each in capacity["unknown"]
    )
    return "; ".join(names)
