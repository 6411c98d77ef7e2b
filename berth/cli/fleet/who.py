# SPDX-License-Identifier: Apache-2.0
"""`berth who`: who holds what, on a host or in a project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from berth.cli.columns import amounts, counted, print_columns
from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.completing import provider_names

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.client import Consumer
    from berth.hosts.service import Answer


@click.command()
@click.argument("subject", metavar="[HOST|PROJECT]", required=False, shell_complete=provider_names)
@click.option("--host", metavar="HOST", help="This host, whatever projects there are.")
@click.option("--project", metavar="PROJECT", help="Only this project.")
@click.option("--user", metavar="USER", help="Only this user.")
@click.option("--type", "consumer_type", metavar="TYPE", help="Only consumers of this type.")
@click.option("--name", metavar="NAME", help="Only consumers with this name.")
@accessing
def who(
    access: Access,
    subject: str | None,
    host: str | None,
    project: str | None,
    user: str | None,
    consumer_type: str | None,
    name: str | None,
) -> None:
    """List who holds something of a host, or what a project holds.

    \b
      berth who cn31
      berth who web
      berth who cn31 --project web

    HOST is the name or UUID of a host, or of a provider below it. Without HOST or PROJECT, it lists
    every consumer. If a host and a project have the same name, the host counts; --project names the
    project.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.client import print_answer

    if subject is not None and host is not None:
        raise click.UsageError("name one host")
    filters = {
        "host": host,
        "project_id": project,
        "user_id": user,
        "consumer_type": consumer_type,
        "name": name,
    }
    with access.client() as client:
        if subject is None:
            answer = _listed(client, filters)
        else:
            answer = _of_subject(client, subject, filters)
        if access.as_json:
            print_answer(answer)
        else:
            _print(answer)


_Filters = Mapping[str, str | None]


def _listed(client: Client, filters: _Filters) -> Answer:
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.client import CONSUMERS

    return client.get(
        CONSUMERS, [(name, value) for name, value in filters.items() if value is not None]
    )


def _of_subject(client: Client, subject: str, filters: _Filters) -> Answer:
    """The consumers of a host, or of a project if there is no such host.

    Raises:
        NotThere: there is neither.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.refusals import NotThere, ServiceRefused
    from berth.client.client import lines_of

    try:
        answer = _listed(client, {**filters, "host": subject})
    except ServiceRefused:
        # Whoever may see one project only may not ask for a host without it.
        return _listed(client, {**filters, "project_id": filters["project_id"] or subject})
    if "warnings" not in lines_of(answer)[1]:
        return answer
    if filters["project_id"] is not None:
        raise NotThere(f"no provider is named {subject}; `berth provider list` prints all of them")
    answer = _listed(client, {**filters, "project_id": subject})
    if not lines_of(answer)[0]:
        raise NotThere(f"no provider is named {subject}, and no project {subject} holds anything")
    return answer


def _print(answer: Answer) -> None:
    # Deferred: `--help` does not need them.
    from berth.client import Consumer
    from berth.client.client import lines_of

    consumers = sorted(map(Consumer.of, lines_of(answer)[0]), key=_order)
    rows = [
        [
            f"{each.project_id}/{each.name}" if each.name else each.uuid,
            each.project_id,
            each.user_id,
            each.consumer_type,
            "-" if each.created_at is None else f"{each.created_at:%Y-%m-%d %H:%M}",
            _holdings(each),
        ]
        for each in consumers
    ]
    if rows:
        print_columns(("CONSUMER", "PROJECT", "USER", "TYPE", "SINCE (UTC)", "HOLDS"), rows)
    click.echo(counted(len(rows), "consumer"))


def _order(consumer: Consumer) -> tuple[str, str, str]:
    return consumer.project_id, consumer.name or "", consumer.uuid


def _holdings(consumer: Consumer) -> str:
    """What a consumer holds, in a line."""
    return "; ".join(
        f"{consumer.providers[uuid]}: {amounts(resources)}"
        for uuid, resources in sorted(
            consumer.allocations.items(), key=lambda item: consumer.providers[item[0]]
        )
    )
