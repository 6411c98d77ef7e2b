# SPDX-License-Identifier: Apache-2.0
"""Capacities for people: a line for each flavor, and for each part of the fleet.

Source: spec/beyond.md 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from berth.cli.columns import amount, print_columns, print_line
from berth.cli.output import say

if TYPE_CHECKING:
    from berth.cli.fleet.references import Json

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
