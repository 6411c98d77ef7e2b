# SPDX-License-Identifier: Apache-2.0
"""`python -m compare`, which `make compare` runs: one script of requests to berth and to the
original, then random histories, and what differs.

Both start from an empty database of their own and get the same requests in the same order. What
differs on purpose stands in `compare.known_differences`; everything else is reported, the gravest
first, and makes the exit status 1.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track

from bench.peer import install_peer, run_peer
from bench.server import RunningServer, run_berth
from compare.differences import Difference, Kind
from compare.histories.play import Found, Players, play
from compare.judge import judge
from compare.script import SECTIONS
from compare.script.step import Step, known_uuids

#: The section that is drawn from a seed, beside those that are written down.
HISTORIES = "histories"
_CHARACTERS_MAX = 1500
_NO_PEER = 2
_TERMINATED = 128 + signal.SIGTERM


@dataclass(slots=True)
class Report:
    """What a comparison found."""

    requests_count: int = 0
    #: Unexplained differences, each with the section and the step that showed it.
    found: list[tuple[str, Step, Difference]] = field(default_factory=list)
    #: Deliberate differences by name.
    explained: Counter[str] = field(default_factory=Counter)
    #: Requests that a server did not answer at all.
    unanswered: list[str] = field(default_factory=list)
    #: What else is worth a line.
    remarks: list[str] = field(default_factory=list)


@click.command()
@click.option(
    "--section",
    "sections",
    multiple=True,
    type=click.Choice([*SECTIONS, HISTORIES]),
    help="Compare this section only; may be repeated.",
)
@click.option(
    "--requests",
    "requests_count",
    default=3000,
    show_default=True,
    type=click.IntRange(min=1),
    help="How many requests of random histories to send, at least.",
)
@click.option("--seed", default=1, show_default=True, help="What the histories are drawn from.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write every difference to this file; without it only the first of each sort is shown.",
)
@click.option("--examples", default=3, show_default=True, help="Examples to show of each sort.")
def main(
    sections: Sequence[str], requests_count: int, seed: int, output: Path | None, examples: int
) -> None:
    """Say how berth's answers differ from the original's."""
    # As by the keyboard: the servers are stopped on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    console = Console(highlight=False, markup=False, soft_wrap=True)
    try:
        install_peer()
    except (subprocess.CalledProcessError, OSError) as error:
        console.print(f"Nothing was compared: the original could not be installed: {error}")
        sys.exit(_NO_PEER)
    report = Report()
    written = [section for section in sections or SECTIONS if section != HISTORIES]
    if written:
        with run_peer() as peer, run_berth() as berth:
            compare(report, berth, peer, written)
    if not sections or HISTORIES in sections:
        compare_histories(report, requests_count, seed, console)
    console.print(render(report, examples_max=examples), end="")
    if output is not None:
        output.write_text(render(report, examples_max=sys.maxsize))
    console.print(
        f"{report.requests_count} requests, {len(report.found)} unexplained differences, "
        f"{len(report.unanswered)} without an answer."
    )
    sys.exit(1 if report.found or report.unanswered else 0)


def compare(
    report: Report, berth: RunningServer, peer: RunningServer, sections: Iterable[str]
) -> None:
    """Send the sections to both servers and add the differences to the report."""
    for section in sections:
        steps = list(SECTIONS[section]())
        named = known_uuids(steps)
        for step in track(steps, section, console=Console(stderr=True), transient=True):
            judgement = judge(berth, peer, step, named)
            report.requests_count += judgement.requests_count
            report.found += [(section, asked, found) for asked, found in judgement.found]
            report.explained += judgement.explained


def compare_histories(report: Report, requests_count: int, seed: int, console: Console) -> None:
    """Play random histories to both servers and add what they show to the report.

    Each sort of difference is printed as soon as it is found, with the requests that show it.
    """
    with closing(Players()) as players:
        for tally in play(players, requests_count, seed, tell=lambda each: _tell(each, console)):
            Console(stderr=True).print(
                f"{tally.requests_count} requests in {tally.histories_count} histories", end="\r"
            )
    report.requests_count += tally.requests_count
    report.found += [(HISTORIES, found.step, found.difference) for found in tally.found]
    report.explained += tally.explained
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(tally.statuses.items()))
    report.remarks += [
        f"{tally.histories_count} histories of seed {seed}, {tally.requests_count} requests",
        f"answers by status: {statuses}",
        f"histories cut short by a deliberate difference that leaves two worlds: "
        f"{tally.parted_count}",
    ]
    report.unanswered += tally.unanswered


def _tell(found: Found, console: Console) -> None:
    console.print(f"History {found.seed} shows a difference in {found.difference.part}:")
    for step in found.replay:
        console.print(f"    {str(step)[:_CHARACTERS_MAX]}")
    console.print(f"  berth:    {found.difference.ours[:_CHARACTERS_MAX]}")
    console.print(f"  original: {found.difference.theirs[:_CHARACTERS_MAX]}")


def render(report: Report, *, examples_max: int) -> str:
    """The report as Markdown: unexplained differences by gravity, alike ones together."""
    sorts: dict[tuple[Kind, str, str, str, str], list[tuple[Step, Difference]]] = {}
    for section, step, difference in report.found:
        route = "/".join(part for part in step.path.partition("?")[0].split("/")[:2])
        key = (difference.kind, section, step.method, route, difference.part)
        sorts.setdefault(key, []).append((step, difference))
    lines = [f"- {remark}" for remark in report.remarks]
    lines += [f"- {each[:_CHARACTERS_MAX]}" for each in report.unanswered]
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
