# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.compare`: one script of requests to berth and to the original, and what differs.

Both start from an empty database of their own and get the same requests in the same order. What
differs on purpose stands in `bench.known_differences`; everything else is reported, the gravest
first, and makes the exit status 1.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track

from bench.differences import Difference, Kind, find_differences
from bench.known_differences import explain
from bench.peer import run_peer
from bench.script import SECTIONS
from bench.script.step import Step, known_uuids
from bench.server import RunningServer, run_berth
from bench.wire import send

_CHARACTERS_MAX = 1500


@dataclass(slots=True)
class Report:
    """What a comparison found."""

    requests_count: int = 0
    #: Unexplained differences, each with the section and the step that showed it.
    found: list[tuple[str, Step, Difference]] = field(default_factory=list)
    #: Deliberate differences by name.
    explained: Counter[str] = field(default_factory=Counter)


@click.command()
@click.option(
    "--section",
    "sections",
    multiple=True,
    type=click.Choice(list(SECTIONS)),
    help="Compare this section only; may be repeated.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write every difference to this file; without it only the first of each sort is shown.",
)
@click.option("--examples", default=3, show_default=True, help="Examples to show of each sort.")
def main(sections: Sequence[str], output: Path | None, examples: int) -> None:
    """Say how berth's answers differ from the original's."""
    with run_peer() as peer, run_berth() as berth:
        report = compare(berth, peer, sections or tuple(SECTIONS))
    text = render(report, examples_max=examples)
    Console(highlight=False, markup=False, soft_wrap=True).print(text)
    if output is not None:
        output.write_text(render(report, examples_max=sys.maxsize))
    sys.exit(1 if report.found else 0)


def compare(berth: RunningServer, peer: RunningServer, sections: Iterable[str]) -> Report:
    """Send the sections to both servers and collect the differences."""
    report = Report()
    for section in sections:
        steps = list(SECTIONS[section]())
        named = known_uuids(steps)
        for step in track(steps, section, console=Console(stderr=True), transient=True):
            ours, theirs = send(berth, step), send(peer, step)
            report.requests_count += 1
            for difference in find_differences(step, ours, theirs, known_uuids=named):
                known = explain(step, ours, theirs, difference)
                if known is None:
                    report.found.append((section, step, difference))
                else:
                    report.explained[known.name] += 1
    return report


def render(report: Report, *, examples_max: int) -> str:
    """The report as Markdown: unexplained differences by gravity, alike ones together."""
    sorts: dict[tuple[Kind, str, str, str, str], list[tuple[Step, Difference]]] = {}
    for section, step, difference in report.found:
        route = "/".join(part for part in step.path.partition("?")[0].split("/")[:2])
        key = (difference.kind, section, step.method, route, difference.part)
        sorts.setdefault(key, []).append((step, difference))
    lines = [f"{report.requests_count} requests, {len(report.found)} unexplained differences."]
    lines += [f"- on purpose: {name}: {count}" for name, count in report.explained.most_common()]
    for (kind, section, method, route, part), cases in sorted(sorts.items()):
        lines += ["", f"## {kind.name.lower()}: {part} ({section}: {method} {route}), {len(cases)}"]
        for step, difference in cases[:examples_max]:
            lines.append(f"- {str(step)[:_CHARACTERS_MAX]}")
            lines.append(f"    berth:    {difference.ours[:_CHARACTERS_MAX]}")
            lines.append(f"    original: {difference.theirs[:_CHARACTERS_MAX]}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
