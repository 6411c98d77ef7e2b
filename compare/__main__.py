# SPDX-License-Identifier: Apache-2.0
"""`python -m compare`, which `make compare` runs: compares berth with OpenStack Placement.

Both services start with an empty database and get the same requests in the same order: a script
first, then random histories. `compare.known_differences` lists the intended differences; all others
are reported, the most severe first, and make the exit status 1.
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
from compare.histories.play import Finding, Players, play
from compare.judge import judge
from compare.script import SECTIONS
from compare.script.step import Step, known_uuids

#: The section with random histories; the others are scripts.
HISTORIES = "histories"
_CHARACTERS_MAX = 1500
_NO_PEER = 2
_TERMINATED = 128 + signal.SIGTERM


@dataclass(slots=True)
class Report:
    """The result of a comparison."""

    requests_count: int = 0
    #: Unexplained differences, each with its section and step.
    unexplained: list[tuple[str, Step, Difference]] = field(default_factory=list)
    #: Intended differences by name.
    explained: Counter[str] = field(default_factory=Counter)
    #: Requests without a response.
    unanswered: list[str] = field(default_factory=list)
    #: Further lines of the report.
    remarks: list[str] = field(default_factory=list)


@click.command()
@click.option(
    "--section",
    "sections",
    multiple=True,
    type=click.Choice([*SECTIONS, HISTORIES]),
    help="Compare only this section; may be repeated.",
)
@click.option(
    "--requests",
    "requests_count",
    default=3000,
    show_default=True,
    type=click.IntRange(min=1),
    help="Minimum number of requests in random histories.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of the random histories.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write every difference to this file; the terminal shows only examples.",
)
@click.option(
    "--examples",
    default=3,
    show_default=True,
    help="Number of examples for each kind of difference.",
)
def main(
    sections: Sequence[str], requests_count: int, seed: int, output: Path | None, examples: int
) -> None:
    """Report how berth's responses differ from OpenStack Placement's."""
    # As with Ctrl-C, so that the servers are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    console = Console(highlight=False, markup=False, soft_wrap=True)
    try:
        install_peer()
    except (subprocess.CalledProcessError, OSError) as error:
        console.print(f"Nothing compared: cannot install OpenStack Placement: {error}")
        sys.exit(_NO_PEER)
    report = Report()
    scripted = [section for section in sections or SECTIONS if section != HISTORIES]
    if scripted:
        with run_peer() as peer, run_berth() as berth:
            compare(report, berth, peer, scripted)
    if not sections or HISTORIES in sections:
        compare_histories(report, requests_count, seed, console)
    console.print(render(report, examples_max=examples), end="")
    if output is not None:
        output.write_text(render(report, examples_max=sys.maxsize))
    console.print(
        f"{report.requests_count} requests, {len(report.unexplained)} unexplained differences, "
        f"{len(report.unanswered)} without a response."
    )
    sys.exit(1 if report.unexplained or report.unanswered else 0)


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
            report.unexplained += [
                (section, asked, difference) for asked, difference in judgement.unexplained
            ]
            report.explained += judgement.explained


def compare_histories(report: Report, requests_count: int, seed: int, console: Console) -> None:
    """Send random histories to both servers and add the differences to the report.

    Prints each kind of difference when it first appears, with the requests that reproduce it.
    """
    with closing(Players()) as players:
        for tally in play(
            players, requests_count, seed, tell=lambda finding: _print(finding, console)
        ):
            Console(stderr=True).print(
                f"{tally.requests_count} requests in {tally.histories_count} histories", end="\r"
            )
    report.requests_count += tally.requests_count
    report.unexplained += [
        (HISTORIES, finding.step, finding.difference) for finding in tally.findings
    ]
    report.explained += tally.explained
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(tally.statuses.items()))
    report.remarks += [
        f"{tally.histories_count} histories of seed {seed}, {tally.requests_count} requests",
        f"responses by status: {statuses}",
        f"histories that ended at an intended difference in the stored data: {tally.parted_count}",
    ]
    report.unanswered += tally.unanswered


def _print(finding: Finding, console: Console) -> None:
    console.print(f"History {finding.seed} shows a difference in {finding.difference.part}:")
    for step in finding.replay:
        console.print(f"    {str(step)[:_CHARACTERS_MAX]}")
    console.print(f"  berth:     {finding.difference.ours[:_CHARACTERS_MAX]}")
    console.print(f"  Placement: {finding.difference.theirs[:_CHARACTERS_MAX]}")


def render(report: Report, *, examples_max: int) -> str:
    """The report as Markdown: unexplained differences by severity, similar ones together."""
    groups: dict[tuple[Kind, str, str, str, str], list[tuple[Step, Difference]]] = {}
    for section, step, difference in report.unexplained:
        route = "/".join(part for part in step.path.partition("?")[0].split("/")[:2])
        key = (difference.kind, section, step.method, route, difference.part)
        groups.setdefault(key, []).append((step, difference))
    lines = [f"- {remark}" for remark in report.remarks]
    lines += [f"- {each[:_CHARACTERS_MAX]}" for each in report.unanswered]
    lines += [f"- intended: {name}: {count}" for name, count in report.explained.most_common()]
    for (kind, section, method, route, part), cases in sorted(groups.items()):
        lines += ["", f"## {kind.name.lower()}: {part} ({section}: {method} {route}), {len(cases)}"]
        for step, difference in cases[:examples_max]:
            lines.append(f"- {str(step)[:_CHARACTERS_MAX]}")
            lines.append(f"    berth:     {difference.ours[:_CHARACTERS_MAX]}")
            lines.append(f"    Placement: {difference.theirs[:_CHARACTERS_MAX]}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
