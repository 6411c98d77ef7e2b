# SPDX-License-Identifier: Apache-2.0
"""`berth class`, `berth trait` and `berth aggregate`: names of what providers have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from berth.cli.columns import amount, counted, print_list
from berth.cli.fleet.access import Access
from berth.cli.fleet.labels import described
from berth.cli.fleet.nouns import (
    Noun,
    SetOfProvider,
    add_create,
    add_delete,
    add_list,
    add_show,
)
from berth.cli.fleet.references import path_to_provider
from berth.cli.fleet.refusals import suggesting, warn
from berth.cli.fleet.request_options import without_none
from berth.cli.options import accessing, argument, asking, flag, match_of, option
from berth.cli.output import say
from berth.model.paths import AGGREGATES

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json

# --- Resource classes -----------------------------------------------------------------------------

_CLASSES = Noun("/resource_classes", "CLASS", "resource class", "resource classes")


@click.group(name="class")
def class_() -> None:
    """List, show, create and delete resource classes."""


add_list(class_, _CLASSES, "List the resource classes.")
add_show(class_, _CLASSES, "Show whether a resource class exists.", lambda body: say(body["name"]))
add_create(
    class_,
    _CLASSES,
    "Create resource classes; their names start with CUSTOM_. One that exists stays as it is.",
)
add_delete(class_, _CLASSES, "Delete resource classes that no provider has inventory of.")

# --- Traits ---------------------------------------------------------------------------------------

_TRAITS = Noun("/traits", "TRAIT", "trait")


@click.group()
def trait() -> None:
    """List, show, create and delete traits, and set those of a provider."""


@trait.command(name="list")
@option("--provider PROVIDER", "Only the traits of this provider.", parameter="reference")
@option("--prefix TEXT", "Only traits whose names start with this.")
@option("--name TRAIT...", "Only these, if they exist.", parameter="names")
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
    if sum(map(bool, (reference, prefix, names))) > 1:
        raise click.UsageError("--provider, --prefix and --name exclude each other")
    if reference and is_used is not None:
        raise click.UsageError("--provider lists what this provider has: no --used and no --unused")
    with access.client() as client:
        if reference:
            answer = client.get(path_to_provider(client, reference, "traits"))
        else:
            among = f"in:{','.join(names)}" if names else None
            query = without_none(
                name=f"startswith:{prefix}" if prefix else among,
                associated=None if is_used is None else str(is_used).lower(),
            )
            answer = client.get("/traits", query.items())
        client.show(answer, lambda body: _TRAITS.print_names(body["traits"]))


@trait.command()
@_TRAITS.argument()
@asking
def show(client: Client, name: str) -> None:
    """Show which providers have a trait.

    With --json, it prints the list of these providers.
    """

    def printed(body: Json) -> None:
        rows = sorted([item["name"], item["uuid"]] for item in body["resource_providers"])
        print_list(("PROVIDER", "UUID"), rows, f"provider has {name}", f"providers have {name}")

    with suggesting(client, _TRAITS.path, name):
        client.get(_TRAITS.path_to(name))
    client.show(client.get("/resource_providers", [("required", name)]), printed)


add_create(
    trait,
    _TRAITS,
    "Create traits; their names start with CUSTOM_. One that exists stays as it is.",
)
add_delete(trait, _TRAITS, "Delete traits that no provider has.")

SetOfProvider(
    _TRAITS,
    resolved=lambda client, names: set(names),
    lacks=lambda client, reference, missing: (
        f"{reference} does not have {', '.join(sorted(missing))}"
    ),
    printed=lambda client, reference, names: _TRAITS.print_names(names),
    next_step=("No such trait", "`berth trait create` creates one"),
).add_verbs(
    trait,
    to_set="Replace all traits of a provider; without traits, remove all.",
    to_add="Add traits to those of a provider.",
    to_remove="Remove traits from those of a provider.",
)

# --- Aggregates -----------------------------------------------------------------------------------


def _others(item: Json) -> str:
    pairs = sorted(item["labels"].items())
    return " ".join(f"{key}={value}" for key, value in pairs if key != "name") or "-"


_AGGREGATES = Noun(
    AGGREGATES,
    "AGGREGATE",
    "aggregate",
    columns={
        "NAME": lambda item: item["labels"].get("name", "-"),
        "UUID": lambda item: str(item["uuid"]),
        "MEMBERS": lambda item: amount(item["members"]),
        "LABELS": _others,
    },
    right=["MEMBERS"],
)


@click.group()
def aggregate() -> None:
    """List and label aggregates, and set those of a provider.

    An aggregate is named by its UUID, by its label `name`, or by a label KEY=VALUE, which names
    every aggregate that has it.
    """


@aggregate.command(name="list")
@option("--provider PROVIDER", "Only the aggregates of this provider.", parameter="reference")
@option(
    "--label KEY=VALUE...", "Only aggregates with this label; may be repeated.", parameter="labels"
)
@accessing
def list_aggregates(access: Access, reference: str | None, labels: Sequence[str]) -> None:
    """List aggregates with their labels and the number of their members."""
    if reference and labels:
        raise click.UsageError("--provider and --label exclude each other")
    with access.client() as client:
        if reference:
            _list_of_provider(client, reference)
            return
        answer = client.get(AGGREGATES, [("label", label) for label in labels])
        if labels and not answer.json()["aggregates"]:
            warn(
                f"no aggregate has the label{'s' if len(labels) > 1 else ''} {' and '.join(labels)}"
            )
        client.show(
            answer,
            lambda body: _AGGREGATES.print_table(sorted(body["aggregates"], key=_AGGREGATES.cells)),
        )


def _list_of_provider(client: Client, reference: str) -> None:
    def printed(body: Json) -> None:
        uuids = sorted(body["aggregates"], key=client.labels.describe)
        rows = [[client.labels.describe(uuid), uuid] for uuid in uuids]
        print_list(("AGGREGATE", "UUID"), rows, "aggregate")

    client.show(client.get(path_to_provider(client, reference, "aggregates")), printed)


@aggregate.command()
@_AGGREGATES.argument()
@argument("labels", "KEY=VALUE...")
@flag("--replace", "Remove the labels that are not named.")
@accessing
def label(access: Access, name: str, labels: Sequence[str], replace: bool) -> None:
    """Set labels of an aggregate; KEY= removes one.

    \b
      berth aggregate label 2f5c6a0e-4c5e-4d3c-9d0e-1b1a1f3a7f10 name=az-1 zone=z1
    """
    changes = dict(_pair(text) for text in labels)
    if not changes and not replace:
        raise click.UsageError("nothing to change: give KEY=VALUE, as in zone=z1")
    with access.client() as client:
        every = client.labels
        uuid = _single(every.aggregates(name), name)
        after = {**({} if replace else every.by_uuid().get(uuid, {})), **changes}
        body = {"labels": {key: value for key, value in after.items() if value}}
        answer = client.send("PUT", _AGGREGATES.path_to(uuid), body)
        client.show(answer, lambda _: say(f"labelled {uuid}: {_words(body['labels'])}"))


def _words(labels: dict[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "no labels"


_LABEL: Final = re.compile(r"(?P<key>[^=]+)=(?P<value>.*)", re.DOTALL)


def _pair(text: str) -> tuple[str, str]:
    match = match_of(_LABEL, text, "{} is not KEY=VALUE, as in zone=z1")
    return match["key"], match["value"]


def _single(uuids: Sequence[str], name: str) -> str:
    if len(uuids) > 1:
        raise click.UsageError(f"{counted(len(uuids), 'aggregate')} have {name}: name one by UUID")
    return uuids[0]


def _aggregates_of(client: Client, names: Sequence[str]) -> set[str]:
    labels = client.labels
    return {uuid for name in names for uuid in labels.aggregates(name)}


SetOfProvider(
    _AGGREGATES,
    resolved=_aggregates_of,
    lacks=lambda client, reference, missing: (
        f"{reference} is not in {described(client.labels, missing)}"
    ),
    printed=lambda client, reference, uuids: say(
        f"{reference} is in {described(client.labels, uuids) or 'no aggregate'}"
    ),
).add_verbs(
    aggregate,
    to_set="Replace all aggregates of a provider; without aggregates, remove all.",
    to_add="Add a provider to aggregates.",
    to_remove="Remove a provider from aggregates.",
)
