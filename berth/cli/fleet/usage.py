# SPDX-License-Identifier: Apache-2.0
"""`berth usage`: what is used of a provider, and what a project uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from berth.cli.columns import amount, counted, print_columns
from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.provider import provider_argument
from berth.cli.output import say

if TYPE_CHECKING:
    from berth.cli.fleet.references import Json


@click.group()
def usage() -> None:
    """Show what is used: of a provider, or by a project."""


@usage.command()
@provider_argument
@accessing
def provider(access: Access, reference: str) -> None:
    """Show what is used of a provider itself, without the providers below it."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.references import uuid_of

    with access.client() as client:
        answer = client.get(f"/resource_providers/{uuid_of(client, reference)}/usages")
        if access.as_json:
            print_answer(answer)
            return
        usages = answer.json()["usages"]
        rows = [[name, amount(used)] for name, used in sorted(usages.items())]
        print_columns(("CLASS", "USED"), rows, right=["USED"])


@usage.command()
@click.argument("project_id", metavar="PROJECT")
@click.option("--user", metavar="USER", help="Only consumers of this user.")
@click.option(
    "--consumer-type",
    metavar="TYPE",
    help="Only consumers of this type; `all` adds up every type, `unknown` are those without one.",
)
@accessing
def project(access: Access, project_id: str, user: str | None, consumer_type: str | None) -> None:
    """Show what a project uses, by consumer type."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.warned import warn

    typed = (("project", project_id), ("user", user), ("type", consumer_type))
    named = [(name, value) for name, value in typed if value is not None]
    members = {"project": "project_id", "user": "user_id", "type": "consumer_type"}
    query = [(members[name], value) for name, value in named]
    with access.client() as client:
        answer = client.get("/usages", query)
        if not answer.json()["usages"]:
            warn(f"no consumer has {', '.join(f'{name} {value}' for name, value in named)}")
        if access.as_json:
            print_answer(answer)
        else:
            _print_by_type(answer.json()["usages"])


def _print_by_type(usages: Json) -> None:
    consumers = sum(of_type["consumer_count"] for of_type in usages.values())
    if usages:
        print_columns(("TYPE", "CLASS", "USED"), list(_rows(usages)), right=["USED"])
    say(counted(consumers, "consumer"))


def _rows(usages: Json) -> Iterator[list[str]]:
    for consumer_type, of_type in sorted(usages.items()):
        for name, used in sorted(of_type.items()):
            if name != "consumer_count":
                yield [consumer_type, name, amount(used)]
