# SPDX-License-Identifier: Apache-2.0
"""`berth inventory`: what a provider offers of each resource class."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from berth.cli.columns import amount, print_fields
from berth.cli.fleet.access import Access
from berth.cli.fleet.nouns import generation_option, provider_argument
from berth.cli.fleet.provider_trees import FIELDS, print_inventories
from berth.cli.fleet.references import path_to_provider
from berth.cli.options import accessing, argument, asking, flag, match_of
from berth.model.refusals import NotThere

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json


@click.group()
def inventory() -> None:
    """List, show, set and delete the inventory of a provider."""


@inventory.command(name="list")
@provider_argument
@asking
def list_inventories(client: Client, reference: str) -> None:
    """List everything that a provider offers, with what is used of it."""
    path = path_to_provider(client, reference, "inventories")
    answer = client.get(path)
    client.show(answer, lambda body: _print(client, path, body))


@inventory.command()
@provider_argument
@argument("resource_class", "CLASS")
@asking
def show(client: Client, reference: str, resource_class: str) -> None:
    """Show the inventory of one resource class."""
    answer = client.get(path_to_provider(client, reference, "inventories", resource_class))
    client.show(
        answer,
        lambda record: print_fields([(name, amount(value)) for name, value in record.items()]),
    )


@inventory.command(name="set")
@provider_argument
@argument("changes", "CLASS=TOTAL...")
@flag("--replace", "Remove the inventories that are not named.")
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
    parsed = [parse_change(text) for text in changes]
    if not parsed and not replace:
        raise click.UsageError("nothing to change: give CLASS=TOTAL, as in VCPU=64")
    with access.client() as client:
        path, present = _inventories_of(client, reference, generation)
        records = changed({} if replace else present["inventories"], parsed)
        _put(client, path, {**present, "inventories": records})


@inventory.command()
@provider_argument
@argument("classes", "CLASS...")
@flag("--all", "Delete the inventories of all classes.", parameter="every")
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
    path = path_to_provider(client, reference, "inventories")
    present = client.read(path)
    if generation is not None:
        present["resource_provider_generation"] = generation
    return path, present


def _put(client: Client, path: str, body: object) -> None:
    client.show(client.send("PUT", path, body), lambda sent: _print(client, path, sent))


def _print(client: Client, path: str, body: Json) -> None:
    """Print inventories, of the path at which they are, with what is used."""
    usages = client.read(path.replace("/inventories", "/usages"))["usages"]
    print_inventories(body["inventories"], usages)


_CHANGE: Final = re.compile(
    r"(?P<name>[A-Z0-9_]+)(:(?P<field>[a-z_]+))?=(?P<value>[0-9]+(\.[0-9]+)?)"
)

_TOTAL: Final = "total"
#: The only field that is not an integer.
_RATIO: Final = "allocation_ratio"


@dataclass(frozen=True, slots=True)
class Change:
    """The new value of one field of an inventory."""

    resource_class: str
    field: str
    value: float


def parse_change(text: str) -> Change:
    """The change that `CLASS=TOTAL` or `CLASS:FIELD=VALUE` asks for.

    Raises:
        UsageError: it is neither, or there is no such field.
    """
    match = match_of(
        _CHANGE,
        text,
        "{} is neither CLASS=TOTAL nor CLASS:FIELD=VALUE, as in VCPU=64 or VCPU:reserved=2",
    )
    field = match["field"] or _TOTAL
    if field not in (_TOTAL, *FIELDS):
        raise click.UsageError(
            f"{text}: an inventory has the fields {', '.join((_TOTAL, *FIELDS))}"
        )
    if field != _RATIO and "." in match["value"]:
        raise click.UsageError(f"{text}: {field} is an integer")
    return Change(
        match["name"], field, float(match["value"]) if field == _RATIO else int(match["value"])
    )


def changed(records: Mapping[str, Json], changes: Iterable[Change]) -> dict[str, dict[str, Any]]:
    """Inventories after changes; the service completes the fields of a new one.

    Raises:
        UsageError: a new inventory has no total.
    """
    after = {name: dict(record) for name, record in records.items()}
    for change in changes:
        after.setdefault(change.resource_class, {})[change.field] = change.value
    for name, record in after.items():
        if _TOTAL not in record:
            raise click.UsageError(f"the provider has no inventory of {name}: give {name}=TOTAL")
    return after
