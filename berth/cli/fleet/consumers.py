# SPDX-License-Identifier: Apache-2.0
"""`berth who`, `berth consumer`, `berth lease`, `berth usage`: who holds what, and until when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from berth.cli.columns import (
    amount,
    amounts,
    counted,
    print_columns,
    print_fields,
    print_list,
    time_left,
    utc_time,
)
from berth.cli.fleet.access import Access
from berth.cli.fleet.nouns import add_part_of_provider
from berth.cli.fleet.references import consumer_uuid_of, find_provider, names_of
from berth.cli.fleet.refusals import did_you_mean, warn
from berth.cli.options import accessing, argument, asking, lease_seconds, option
from berth.cli.output import say
from berth.model.paths import CONSUMERS, LEASES, consumer_path, path_of
from berth.model.refusals import Forbidden, NotThere

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json
    from berth.client import Consumer, Lease
    from berth.hosts.service import Answer

# --- Who holds what -------------------------------------------------------------------------------


@click.command()
@argument("subject", "[HOST|PROJECT]")
@option("--host HOST", "Only consumers on this host; never a project.")
@option("--project PROJECT", "Only this project.")
@option("--user USER", "Only this user.")
@option("--type TYPE", "Only consumers of this type.", parameter="consumer_type")
@option("--name NAME", "Only consumers with this name.")
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
        if not client.lines(answer):
            _warn_of_nothing(filters)
        client.show_lines(answer, _print)


_Filters = Mapping[str, str | None]


def _warn_of_nothing(filters: _Filters) -> None:
    """Repeat the names that no consumer has, because one may be misspelt."""
    words = {"project_id": "project", "user_id": "user", "consumer_type": "type", "name": "name"}
    named = [f"{word} {filters[name]}" for name, word in words.items() if filters.get(name)]
    if named:
        warn(f"no consumer has {', '.join(named)}")


def _listed(client: Client, filters: _Filters) -> Answer:
    return client.get(CONSUMERS, _given(filters))


def _given(filters: _Filters) -> list[tuple[str, str]]:
    return [(name, value) for name, value in filters.items() if value is not None]


def _of_subject(client: Client, subject: str, filters: _Filters) -> Answer:
    """The consumers of a host, or of a project if there is no such host.

    Raises:
        NotThere: there is neither.
    """
    try:
        find_provider(client, subject)
    except Forbidden:
        # A member of a project may not read providers, and asks for a project.
        return _listed(client, {**filters, "project_id": filters["project_id"] or subject})
    except NotThere:
        if filters["project_id"] is not None:
            raise
        answer = _listed(client, {**filters, "project_id": subject})
        if client.lines(answer):
            return answer
        hint = did_you_mean(client, "/resource_providers", subject)
        raise NotThere(
            f"no provider is named {subject}, and no project {subject} holds anything{hint}"
        ) from None
    return _listed(client, {**filters, "host": subject})


def _print(listed: Sequence[Json]) -> None:
    # Deferred: `--help` does not need it.
    from berth.client import Consumer

    consumers = sorted(map(Consumer.of, listed), key=_order)
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
    heads = ("CONSUMER", "PROJECT", "USER", "TYPE", "SINCE (UTC)", "HOLDS")
    print_list(heads, rows, "consumer")


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


# --- Consumers ------------------------------------------------------------------------------------


@click.group()
def consumer() -> None:
    """Show consumers and their allocations."""


@consumer.command()
@argument("reference", "CONSUMER")
@asking
def show(client: Client, reference: str) -> None:
    """Show a consumer: its project, user and type, and its allocations.

    CONSUMER is a UUID, or the consumer's project and name, such as web/job-17.
    """
    uuid = consumer_uuid_of(client, reference)
    try:
        answer = client.get(path_of("allocations", uuid))
    except Forbidden:
        # A member of a project sees its consumers by berth's own route only.
        answer = client.get(consumer_path(uuid))
    client.show(answer, lambda body: _print_consumer(client, reference, uuid, body))


def _print_consumer(client: Client, reference: str, uuid: str, body: Json) -> None:
    allocations = body["allocations"]
    if not allocations:
        raise NotThere(f"no consumer {reference} has allocations")
    sent = {each: given["name"] for each, given in allocations.items() if "name" in given}
    names = sent or names_of(client, allocations)
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
        for provider, allocation in allocations.items()
        for resource_class, used in allocation["resources"].items()
    )
    print_columns(("PROVIDER", "CLASS", "USED"), rows, right=["USED"])


def _print_consumers(body: Json) -> None:
    allocations = body["allocations"]
    rows = sorted(
        [uuid, resource_class, amount(used)]
        for uuid, allocation in allocations.items()
        for resource_class, used in allocation["resources"].items()
    )
    if rows:
        print_columns(("CONSUMER", "CLASS", "USED"), rows, right=["USED"])
    say(counted(len(allocations), "consumer"))


add_part_of_provider(
    consumer,
    "list",
    "allocations",
    "List the consumers that have allocations of a provider itself.",
    _print_consumers,
)


# --- Leases ---------------------------------------------------------------------------------------


@click.group()
def lease() -> None:
    """List, set, end and sweep leases of consumers.

    When a lease expires, berth releases everything that its consumer uses. Any other write of the
    consumer's allocations ends the lease.
    """


@lease.command(name="list")
@asking
def list_leases(client: Client) -> None:
    """List leases, the next to expire first."""
    client.show_lines(client.get(LEASES), _print_leases)


def _print_leases(listed: Sequence[Json]) -> None:
    # Deferred: `--help` does not need it.
    from berth.client import Lease

    leases = sorted(map(Lease.of, listed), key=lambda each: (each.seconds_left, _named(each)))
    rows = [
        [_named(each), each.user_id, utc_time(each.expires_at), time_left(each.seconds_left)]
        for each in leases
    ]
    print_list(("CONSUMER", "USER", "EXPIRES", "LEFT"), rows, "lease")


@lease.command(name="set")
@argument("consumer", "CONSUMER")
@argument("seconds", "TIME", type=lease_seconds)
@asking
def set_lease(client: Client, consumer: str, seconds: int) -> None:
    """Give a consumer a lease, or renew the one that it has.

    \b
      berth lease set web/job-17 10m

    CONSUMER is a UUID, or PROJECT/NAME. TIME counts from now: 90s, 10m, 2h, at most 1d.
    """
    answer = client.send("PUT", client.lease_path(consumer), {"seconds": seconds})
    client.show(answer, lambda sent: say(f"{consumer} is leased until {_end_of(sent)}"))


def _end_of(sent: Json) -> str:
    # Deferred: `--help` does not need it.
    from berth.client import Lease

    return utc_time(Lease.of(sent).expires_at)


@lease.command()
@argument("consumers", "CONSUMER...", required=True)
@asking
def end(client: Client, consumers: Sequence[str]) -> None:
    """End leases: the consumers keep their allocations.

    CONSUMER is a UUID, or PROJECT/NAME.
    """
    for consumer in consumers:
        client.end_lease(consumer)
        if not client.as_json:
            say(f"ended the lease of {consumer}; it keeps its allocations")


@lease.command()
@asking
def sweep(client: Client) -> None:
    """Release consumers whose leases have expired.

    A running service does this every few seconds; without one, nothing expires until this command
    runs.
    """
    client.show(client.send("POST", LEASES), lambda body: _print_released(body["released"]))


def _print_released(released: Sequence[Json]) -> None:
    for each in released:
        say(
            f"released {each['consumer']} of project {each['project_id']} on "
            f"{', '.join(each['hosts'])}"
        )
    say(f"released {counted(len(released), 'consumer')}")


def _named(lease: Lease) -> str:
    return f"{lease.project_id}/{lease.name}" if lease.name else lease.consumer


# --- Usages ---------------------------------------------------------------------------------------


@click.group()
def usage() -> None:
    """Show what is used: of a provider, or by a project."""


def _print_usages(body: Json) -> None:
    rows = [[name, amount(used)] for name, used in sorted(body["usages"].items())]
    print_columns(("CLASS", "USED"), rows, right=["USED"])


add_part_of_provider(
    usage,
    "provider",
    "usages",
    "Show what is used of a provider itself, without the providers below it.",
    _print_usages,
)


@usage.command()
@argument("project_id", "PROJECT")
@option("--user USER", "Only consumers of this user.")
@option(
    "--consumer-type TYPE",
    "Only consumers of this type; `all` adds up every type, `unknown` are those without one.",
)
@asking
def project(client: Client, project_id: str, user: str | None, consumer_type: str | None) -> None:
    """Show what a project uses, by consumer type."""
    filters = {"project_id": project_id, "user_id": user, "consumer_type": consumer_type}
    answer = client.get("/usages", _given(filters))
    if not answer.json()["usages"]:
        _warn_of_nothing(filters)
    client.show(answer, lambda body: _print_by_type(body["usages"]))


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
