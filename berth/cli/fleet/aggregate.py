# SPDX-License-Identifier: Apache-2.0
"""`berth aggregate`: groups of providers, and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from berth.cli.columns import amount, counted, print_columns
from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.completing import provider_names
from berth.cli.fleet.generations import generation_option
from berth.cli.fleet.provider import provider_argument
from berth.cli.output import say

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json

aggregate_arguments = click.argument("names", metavar="AGGREGATE...", nargs=-1, required=True)


@click.group()
def aggregate() -> None:
    """List and label aggregates, and set those of a provider.

    An aggregate is named by its UUID, by its label `name`, or by a label KEY=VALUE, which names
    every aggregate that has it.
    """


@aggregate.command(name="list")
@click.option(
    "--provider",
    "reference",
    metavar="PROVIDER",
    shell_complete=provider_names,
    help="Only the aggregates of this provider.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="Only aggregates with this label; may be repeated.",
)
@accessing
def list_aggregates(access: Access, reference: str | None, labels: Sequence[str]) -> None:
    """List aggregates with their labels and the number of their members."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import AGGREGATES, print_answer
    from berth.cli.fleet.warned import warn

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
        if access.as_json:
            print_answer(answer)
        else:
            _print_aggregates(answer.json()["aggregates"])


def _print_aggregates(aggregates: Sequence[Json]) -> None:
    rows = sorted(
        [item["labels"].get("name", "-"), item["uuid"], amount(item["members"]), _others(item)]
        for item in aggregates
    )
    if rows:
        print_columns(("NAME", "UUID", "MEMBERS", "LABELS"), rows, right=["MEMBERS"])
    say(counted(len(rows), "aggregate"))


def _others(item: Json) -> str:
    pairs = sorted(item["labels"].items())
    return " ".join(f"{key}={value}" for key, value in pairs if key != "name") or "-"


def _list_of_provider(client: Client, reference: str) -> None:
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.references import Labels, uuid_of

    answer = client.get(f"/resource_providers/{uuid_of(client, reference)}/aggregates")
    if client.as_json:
        print_answer(answer)
        return
    labels = Labels(client)
    uuids = sorted(answer.json()["aggregates"], key=labels.describe)
    if uuids:
        print_columns(("AGGREGATE", "UUID"), [[labels.describe(uuid), uuid] for uuid in uuids])
    say(counted(len(uuids), "aggregate"))


@aggregate.command()
@click.argument("name", metavar="AGGREGATE")
@click.argument("labels", metavar="KEY=VALUE...", nargs=-1)
@click.option("--replace", is_flag=True, help="Remove the labels that are not named.")
@accessing
def label(access: Access, name: str, labels: Sequence[str], replace: bool) -> None:
    """Set labels of an aggregate; KEY= removes one.

    \b
      berth aggregate label 2f5c6a0e-4c5e-4d3c-9d0e-1b1a1f3a7f10 name=az-1 zone=z1
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import AGGREGATES, print_answer
    from berth.cli.fleet.references import Labels

    changes = dict(_pair(text) for text in labels)
    if not changes and not replace:
        raise click.UsageError("nothing to change: give KEY=VALUE, as in zone=z1")
    with access.client() as client:
        every = Labels(client)
        uuid = _single(every.aggregates(name), name)
        after = {**({} if replace else every.by_uuid().get(uuid, {})), **changes}
        body = {"labels": {key: value for key, value in after.items() if value}}
        answer = client.send("PUT", f"{AGGREGATES}/{uuid}", body)
        if access.as_json:
            print_answer(answer)
        else:
            say(f"labelled {uuid}: {_words(body['labels'])}")


def _words(labels: dict[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "no labels"


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise click.UsageError(f"{text} is not KEY=VALUE, as in zone=z1")
    return key, value


def _single(uuids: Sequence[str], name: str) -> str:
    if len(uuids) > 1:
        raise click.UsageError(f"{counted(len(uuids), 'aggregate')} have {name}: name one by UUID")
    return uuids[0]


# --- The aggregates of a provider -----------------------------------------------------------------


@aggregate.command(name="set")
@provider_argument
@click.argument("names", metavar="[AGGREGATE]...", nargs=-1)
@generation_option
@accessing
def set_aggregates(
    access: Access, reference: str, names: Sequence[str], generation: int | None
) -> None:
    """Replace all aggregates of a provider; without aggregates, remove all."""
    with access.client() as client:
        _put(client, reference, names, generation, is_replaced=True)


@aggregate.command()
@provider_argument
@aggregate_arguments
@generation_option
@accessing
def add(access: Access, reference: str, names: Sequence[str], generation: int | None) -> None:
    """Add a provider to aggregates."""
    with access.client() as client:
        _put(client, reference, names, generation)


@aggregate.command()
@provider_argument
@aggregate_arguments
@generation_option
@accessing
def remove(access: Access, reference: str, names: Sequence[str], generation: int | None) -> None:
    """Remove a provider from aggregates."""
    with access.client() as client:
        _put(client, reference, names, generation, is_removed=True)


def _put(
    client: Client,
    reference: str,
    names: Sequence[str],
    generation: int | None,
    *,
    is_replaced: bool = False,
    is_removed: bool = False,
) -> None:
    """Set a provider's aggregates: its present ones unless replaced, with or without some."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.references import Labels, described, uuid_of
    from berth.cli.fleet.warned import warn

    labels = Labels(client)
    named = {uuid for name in names for uuid in labels.aggregates(name)}
    path = f"/resource_providers/{uuid_of(client, reference)}/aggregates"
    body = client.read(path)
    present = set() if is_replaced else set(body["aggregates"])
    if is_removed and (missing := named - present):
        warn(f"{reference} is not in {described(labels, missing)}")
    body["aggregates"] = sorted(present - named if is_removed else present | named)
    if generation is not None:
        body["resource_provider_generation"] = generation
    answer = client.send("PUT", path, body)
    if client.as_json:
        print_answer(answer)
    else:
        words = described(labels, answer.json()["aggregates"])
        say(f"{reference} is in {words or 'no aggregate'}")
