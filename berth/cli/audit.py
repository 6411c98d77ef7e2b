# SPDX-License-Identifier: Apache-2.0
"""`berth audit`: allocations and providers that nobody stands behind any more."""

import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import click

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.options import ConfigurationSource, configured
from berth.cli.service_or_database import service_or_database
from berth.compute.audit import (
    Consumers,
    Finding,
    Known,
    find,
    read_consumers,
    read_world,
    suspects,
)
from berth.compute.audit.findings import ANY_TYPE, unjudged
from berth.compute.audit.undo import Outcome, fix, read_changes, restore
from berth.compute.audit.world import UNTYPED
from berth.compute.errors import Refused
from berth.compute.service import Service
from berth.compute.undo_file import UndoFile

_HINT_OF_UNTYPED: Final = (
    "; nova's consumers are of it, instances and migrations alike: give --living unknown=FILE, "
    "with both in it"
)


@click.command()
@click.option(
    "--living",
    multiple=True,
    metavar="TYPE=FILE",
    help="The consumers of a type that live, a uuid a line; may be repeated, also for one type. "
    "Types that are not named are not judged. The type of nova's is `unknown`.",
)
@click.option(
    "--living-command",
    multiple=True,
    metavar="TYPE=COMMAND",
    help="The same, from what a command prints.",
)
@click.option(
    "--hosts",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="All hosts that there are, a name or uuid a line; without it no provider is judged.",
)
@click.option(
    "--placed",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Where consumers are: a uuid and a host a line, several lines for one that moves.",
)
@click.option("--fix", "to_fix", is_flag=True, help="Take down what was found, after a question.")
@click.option("--yes", is_flag=True, help="With --fix: do not ask.")
@click.option(
    "--undo-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="With --fix: where each change is written down.  [default: berth-audit-TIME.jsonl]",
)
@click.option(
    "--undo",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Put up again what a file of --fix says, and do nothing else.",
)
@click.option(
    "--url",
    metavar="URL",
    help="Of a service, which is asked with the token in OS_TOKEN; without it the database is "
    "opened directly.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
@configured
def audit(
    source: ConfigurationSource,
    living: tuple[str, ...],
    living_command: tuple[str, ...],
    hosts: Path | None,
    placed: Path | None,
    to_fix: bool,
    yes: bool,
    undo_file: Path | None,
    undo: Path | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Look for allocations and providers that nobody stands behind any more.

    Consumers that are gone and still hold something, leaked migrations, consumers that hold of
    several hosts, and providers without a host. Only what the lists are about is judged; without
    lists, only consumers on several hosts are told, and nothing can be fixed.

    Exit code: 0 where nothing is wrong or all was fixed, 8 where something is left.
    """
    of_files = _living(living, _lines_of_file, {})
    of_hosts = frozenset(_some(hosts, _lines_of_file(str(hosts)))) if hosts else None
    of_places = _placed(placed) if placed else {}
    with ExitStack() as stack:
        service = Service(service_or_database(source, url, stack))
        if undo is not None:
            _undo(service, UndoFile(undo))
            return
        world = read_world(service)
        # After reading: who began to live meanwhile is in what a command says.
        of_all = _living(living_command, _lines_of_command, of_files)
        known = Known(living=of_all, hosts=of_hosts, placed=of_places)
        consumers = read_consumers(service, suspects(world, known))
        findings = find(world, consumers, known)
        _report(findings, unjudged(world, consumers, known), as_json=as_json)
        fixable = [finding for finding in findings if finding.can_be_fixed]
        left = len(findings)
        question = f"Take down {len(fixable)} of {len(findings)}?"
        if to_fix and fixable and (yes or _is_agreed(question)):
            left -= _fix(service, consumers, fixable, UndoFile(undo_file or _default_undo_file()))
    if left:
        raise CommandFailed(f"{left} of {len(findings)} found are left", ExitCode.INCONSISTENT)


def _is_agreed(question: str) -> bool:
    """Whether whoever is asked agrees.

    Raises:
        UsageError: nobody can answer.
    """
    try:
        return click.confirm(question, err=True)
    except click.Abort as abort:
        if sys.stdin.isatty():
            raise
        raise click.UsageError(
            "--fix asks before it takes anything down, and nobody has answered: say --yes too"
        ) from abort


# --- What is known --------------------------------------------------------------------------------


def _living(
    options: Sequence[str],
    read: Callable[[str], list[str]],
    so_far: Mapping[str, frozenset[str]],
) -> dict[str, frozenset[str]]:
    """Types of consumers, and those of each that live, by all of its lists together."""
    living = dict(so_far)
    for option in options:
        kind, equals, where = option.partition("=")
        if not (kind and equals and where):
            raise click.UsageError(f"{option!r} is not TYPE=FILE, as in INSTANCE=instances.txt")
        listed = frozenset(_uuid(line, where) for line in _some(where, read(where)))
        living[kind] = living.get(kind, frozenset()) | listed
    return living


def _lines_of_file(path: str) -> list[str]:
    try:
        return _lines(Path(path).read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{path} cannot be read: {error}", ExitCode.USAGE) from error


def _lines_of_command(command: str) -> list[str]:
    """What a command prints; one that fails has said nothing."""
    done = subprocess.run(
        ["/bin/sh", "-c", command], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise CommandFailed(
            f"the command {command!r} ended with {done.returncode}: nobody is judged by what it "
            f"printed",
            ExitCode.USAGE,
        )
    return _lines(done.stdout)


def _lines(text: str) -> list[str]:
    stripped = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in stripped if line]


def _some(where: object, lines: list[str]) -> list[str]:
    """Lines, of which there are some: an empty list would mean that nobody lives."""
    if not lines:
        raise CommandFailed(
            f"{where} says that there are none at all, which is more likely a mistake; write one "
            f"that does not exist if it is so",
            ExitCode.USAGE,
        )
    return lines


def _placed(path: Path) -> dict[str, frozenset[str]]:
    placed: dict[str, frozenset[str]] = {}
    for line in _lines_of_file(str(path)):
        consumer, *host = line.split(maxsplit=1)
        if not host:
            raise CommandFailed(f"{path}: {line!r} names no host", ExitCode.USAGE)
        name = _uuid(consumer, str(path))
        placed[name] = placed.get(name, frozenset()) | {host[0]}
    return placed


def _uuid(text: str, where: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise CommandFailed(f"{where}: {text!r} is not a uuid", ExitCode.USAGE) from None


# --- What is done ---------------------------------------------------------------------------------


def _report(findings: Sequence[Finding], unjudged: Mapping[str, int], *, as_json: bool) -> None:
    if as_json:
        click.echo(
            json.dumps(
                {
                    "found": [
                        {
                            "kind": finding.kind,
                            "subject": finding.subject,
                            "sentence": finding.sentence,
                            "can_be_fixed": finding.can_be_fixed,
                            "providers": finding.providers,
                        }
                        for finding in findings
                    ],
                    "not_judged": unjudged,
                }
            )
        )
        return
    for finding in findings:
        click.echo(f"{finding.kind}: {finding.sentence}")
    for kind, number in sorted(unjudged.items()):
        of = "any type" if kind == ANY_TYPE else f"type {kind}"
        hint = _HINT_OF_UNTYPED if kind == UNTYPED else ""
        click.echo(f"not judged: {number} of {of}, of which no list was given{hint}")
    if not findings:
        click.echo("nothing found")


def _fix(
    service: Service, consumers: Consumers, findings: Iterable[Finding], undo: UndoFile
) -> int:
    """Take down what was found; how many of them are no more."""
    undo.create()
    done = 0
    try:
        for finding in findings:
            done += _is_done(finding.sentence, partial(fix, service, consumers, finding, undo))
    finally:
        # What was done can be undone even where the rest is broken off.
        click.echo(f"`berth audit --undo {undo.path}` puts it up again")
    return done


def _undo(service: Service, undo: UndoFile) -> None:
    changes = read_changes(undo)
    left = len(changes)
    for change in changes:
        left -= _is_done(change["subject"], partial(restore, service, change))
    if left:
        raise CommandFailed(f"{left} of {len(changes)} are not put up again", ExitCode.INCONSISTENT)


def _is_done(words: str, make: Callable[[], Outcome]) -> bool:
    """Make one change, and tell what has become of it; one that is refused is that one alone."""
    try:
        outcome = make()
    except Refused as error:
        click.echo(f"refused: {words}: {error}")
        return False
    click.echo(f"{outcome.value}: {words}")
    return outcome in (Outcome.DONE, Outcome.NOTHING_TO_DO)


def _default_undo_file() -> Path:
    return Path(f"berth-audit-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl")
