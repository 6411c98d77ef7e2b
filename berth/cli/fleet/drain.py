# SPDX-License-Identifier: Apache-2.0
"""`berth drain`: providers that get nothing new. Source: spec/beyond.md 7.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from berth.cli.columns import amount, counted, print_columns, print_fields
from berth.cli.failure import CommandFailed, ExitCode
from berth.cli.fleet.access import Access
from berth.cli.fleet.nouns import Noun, add_delete, add_list, add_show, put_named, replacing
from berth.cli.fleet.request_options import MemberOption, gathering_members, without_none
from berth.cli.options import accessing, argument, flag, option
from berth.cli.output import say
from berth.model.paths import DRAINS
from berth.pasted.command import items_of

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json


def _time(text: str) -> str:
    """A time of the API for people, to the minute."""
    return text.replace("T", " ")[: len("2026-07-01 08:00")]


_DRAINS = Noun(
    DRAINS,
    "DRAIN",
    "drain",
    columns={
        "DRAIN": lambda item: str(item["name"]),
        "EFFECT": lambda item: str(item["effect"]),
        "HOSTS": lambda item: amount(item["hosts"]),
        "PROVIDERS": lambda item: amount(item["providers"]),
        "CREATED (UTC)": lambda item: _time(item["created_at"]),
        "REASON": lambda item: item["reason"] or "-",
    },
    right=("HOSTS", "PROVIDERS"),
)


def _print_drain(shown: Json) -> None:
    created = " by ".join(filter(None, (_time(shown["created_at"]), shown["created_by"])))
    print_fields(
        (
            ("reason", shown["reason"] or "-"),
            ("effect", shown["effect"]),
            ("created (UTC)", created),
        )
    )
    if shown["left"]:
        rows = [[item["host"]["name"], amount(item["consumers"])] for item in shown["left"]]
        print_columns(("HOST", "CONSUMERS"), rows, right=("CONSUMERS",))
    left = counted(shown["consumers"], "consumer")
    say(f"{left} left on {counted(shown['hosts'], 'host')}")


@click.group()
def drain() -> None:
    """List, create, show, change and delete drains, which exclude providers from searches.

    A drain excludes its providers, and all below them, from every search. It evicts no consumer,
    and berth still accepts a claim that names a drained provider. Deleting the drain restores
    everything.
    """


add_list(drain, _DRAINS, "List drains.")
add_show(
    drain,
    _DRAINS,
    "Show a drain, and how many consumers are left on each of its hosts.",
    _print_drain,
)


_selecting = gathering_members(
    "selected",
    MemberOption("--required TRAITS", "The hosts with these traits.", "required", items_of),
    MemberOption(
        "--anywhere TRAITS",
        "The hosts with these traits anywhere in their trees.",
        "anywhere",
        items_of,
    ),
    MemberOption("--member-of AGGREGATES", "The hosts in these aggregates.", "member_of", items_of),
    MemberOption("--not-in PROVIDER", "Exclude this host from them.", "not_in"),
)
_reason = option("--reason TEXT", "Why; shown in lists and in the agent's log.")


@drain.command()
@_DRAINS.argument()
@argument("providers", "[PROVIDER]...")
@_selecting
@_reason
@flag("--announce", "Announce the drain without putting it into effect.")
@replacing
@flag("--dry-run", "Show what the drain would do, and write nothing.")
@accessing
def create(
    access: Access,
    name: str,
    providers: Sequence[str],
    selected: dict[str, Any],
    reason: str | None,
    announce: bool,
    replace: bool,
    dry_run: bool,
) -> None:
    """Create a drain, or replace all of one with --replace.

    \b
      berth drain create firmware-4.2 cn7 cn8_gpu_1 --reason 'firmware 4.2'
      berth drain create rack-7 --member-of rack=r7 --dry-run

    It contains the named providers, and the hosts that now meet all conditions.

    Exit codes: 0 done; 13 changes pending (--dry-run).
    """
    if not providers and not selected:
        raise click.UsageError("no provider is named: give PROVIDER, or --member-of for hosts")
    body = without_none(
        providers=[*providers] or None,
        select=selected or None,
        reason=reason or "",
        effect="none" if announce else "exclude",
    )
    with access.client() as client:
        send_drain(client, name, body, dry_run=dry_run, may_replace=replace)


@drain.command(name="set")
@_DRAINS.argument()
@click.option(
    "--effect",
    type=click.Choice(("exclude", "none")),
    help="exclude: searches exclude its providers; none: it is only announced.",
)
@_reason
@flag("--dry-run", "Show what the drain would do, and write nothing.")
@accessing
def set_drain(
    access: Access, name: str, effect: str | None, reason: str | None, dry_run: bool
) -> None:
    """Change the effect or the reason of a drain, which keeps its providers.

    \b
      berth drain set heating --effect exclude

    Exit codes: 0 done; 13 changes pending (--dry-run).
    """
    body = without_none(reason=reason, effect=effect)
    if not body:
        raise click.UsageError("nothing to change: give --effect or --reason")
    with access.client() as client:
        send_drain(client, name, body, dry_run=dry_run, may_replace=True, replaced="changed")


add_delete(drain, _DRAINS, "Delete drains: searches use their providers again.")


def send_drain(
    client: Client,
    name: str,
    body: Mapping[str, Any],
    *,
    dry_run: bool,
    may_replace: bool,
    replaced: str = "replaced",
) -> None:
    """Create or change a drain, and print what it does.

    Args:
        may_replace: change one that is there.
        replaced: the word for a drain that was there.

    Raises:
        CommandFailed: it was a dry run.
        Refused: there is one already.
    """
    path = _DRAINS.path_to(name) + ("?dry_run=true" if dry_run else "")
    answer, is_new = put_named(client, path, body, may_replace=may_replace)
    done = "" if dry_run else f"{'created' if is_new else replaced} {name}: "
    client.show(answer, lambda shown: say(f"{done}{_in_words(shown)}"))
    if dry_run:
        raise CommandFailed("dry run: nothing was written", ExitCode.PENDING)


def _in_words(shown: Json) -> str:
    """What a drain does, in one line."""
    counts = ", ".join(
        counted(shown[member], noun)
        for member, noun in (
            ("hosts", "host"),
            ("providers", "provider"),
            ("consumers", "consumer"),
        )
    )
    capacity = ", ".join(
        f"{flavor} {amount(count['now'])} -> {amount(count['then'])}"
        for flavor, count in shown["capacity"].items()
    )
    return "; ".join(filter(None, (counts, capacity)))
