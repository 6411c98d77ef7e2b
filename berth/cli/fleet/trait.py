# SPDX-License-Identifier: Apache-2.0
"""`berth trait`: traits, and which of them a provider has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from berth.cli.columns import counted
from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.completing import provider_names, trait_names
from berth.cli.fleet.generations import generation_option
from berth.cli.fleet.named import send_each
from berth.cli.fleet.provider import provider_argument
from berth.cli.output import say

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client

trait_arguments = click.argument(
    "names", metavar="TRAIT...", nargs=-1, required=True, shell_complete=trait_names
)


@click.group()
def trait() -> None:
    """List, show, create and delete traits, and set those of a provider."""


@trait.command(name="list")
@click.option(
    "--provider",
    "reference",
    metavar="PROVIDER",
    shell_complete=provider_names,
    help="Only the traits of this provider.",
)
@click.option("--prefix", metavar="TEXT", help="Only traits whose names start with this.")
@click.option("--name", "names", multiple=True, metavar="TRAIT", help="Only these, if they exist.")
@click.option(
    "--used/--unused",
    "is_used",
    default=None,
    help="Only traits that some provider has, or that none has.",
)
@accessing
def list_traits(
    access: Access,
    reference: str | None,
    prefix: str | None,
    names: Sequence[str],
    is_used: bool | None,
) -> None:
    """List traits."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.references import uuid_of

    if sum(map(bool, (reference, prefix, names))) > 1:
        raise click.UsageError("--provider, --prefix and --name exclude each other")
    if reference and is_used is not None:
        raise click.UsageError("--provider lists what this provider has: no --used and no --unused")
    with access.client() as client:
        if reference:
            answer = client.get(f"/resource_providers/{uuid_of(client, reference)}/traits")
        else:
            answer = client.get("/traits", _trait_query(prefix, names, is_used))
        if access.as_json:
            print_answer(answer)
        else:
            _print_traits(answer.json()["traits"])


def _trait_query(
    prefix: str | None, names: Sequence[str], is_used: bool | None
) -> list[tuple[str, str]]:
    query = []
    if prefix:
        query.append(("name", f"startswith:{prefix}"))
    if names:
        query.append(("name", f"in:{','.join(names)}"))
    if is_used is not None:
        query.append(("associated", "true" if is_used else "false"))
    return query


def _print_traits(names: Iterable[str]) -> None:
    every = sorted(names)
    for name in every:
        say(name)
    say(counted(len(every), "trait"))


@trait.command()
@click.argument("name", metavar="TRAIT", shell_complete=trait_names)
@accessing
def show(access: Access, name: str) -> None:
    """Show which providers have a trait.

    With --json, it prints the list of these providers.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.columns import print_columns
    from berth.cli.fleet.client import path_of, print_answer
    from berth.cli.fleet.suggestions import suggesting

    with access.client() as client:
        with suggesting(client, "/traits", name):
            client.get(path_of("traits", name))
        answer = client.get("/resource_providers", [("required", name)])
        if access.as_json:
            print_answer(answer)
            return
        providers = answer.json()["resource_providers"]
        if providers:
            rows = sorted([item["name"], item["uuid"]] for item in providers)
            print_columns(("PROVIDER", "UUID"), rows)
        say(f"{counted(len(providers), 'provider has', 'providers have')} {name}")


@trait.command()
@trait_arguments
@accessing
def create(access: Access, names: Sequence[str]) -> None:
    """Create traits; their names start with CUSTOM_. One that exists stays as it is."""
    send_each(access, "PUT", "traits", names)


@trait.command()
@trait_arguments
@accessing
def delete(access: Access, names: Sequence[str]) -> None:
    """Delete traits that no provider has."""
    send_each(access, "DELETE", "traits", names)


# --- The traits of a provider ---------------------------------------------------------------------


@trait.command(name="set")
@provider_argument
@click.argument("names", metavar="[TRAIT]...", nargs=-1, shell_complete=trait_names)
@generation_option
@accessing
def set_traits(
    access: Access, reference: str, names: Sequence[str], generation: int | None
) -> None:
    """Replace all traits of a provider; without traits, remove all."""
    with access.client() as client:
        _put(client, reference, generation, of=set(names), without=None)


@trait.command()
@provider_argument
@trait_arguments
@generation_option
@accessing
def add(access: Access, reference: str, names: Sequence[str], generation: int | None) -> None:
    """Add traits to those of a provider."""
    with access.client() as client:
        _put(client, reference, generation, of=set(names), without=set())


@trait.command()
@provider_argument
@trait_arguments
@generation_option
@accessing
def remove(access: Access, reference: str, names: Sequence[str], generation: int | None) -> None:
    """Remove traits from those of a provider."""
    with access.client() as client:
        _put(client, reference, generation, of=set(), without=set(names))


def _put(
    client: Client,
    reference: str,
    generation: int | None,
    *,
    of: set[str],
    without: set[str] | None,
) -> None:
    """Set a provider's traits: `of`, and those that it has without some; None: without any."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.references import uuid_of
    from berth.cli.fleet.refusals import ServiceRefused
    from berth.cli.fleet.warned import warn

    path = f"/resource_providers/{uuid_of(client, reference)}/traits"
    body = client.read(path)
    if missing := (without or set()) - set(body["traits"]):
        warn(f"{reference} does not have {', '.join(sorted(missing))}")
    kept = set() if without is None else set(body["traits"]) - without
    body["traits"] = sorted(of | kept)
    if generation is not None:
        body["resource_provider_generation"] = generation
    try:
        answer = client.send("PUT", path, body)
    except ServiceRefused as refused:
        if not str(refused).startswith("No such trait"):
            raise
        sentence = f"{refused}; `berth trait create` creates one"
        raise ServiceRefused(sentence, refused.error_code) from refused
    if client.as_json:
        print_answer(answer)
    else:
        _print_traits(answer.json()["traits"])
