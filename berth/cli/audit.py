# SPDX-License-Identifier: Apache-2.0
"""`berth audit`: finds orphaned allocations, and providers without a host."""

import os
import re
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

from berth.cli.failure import CommandFailed, ExitCode, Misused
from berth.cli.fleet.access import Access, connect
from berth.cli.options import accessing_with_json, flag, match_of, option
from berth.cli.output import confirm, say, say_json
from berth.hosts import audit as auditing
from berth.hosts.audit import Consumers, Finding, Known, Outcome, World
from berth.hosts.errors import Refused
from berth.hosts.files import UndoFile
from berth.hosts.service import Service

_HINT_OF_UNTYPED: Final = (
    " (nova's instances and migrations are both of this type: list both in the file)"
)


@click.command()
@option(
    "--living TYPE=FILE...",
    "All consumers of a type that exist, one UUID per line; may be repeated, also for one "
    "type. Types that you do not name are not checked. Nova's consumers are of type `unknown`.",
)
@option("--living-command TYPE=COMMAND...", "The same, from the output of a command.")
@option(
    "--hosts FILE",
    "All hosts that exist, one name or UUID per line. Without it, providers are not checked.",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@option(
    "--placed FILE",
    "Where consumers run: a UUID and a host per line; several lines for one that moves.",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@flag("--fix", "Remove what was found (asks first).", parameter="to_fix")
@flag("--yes", "With --fix: do not ask.")
@option(
    "--at-most N",
    "With --fix: refuse to remove more than N.  [default: a tenth of the hosts, and a tenth "
    "of the consumers]",
    type=click.IntRange(min=0),
)
@option(
    "--undo-file FILE",
    "With --fix: the file that records each change.  [default: berth-audit-TIME.jsonl]",
    type=click.Path(path_type=Path),
)
@option(
    "--undo FILE",
    "Restore what --fix removed, from its undo file.",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@accessing_with_json("Print what was found as JSON.")
def audit(
    access: Access,
    living: tuple[str, ...],
    living_command: tuple[str, ...],
    hosts: Path | None,
    placed: Path | None,
    to_fix: bool,
    yes: bool,
    at_most: int | None,
    undo_file: Path | None,
    undo: Path | None,
) -> None:
    """Find orphaned allocations and providers.

    Finds consumers that no longer exist but still have allocations, leaked migrations, consumers
    with
    allocations on several hosts, and providers whose host is gone. It checks only what you give it
    a list for. Without lists, it finds only consumers on several hosts, and can fix nothing.

    A list that was cut short looks like a fleet that is gone, so --fix refuses to remove more than
    a tenth of the hosts or of the consumers, unless --at-most allows it.

    Exit codes: 0 no problems, or all fixed; 8 problems left.
    """
    of_files = _living(living, _lines_of_file, {})
    of_hosts = frozenset(_some(hosts, _lines_of_file(str(hosts)))) if hosts else None
    of_places = _placed(placed) if placed else {}
    with ExitStack() as stack:
        service = Service(connect(access, os.environ, stack, changes=to_fix or undo is not None))
        if undo is not None:
            _undo(service, UndoFile(undo))
            return
        world = auditing.read_world(service)
        # After reading the service, so that the output includes consumers that were created
        # meanwhile.
        of_all = _living(living_command, _lines_of_command, of_files)
        facts = Known(living=of_all, hosts=of_hosts, placed=of_places)
        consumers = auditing.read_consumers(service, auditing.suspects(world, facts))
        inventories = auditing.read_inventories(
            service, world, auditing.missing_hosts(world, facts)
        )
        findings = auditing.find(world, consumers, facts, inventories)
        _report(findings, auditing.unjudged(world, consumers, facts), as_json=access.as_json)
        fixable = [finding for finding in findings if finding.can_be_fixed]
        left = len(findings)
        if to_fix:
            _refuse_excess(world, fixable, at_most)
        question = f"Remove {len(fixable)} of {len(findings)}?"
        if to_fix and fixable and (yes or _is_agreed(question)):
            left -= _fix(service, consumers, fixable, UndoFile(undo_file or _default_undo_file()))
    if left:
        problems = f"{len(findings)} problem{'s' if len(findings) > 1 else ''} found"
        done = f"{len(findings) - left} fixed" if left < len(findings) else "none fixed"
        hint = "" if to_fix or not fixable else " (use --fix)"
        raise CommandFailed(f"{problems}, {done}{hint}", ExitCode.INCONSISTENT)


def _refuse_excess(world: World, fixable: Sequence[Finding], at_most: int | None) -> None:
    """Check that no list seems to have been cut short.

    Raises:
        CommandFailed: the fix would remove more than is allowed.
    """
    if at_most is not None:
        if len(fixable) > at_most:
            raise CommandFailed(
                f"nothing was removed: {len(fixable)} would be, and --at-most allows {at_most}",
                ExitCode.INCONSISTENT,
            )
    elif share := auditing.excess(world, fixable):
        raise CommandFailed(
            f"nothing was removed: {share} would be, which is more than a tenth. Check that the "
            f"lists are complete; --at-most {len(fixable)} removes them all the same",
            ExitCode.INCONSISTENT,
        )


def _is_agreed(question: str) -> bool:
    """Ask for confirmation.

    Raises:
        UsageError: there is no terminal to ask at.
    """
    try:
        return confirm(question)
    except click.Abort as abort:
        if sys.stdin.isatty():
            raise
        raise click.UsageError(
            "--fix asks before it removes anything, and got no answer: add --yes"
        ) from abort


# --- What is known --------------------------------------------------------------------------------


_OF_TYPE: Final = re.compile("([^=]+)=(.+)", re.DOTALL)


def _living(
    texts: Sequence[str],
    read: Callable[[str], list[str]],
    so_far: Mapping[str, frozenset[str]],
) -> dict[str, frozenset[str]]:
    """The living consumers of each type, from all of its lists."""
    living = dict(so_far)
    for text in texts:
        match = match_of(_OF_TYPE, text, "`{}` is not TYPE=FILE, as in INSTANCE=instances.txt")
        kind, where = match.groups()
        listed = frozenset(_uuid(line, where) for line in _some(where, read(where)))
        living[kind] = living.get(kind, frozenset()) | listed
    return living


def _lines_of_file(path: str) -> list[str]:
    try:
        return _lines(Path(path).read_text())
    except UnicodeDecodeError as error:
        raise Misused(f"{path} is not UTF-8 text") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Misused(f"cannot read {path}: {reason}") from error


def _lines_of_command(command: str) -> list[str]:
    """The output of a command; one that fails is an error."""
    done = subprocess.run(
        ["/bin/sh", "-c", command], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise Misused(
            f"the command `{command}` ended with exit code {done.returncode}, so its output is not "
            f"used"
        )
    return _lines(done.stdout)


def _lines(text: str) -> list[str]:
    stripped = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in stripped if line]


def _some(where: object, lines: list[str]) -> list[str]:
    """Refuse an empty list, which would mean that nothing exists."""
    if not lines:
        raise Misused(
            f"{where} is empty, which is probably a mistake. If nothing exists, list one entry "
            f"that does not exist"
        )
    return lines


def _placed(path: Path) -> dict[str, frozenset[str]]:
    placed: dict[str, frozenset[str]] = {}
    for line in _lines_of_file(str(path)):
        consumer, *host = line.split(maxsplit=1)
        if not host:
            raise Misused(f"{path}: `{line}` names no host")
        name = _uuid(consumer, str(path))
        placed[name] = placed.get(name, frozenset()) | {host[0]}
    return placed


def _uuid(text: str, where: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise Misused(f"{where}: `{text}` is not a uuid") from None


# --- What is done ---------------------------------------------------------------------------------


def _report(findings: Sequence[Finding], unjudged: Mapping[str, int], *, as_json: bool) -> None:
    if as_json:
        say_json(
            {
                "found": [
                    {
                        "kind": finding.kind,
                        "subject": finding.subject,
                        "sentence": finding.sentence,
                        "can_be_fixed": finding.can_be_fixed,
                        "providers": finding.providers,
                        "lost": finding.lost,
                    }
                    for finding in findings
                ],
                "not_judged": unjudged,
            }
        )
        return
    for finding in findings:
        say(finding.sentence)
    for kind, number in sorted(unjudged.items()):
        who = f"{number} consumer{'s' if number > 1 else ''}"
        of = "" if kind == auditing.ANY_TYPE else f" of type {kind}"
        flag = "TYPE" if kind == auditing.ANY_TYPE else kind
        hint = _HINT_OF_UNTYPED if kind == auditing.UNTYPED else ""
        say(f"{who}{of} not checked: pass --living {flag}=FILE{hint}")
    if not findings:
        say("no problems found")


def _fix(
    service: Service, consumers: Consumers, findings: Iterable[Finding], undo: UndoFile
) -> int:
    """Fix some problems; return the number of those that are gone."""
    undo.create()
    done = 0
    try:
        for finding in findings:
            done += _is_done(
                "fixed", finding.sentence, partial(auditing.fix, service, consumers, finding, undo)
            )
    finally:
        # Print this even if the command is interrupted: what was done can be undone.
        say(f"to undo this: berth audit --undo {undo.path}")
    return done


def _undo(service: Service, undo: UndoFile) -> None:
    changes = auditing.read_changes(undo)
    left = len(changes)
    for change in changes:
        left -= _is_done("restored", change["subject"], partial(auditing.restore, service, change))
    if left:
        raise CommandFailed(f"{left} of {len(changes)} were not restored", ExitCode.INCONSISTENT)


def _is_done(done: str, words: str, make: Callable[[], Outcome]) -> bool:
    """Make one change, and print the result; a refusal affects this change only."""
    try:
        outcome = make()
    except Refused as error:
        say(f"refused: {words}: {error}")
        return False
    say(f"{done if outcome is Outcome.DONE else outcome.value}: {words}")
    return outcome in (Outcome.DONE, Outcome.NOTHING_TO_DO)


def _default_undo_file() -> Path:
    return Path(f"berth-audit-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl")
