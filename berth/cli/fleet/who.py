# SPDX-License-Identifier: Apache-2.0
"""`berth who`: who holds what, on a host or in a project."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from berth.cli.columns import amounts, counted, print_columns
from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.completing import provider_names
from berth.cli.output import say

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.client import Consumer
    from berth.hosts.service import Answer


@click.command()
@click.argument("subject", metavar="[HOST|PROJECT]", required=False, shell_complete=provider_names)
@click.option(
    "--host",
    metavar="HOST",
    help="Only consumers on this host; never a project.",
)
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
    """List who uses a host, or what a project uses.

    \b
      berth who cn31
      berth who web
      berth who cn31 --project web

    HOST is the name or UUID of a host, or of a provider below it. Without HOST or PROJECT, it lists
    every consumer. If a host and a project have the same name, the host counts; --project names the
    project.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.client import print_answer
    from berth.cli.fleet.references import find_provider
    from berth.cli.fleet.refusals import Forbidden
    from berth.client.client import lines_of

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
            if host is not None:
                with suppress(Forbidden):  # a member of a project may not read providers
                    find_provider(client, host)
            answer = _listed(client, filters)
        else:
            answer = _of_subject(client, subject, filters)
        if not lines_of(answer)[0]:
            _warn_of_nothing(filters)
        if access.as_json:
            print_answer(answer)
        else:
            _print(answer)


_Filters = Mapping[str, str | None]


def _warn_of_nothing(filters: _Filters) -> None:
    """Repeat the names that no consumer has, because one may be misspelt."""
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.warned import warn

    words = {"project_id": "project", "user_id": "user", "consumer_type": "type", "name": "name"}
    named = [f"{word} {filters[name]}" for name, word in words.items() if filters[name]]
    if named:
        warn(f"no consumer has {', '.join(named)}")


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
    from berth.cli.fleet.references import find_provider
    from berth.cli.fleet.refusals import Forbidden, NotThere
    from berth.cli.fleet.suggestions import did_you_mean
    from berth.client.client import lines_of

    try:
        find_provider(client, subject)
    except Forbidden:
        # A member of a project may not read providers, and asks for a project.
        return _listed(client, {**filters, "project_id": filters["project_id"] or subject})
    except NotThere:
        if filters["project_id"] is not None:
            raise
        answer = _listed(client, {**filters, "project_id": subject})
        if lines_of(answer)[0]:
            return answer
        hint = did_you_mean(client, "/resource_providers", subject)
        raise NotThere(
            f"no provider is named {subject}, and no project {subject} holds anything{hint}"
        ) from None
    return _listed(client, {**filters, "host": subject})


def _print(answer: Answer) -> None:
    # Deferred: `--help` does not need them.
    from berth.client import Consumer
    from berth.client.client import lines_of

    consumers = sorted(map(Consumer.of, lines_of(answer)[0]), key=_order)
    rows = [
        [
            _called(each),
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
    say(counted(len(rows), "consumer"))


def _called(consumer: Consumer) -> str:
    """A consumer by its project and name, or by its UUID."""
    return f"{consumer.project_id}/{consumer.name}" if consumer.name else consumer.uuid


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
