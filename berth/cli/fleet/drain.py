# SPDX-License-Identifier: Apache-2.0
"""`berth drain`: providers that get nothing new. Source: spec/beyond.md 7.1."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from berth.cli.columns import amount, counted, print_columns, print_fields
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.completing import drain_names, provider_names, trait_names
from berth.cli.fleet.named import put_named, replacing, send_each
from berth.cli.fleet.wanted import items_of
from berth.cli.output import say

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client

name_argument = click.argument("name", metavar="DRAIN", shell_complete=drain_names)


@click.group()
def drain() -> None:
    """List, create, show, change and delete drains, which exclude providers from searches.

    A drain excludes its providers, and all below them, from every search. It evicts no consumer,
    and berth still accepts a claim that names a drained provider. Deleting the drain restores
    everything.
    """


@drain.command(name="list")
@accessing
def list_drains(access: Access) -> None:
    """List drains."""
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.client import DRAINS, print_answer

    with access.client() as client:
        answer = client.get(DRAINS)
        if access.as_json:
            print_answer(answer)
            return
        every = answer.json()["drains"]
        rows = [
            [
                item["name"],
                item["effect"],
                amount(item["hosts"]),
                amount(item["providers"]),
                _time(item["created_at"]),
                item["reason"] or "-",
            ]
            for item in every
        ]
        if rows:
            heads = ("DRAIN", "EFFECT", "HOSTS", "PROVIDERS", "CREATED (UTC)", "REASON")
            print_columns(heads, rows, right=("HOSTS", "PROVIDERS"))
        say(counted(len(rows), "drain"))


@drain.command()
@name_argument
@accessing
def show(access: Access, name: str) -> None:
    """Show a drain, and how many consumers are left on each of its hosts."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import DRAINS, print_answer
    from berth.cli.fleet.suggestions import suggesting

    with access.client() as client:
        with suggesting(client, DRAINS, name):
            answer = client.get(_path(name))
        if access.as_json:
            print_answer(answer)
            return
        shown = answer.json()
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


def _selecting(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select hosts; the command gets them as `selected`."""

    def with_selected(
        required: Sequence[str],
        anywhere: Sequence[str],
        member_of: Sequence[str],
        not_in: Sequence[str],
        **typed: Any,
    ) -> None:
        selected = {
            **items_of("required", required),
            **items_of("anywhere", anywhere),
            **items_of("member_of", member_of),
            **({"not_in": [*not_in]} if not_in else {}),
        }
        command(selected=selected, **typed)

    functools.update_wrapper(with_selected, command)
    decorated: Callable[..., None] = with_selected
    for option in reversed(
        (
            click.option(
                "--required",
                metavar="TRAITS",
                multiple=True,
                shell_complete=trait_names,
                help="The hosts with these traits.",
            ),
            click.option(
                "--anywhere",
                metavar="TRAITS",
                multiple=True,
                shell_complete=trait_names,
                help="The hosts with these traits anywhere in their trees.",
            ),
            click.option(
                "--member-of",
                metavar="AGGREGATES",
                multiple=True,
                help="The hosts in these aggregates.",
            ),
            click.option(
                "--not-in",
                metavar="PROVIDER",
                multiple=True,
                shell_complete=provider_names,
                help="Exclude this host from them.",
            ),
        )
    ):
        decorated = option(decorated)
    return decorated


@drain.command()
@name_argument
@click.argument("providers", metavar="[PROVIDER]...", nargs=-1, shell_complete=provider_names)
@_selecting
@click.option("--reason", metavar="TEXT", help="Why; shown in lists and in the agent's log.")
@click.option("--announce", is_flag=True, help="Announce the drain without putting it into effect.")
@replacing
@click.option("--dry-run", is_flag=True, help="Show what the drain would do, and write nothing.")
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
    body = {
        **({"providers": [*providers]} if providers else {}),
        **({"select": selected} if selected else {}),
        "reason": reason or "",
        "effect": "none" if announce else "exclude",
    }
    with access.client() as client:
        send_drain(client, name, body, dry_run=dry_run, may_replace=replace)


@drain.command(name="set")
@name_argument
@click.option(
    "--effect",
    type=click.Choice(("exclude", "none")),
    help="exclude: searches exclude its providers; none: it is only announced.",
)
@click.option("--reason", metavar="TEXT", help="Why; shown in lists and in the agent's log.")
@click.option("--dry-run", is_flag=True, help="Show what the drain would do, and write nothing.")
@accessing
def set_drain(
    access: Access, name: str, effect: str | None, reason: str | None, dry_run: bool
) -> None:
    """Change the effect or the reason of a drain, which keeps its providers.

    \b
      berth drain set heating --effect exclude

    Exit codes: 0 done; 13 changes pending (--dry-run).
    """
    body = {
        **({} if reason is None else {"reason": reason}),
        **({} if effect is None else {"effect": effect}),
    }
    if not body:
        raise click.UsageError("nothing to change: give --effect or --reason")
    with access.client() as client:
        send_drain(client, name, body, dry_run=dry_run, may_replace=True, replaced="changed")


@drain.command()
@click.argument("names", metavar="DRAIN...", nargs=-1, required=True, shell_complete=drain_names)
@accessing
def delete(access: Access, names: Sequence[str]) -> None:
    """Delete drains: searches use their providers again."""
    send_each(access, "DELETE", "berth/v1/drains", names)


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
        InConflict: there is one already.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.client import print_answer

    path = _path(name) + ("?dry_run=true" if dry_run else "")
    answer, is_new = put_named(client, path, body, may_replace=may_replace)
    if client.as_json:
        print_answer(answer)
    else:
        done = "created" if is_new else replaced
        shown = _in_words(answer.json())
        say(shown if dry_run else f"{done} {name}: {shown}")
    if dry_run:
        raise CommandFailed("dry run: nothing was written", ExitCode.PENDING)


def _in_words(shown: dict[str, Any]) -> str:
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


def _time(text: str) -> str:
    """A time of the API for people, to the minute."""
    return text.replace("T", " ")[: len("2026-07-01 08:00")]


def _path(name: str) -> str:
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.client import DRAINS, path_of

    return f"{DRAINS}{path_of(name)}"
