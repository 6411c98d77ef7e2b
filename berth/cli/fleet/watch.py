# SPDX-License-Identifier: Apache-2.0
"""`berth watch` and `berth dump`: what changes, as it changes, and the whole fleet.

Source: spec/beyond.md 6.1, 6.2 and 8.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from berth.cli.columns import amount, amounts
from berth.cli.fleet.access import Access
from berth.cli.fleet.provider_trees import capacity_of, differences
from berth.cli.options import accessing, asking, option
from berth.cli.output import say
from berth.model.paths import FLEET
from berth.model.printable import printable_json

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.client import Change
    from berth.client.replica import Provider


#: Seconds that one request waits for a change.
_WAIT_S: Final = 20
#: Seconds before a service that did not answer is asked again.
_PAUSE_S: Final = 2.0


@click.command()
@option("--after REVISION", "Print what has changed since, too; with --json.")
@option("--count N", "Stop after N changes.", type=click.IntRange(min=1))
@accessing
def watch(access: Access, after: str | None, count: int | None) -> None:
    """Print what changes in the fleet, until you stop it.

    \b
      berth watch
      berth watch --json --after "$REVISION"

    If the service goes away, the command asks again until it is back, and then prints what it
    missed.

    The service keeps changes for an hour ([berth]journal_seconds). After a longer time, or after
    `berth db new-identity`, the command reads the whole fleet again and prints what differs. With
    --json it ends with exit code 11 instead: read the fleet again with `berth dump`, and continue
    after its revision.
    """
    if after is not None and not access.as_json:
        raise click.UsageError("--after needs --json: without it, amounts are compared")
    with access.client() as client:
        lines = _events(client, after) if access.as_json else _sentences(client)
        for number, line in enumerate(lines, 1):
            say(line)
            if number == count:
                return


def _events(client: Client, after: str | None) -> Iterator[str]:
    """The API's events, as lines."""
    # Deferred: `--help` does not need it.
    from berth.client import Incomplete, Unreachable

    revision = client.fleet(()).revision if after is None else after
    while True:
        try:
            changes = client.changes(revision, wait=_WAIT_S)
        except (Incomplete, Unreachable) as error:
            _say_waiting(error)
            continue
        yield from map(json.dumps, changes.events)
        revision = changes.revision


def _sentences(client: Client) -> Iterator[str]:
    """The changes in words."""
    # Deferred: `--help` does not need it.
    from berth.client import Incomplete, Replica, Unreachable

    fleet = Replica(client)
    while True:
        try:
            changes = fleet.follow(_WAIT_S)
        except (Incomplete, Unreachable) as error:
            _say_waiting(error)
            continue
        now = f"{datetime.now():%H:%M:%S}"
        yield from (f"{now}  {line}" for line in in_words(changes, fleet.providers))


def _say_waiting(error: Exception) -> None:
    say(f"berth: {error}; asking again", err=True)
    time.sleep(_PAUSE_S)


def in_words(changes: Sequence[Change], providers: Mapping[str, Provider]) -> Iterator[str]:
    """A line for each change.

    Args:
        providers: all of them, as they are now.
    """
    drains = {name for change in changes for name in _drains_changed(change)}
    for change in changes:
        # Every change of a drain is one of names, too.
        if change.kind != "names" or change.commits > len(drains):
            yield f"{_name_of(change)}  {_words(change, providers)}"


def _drains_changed(change: Change) -> Collection[str]:
    """The drains that were put on a provider, or taken from it."""
    if change.before is None or change.now is None:
        return ()
    return {*change.before["drains"]} ^ {*change.now["drains"]}


def _name_of(change: Change) -> str:
    provider = change.now or change.before
    return "-" if provider is None else str(provider["name"])


def _words(change: Change, providers: Mapping[str, Provider]) -> str:
    if change.kind == "names":
        return "names changed: traits, resource classes, labels, flavors or drains"
    if change.now is None:
        return "gone"
    if change.before is None:
        return f"new: {_amounts(change.now)}".removesuffix(": ")
    before, now = change.before, change.now
    words = [*_changed_usages(before, now)]
    if before["name"] != now["name"]:
        words.append(f"renamed from {before['name']}")
    words += differences(*(_with_parent_named(each, providers) for each in (before, now)))
    old, new = {*before["drains"]}, {*now["drains"]}
    words += [f"drained by {name}" for name in sorted(new - old)]
    words += [f"no longer drained by {name}" for name in sorted(old - new)]
    return "  ".join(words) or "touched"


def _with_parent_named(provider: Provider, providers: Mapping[str, Provider]) -> Provider:
    parent = provider["parent"]
    name = providers[parent]["name"] if parent in providers else parent
    return {**provider, "parent": name}


def _amounts(provider: Mapping[str, Any]) -> str:
    return amounts({name: each["total"] for name, each in provider["inventories"].items()})


def _changed_usages(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Each changed usage with the capacity: "VCPU 62/64 (+8)"."""
    capacities = {name: capacity_of(record) for name, record in now["inventories"].items()}
    return [
        f"{name} {amount(used)}/{amount(capacities.get(name, 0))} ({difference:+,})"
        for name, used in now["usages"].items()
        if (difference := used - before["usages"].get(name, 0))
    ]


@click.command()
@option(
    "--include PARTS",
    "What to print of each provider, separated by commas: inventories, usages, traits,"
    " aggregates, drains, allocations.  [default: all but allocations]",
)
@click.option(
    "--output",
    type=click.File("w", lazy=True, atomic=True),
    default="-",
    help="Write to this file.  [default: stdout]",
)
@asking
def dump(client: Client, include: str | None, output: TextIO) -> None:
    """Print the whole fleet as JSON lines, in one consistent state.

    \b
      berth dump --output fleet.jsonl
      berth dump --include inventories,usages,allocations

    The first line has the revision from which `berth watch --after` continues; the last has `end`.
    """
    answer = client.get(FLEET, [] if include is None else [("include", include)])
    client.lines(answer)
    output.write(printable_json(answer.text))
