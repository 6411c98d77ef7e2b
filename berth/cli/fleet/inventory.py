# SPDX-License-Identifier: Apache-2.0
"""`berth inventory`: what a provider offers of each resource class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.completing import amounts, class_names
from berth.cli.fleet.generations import generation_option
from berth.cli.fleet.provider import provider_argument

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client


@click.group()
def inventory() -> None:
    """List, show, set and delete the inventory of a provider."""


@inventory.command(name="list")
@provider_argument
@accessing
def list_inventories(access: Access, reference: str) -> None:
    """List everything that a provider offers, with what is used of it."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.contents import print_inventories
    from berth.cli.fleet.references import uuid_of

    with access.client() as client:
        path = f"/resource_providers/{uuid_of(client, reference)}"
        answer = client.get(f"{path}/inventories")
        if access.as_json:
            print_answer(answer)
        else:
            records = answer.json()["inventories"]
            print_inventories(records, client.read(f"{path}/usages")["usages"])


@inventory.command()
@provider_argument
@click.argument("resource_class", metavar="CLASS", shell_complete=class_names)
@accessing
def show(access: Access, reference: str, resource_class: str) -> None:
    """Show the inventory of one resource class."""
    # Deferred: `--help` does not need them.
    from berth.cli.columns import amount, print_fields
    from berth.cli.fleet.client import path_of, print_answer
    from berth.cli.fleet.references import uuid_of

    with access.client() as client:
        uuid = uuid_of(client, reference)
        answer = client.get(path_of("resource_providers", uuid, "inventories", resource_class))
        if access.as_json:
            print_answer(answer)
        else:
            print_fields([(name, amount(value)) for name, value in answer.json().items()])


@inventory.command(name="set")
@provider_argument
@click.argument("changes", metavar="CLASS=TOTAL...", nargs=-1, shell_complete=amounts)
@click.option("--replace", is_flag=True, help="Remove the inventories that are not named.")
@generation_option
@accessing
def set_inventories(
    access: Access,
    reference: str,
    changes: Sequence[str],
    replace: bool,
    generation: int | None,
) -> None:
    """Set inventories: CLASS=TOTAL, or one field as CLASS:FIELD=VALUE.

    The fields are total, reserved, min_unit, max_unit, step_size and allocation_ratio. What you do
    not name stays as it is.

    \b
      berth inventory set cn7 VCPU=64 VCPU:allocation_ratio=4 MEMORY_MB=131072
    """
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.inventory_changes import changed, parse_change

    parsed = [parse_change(text) for text in changes]
    if not parsed and not replace:
        raise click.UsageError("nothing to change: give CLASS=TOTAL, as in VCPU=64")
    with access.client() as client:
        path, present = _inventories_of(client, reference, generation)
        records = changed({} if replace else present["inventories"], parsed)
        _put(client, path, {**present, "inventories": records})


@inventory.command()
@provider_argument
@click.argument("classes", metavar="CLASS...", nargs=-1, shell_complete=class_names)
@click.option("--all", "every", is_flag=True, help="Delete the inventories of all classes.")
@generation_option
@accessing
def delete(
    access: Access,
    reference: str,
    classes: Sequence[str],
    every: bool,
    generation: int | None,
) -> None:
    """Delete inventories that nobody uses."""
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.refusals import NotThere

    if bool(classes) == every:
        raise click.UsageError("name resource classes, or give --all")
    with access.client() as client:
        path, present = _inventories_of(client, reference, generation)
        records = present["inventories"]
        for name in classes:
            if name not in records:
                raise NotThere(f"{reference} has no inventory of {name}")
        kept = {name: record for name, record in records.items() if not every | (name in classes)}
        _put(client, path, {**present, "inventories": kept})


def _inventories_of(
    client: Client, reference: str, generation: int | None
) -> tuple[str, dict[str, Any]]:
    """The path of a provider's inventories, and what is there, at a generation if one is given."""
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.references import uuid_of

    path = f"/resource_providers/{uuid_of(client, reference)}/inventories"
    present = client.read(path)
    if generation is not None:
        present["resource_provider_generation"] = generation
    return path, present


def _put(client: Client, path: str, body: object) -> None:
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.contents import print_inventories

    answer = client.send("PUT", path, body)
    if client.as_json:
        print_answer(answer)
    else:
        usages = client.read(path.replace("/inventories", "/usages"))["usages"]
        print_inventories(answer.json()["inventories"], usages)
