# SPDX-License-Identifier: Apache-2.0
"""`berth consumer`: consumers, and the allocations that they have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from berth.cli.columns import amount, counted, print_columns, print_fields
from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.provider import provider_argument
from berth.cli.output import say

if TYPE_CHECKING:
    from berth.cli.fleet.references import Json


@click.group()
def consumer() -> None:
    """Show consumers and their allocations."""


@consumer.command()
@click.argument("reference", metavar="CONSUMER")
@accessing
def show(access: Access, reference: str) -> None:
    """Show a consumer: its project, user and type, and its allocations.

    CONSUMER is a UUID, or the consumer's project and name, such as web/job-17.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import consumer_path, path_of, print_answer
    from berth.cli.fleet.references import consumer_uuid_of, names_of
    from berth.cli.fleet.refusals import Forbidden, NotThere

    with access.client() as client:
        uuid = consumer_uuid_of(client, reference)
        try:
            answer = client.get(path_of("allocations", uuid))
        except Forbidden:
            # A member of a project sees its consumers by berth's own route only.
            answer = client.get(consumer_path(uuid))
        if access.as_json:
            print_answer(answer)
            return
        body = answer.json()
        allocations = body["allocations"]
        if not allocations:
            raise NotThere(f"no consumer {reference} has allocations")
        names = {each: given["name"] for each, given in allocations.items() if "name" in given}
        _print_consumer(uuid, body, names or names_of(client, allocations))


def _print_consumer(uuid: str, body: Json, names: Mapping[str, str]) -> None:
    generation = body.get("consumer_generation") or body["generation"]
    print_fields(
        [
            ("consumer", uuid),
            ("type", body["consumer_type"]),
            ("project", body["project_id"]),
            ("user", body["user_id"]),
            ("generation", amount(generation)),
        ]
    )
    say()
    rows = sorted(
        [names[provider], resource_class, amount(used)]
        for provider, allocation in body["allocations"].items()
        for resource_class, used in allocation["resources"].items()
    )
    print_columns(("PROVIDER", "CLASS", "USED"), rows, right=["USED"])


@consumer.command(name="list")
@provider_argument
@accessing
def list_consumers(access: Access, reference: str) -> None:
    """List the consumers that have allocations of a provider itself."""
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.references import uuid_of

    with access.client() as client:
        answer = client.get(f"/resource_providers/{uuid_of(client, reference)}/allocations")
        if access.as_json:
            print_answer(answer)
            return
        allocations = answer.json()["allocations"]
        rows = sorted(
            [uuid, resource_class, amount(used)]
            for uuid, allocation in allocations.items()
            for resource_class, used in allocation["resources"].items()
        )
        if rows:
            print_columns(("CONSUMER", "CLASS", "USED"), rows, right=["USED"])
        say(counted(len(allocations), "consumer"))
