# SPDX-License-Identifier: Apache-2.0
"""Edits of whole trees of providers, and the changes that they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from berth.cli.columns import counted, print_line
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.fleet.client import print_answer
from berth.cli.fleet.differences import differences
from berth.client.client import tree_path

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json

_MARKS: Final[Mapping[str, str]] = {"create": "+", "update": "~", "remove": "-"}


def send_tree(client: Client, reference: str, body: Mapping[str, Any], *, dry_run: bool) -> None:
    """Make a tree like a body, and print what changed; for a dry run only print.

    Raises:
        CommandFailed: the dry run found changes (PENDING).
        InConflict: what would be removed is in use, or a provider of another tree has a name.
    """
    path = f"{tree_path(reference)}{'?dry_run=true' if dry_run else ''}"
    answer = client.send("PUT", path, body)
    edit = answer.json()
    if client.as_json:
        print_answer(answer)
    else:
        for line in _lines(edit):
            print_line(line)
    if dry_run and edit["changes"]:
        raise CommandFailed("nothing was written", ExitCode.PENDING)


def _lines(edit: Json) -> Iterator[str]:
    """What an edit changes, a line for each provider, and the sum."""
    for kind, member in (
        ("resource class", "created_resource_classes"),
        ("trait", "created_traits"),
    ):
        for name in edit[member]:
            yield f"+ {kind} {name}"
    for change in edit["changes"]:
        yield "  ".join([f"{_MARKS[change['change']]} {_name(change)}", *_words(change)])
    yield f"{counted(len(edit['changes']), 'provider')} changed"


def _name(change: Json) -> str:
    before, after = change["before"] or {}, change["after"] or {}
    was = before.get("name", change["name"])
    return f"{was} -> {change['name']}" if after and was != change["name"] else str(was)


def _words(change: Json) -> Iterator[str]:
    """The members of a provider that become others; nothing of one that goes."""
    if change["after"] is not None:
        yield from differences(change["before"] or {}, change["after"])
