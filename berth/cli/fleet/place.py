# SPDX-License-Identifier: Apache-2.0
"""`berth place` and `berth move`: choose hosts for consumers, and claim there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import click

from berth.cli.columns import amounts, utc_time
from berth.cli.completing import provider_names
from berth.cli.failure import CommandFailed, ExitCode
from berth.cli.fleet.access import Access
from berth.cli.fleet.candidates import nothing_fits
from berth.cli.fleet.claims import consumer_typed, parsed_name
from berth.cli.fleet.references import find_provider, names_of
from berth.cli.fleet.request_options import RequestOptions, ordering, takes_question, without_none
from berth.cli.fleet.why import fits, print_explanations
from berth.cli.options import Decorator, accessing, argument, asking, flag, match_of, option
from berth.cli.options import lease_seconds as seconds_of
from berth.cli.output import say
from berth.model.paths import PLACE, consumer_path
from berth.model.refusals import Conflict, Forbidden, NotThere

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json


#: Options that `berth place` and `berth move` share.
placing_order = ordering(
    "Which host is best: the fullest (pack) or the emptiest (spread).  [default: spread]"
)
dry_running = flag("--dry-run", "Print what would be done, and write nothing.")


def leasing(text: str) -> Decorator:
    """Add `--lease`; the command gets it as `lease_seconds`.

    Args:
        text: the help.
    """
    return option("--lease TIME", text, parameter="lease_seconds", type=seconds_of)


@click.command()
@takes_question
@option(
    "--for PROJECT/NAME...",
    "Place a consumer with a name, instead of --project and --consumer; may be repeated.",
    parameter="names",
)
@option("--project PROJECT", "The consumers' project.")
@option("--user USER", "The consumers' user.  [default with --for: the PROJECT]")
@consumer_typed("The consumers' type.")
@option(
    "--consumer UUID...",
    "Place this consumer; may be repeated.  [default: --count new ones]",
    parameter="consumers",
)
@option(
    "--count N",
    "Place N new consumers, all of them or none.  [default: 1]",
    type=click.IntRange(1, 256),
)
@option(
    "--max-per KEY=N...",
    "At most N of them on one host (host=N), or on the hosts with one value of a label "
    "(rack=N); may be repeated.",
)
@option(
    "--within KEY", "All of them on one host (host), or on hosts with one value of a label (rack)."
)
@leasing(
    "Release what they hold after this time, such as 10m, unless `berth lease set` renews it.  "
    "[default: never]"
)
@placing_order
@dry_running
@accessing
def place(
    access: Access,
    request: RequestOptions,
    names: Sequence[str],
    project: str | None,
    user: str | None,
    consumer_type: str,
    consumers: Sequence[str],
    count: int | None,
    max_per: Sequence[str],
    within: str | None,
    lease_seconds: int | None,
    order: dict[str, Any] | None,
    dry_run: bool,
) -> None:
    """Choose hosts for consumers, and claim there, in one transaction.

    \b
      berth place VCPU=8 MEMORY_MB=16384 --for web/job-17 --user alice
      berth place VCPU=8 MEMORY_MB=16384 --for web/job-18 --user alice --lease 10m
      berth place m1.large --count 8 --max-per host=1 --within rack \\
        --project web --user alice --dry-run

    It takes the arguments and options of `berth candidates`. With --for or --consumer, a command
    that failed can be run again: a consumer that was placed already is not placed twice.
    --nothing-used and the like need --dry-run.

    Exit codes: 0 placed; 13 a dry run found places; 14 nothing fits.
    """
    if names:
        if project or consumers or count is not None:
            raise click.UsageError("--for excludes --project, --consumer and --count")
        placed = named_consumers(names, user, consumer_type)
    elif project and user:
        owner = {"project_id": project, "user_id": user, "consumer_type": consumer_type}
        placed = new_consumers(consumers, count, owner)
    else:
        raise click.UsageError("the consumers have no owner: give --for, or --project and --user")
    body = {
        **request.body(),
        "consumers": placed,
        **without_none(
            max_per=limits_of(max_per) or None,
            within=within or None,
            lease_seconds=lease_seconds,
            order=order,
        ),
    }
    with access.client() as client:
        send_placement(client, body, dry_run=dry_run)


@click.command()
@argument("consumer", "CONSUMER")
@takes_question
@option(
    "--to HOST",
    "Move it to this host, or resize it there.  [default: any host but its own]",
    shell_complete=provider_names,
)
@leasing("Lease what it gets for this time, such as 10m.  [default: its lease ends]")
@placing_order
@dry_running
@asking
def move(
    client: Client,
    consumer: str,
    request: RequestOptions,
    to: str | None,
    lease_seconds: int | None,
    order: dict[str, Any] | None,
    dry_run: bool,
) -> None:
    """Move a consumer to another host, or give it other amounts.

    \b
      berth move 9c2f3a52-7c1e-5b0e-9a86-0d5c1f2e7b44
      berth move web/job-17 --to cn31
      berth move web/job-17 --to cn31 --required HW_CPU_X86_AVX2
      berth move web/job-17 VCPU=16 MEMORY_MB=32768 --to cn31
      berth move web/job-17 m1.large --lease 10m

    CONSUMER is a UUID, or PROJECT/NAME. What it holds counts as free, and is given back in the same
    transaction. Without a flavor, CLASS=AMOUNT, --group and --request it keeps the request with
    which it was placed, groups and conditions included; --host-... and --tolerate restrict this
    move alone. Conditions such as --required make a new request, of the amounts that it holds,
    added up over its providers. It has no lease afterwards, unless --lease gives it one.

    If the request is not known, because the consumer was not placed by berth or has changed since,
    it is the only flavor that takes what the consumer holds, or else a group for each provider that
    it holds something of; then a warning says that its traits are unknown.

    Exit codes: 0 moved; 13 a dry run found a place; 14 nothing fits.
    """
    moved: Json = client.read(consumer_path(consumer))
    body = moving(client, moved, request, to)
    body |= without_none(order=order, lease_seconds=lease_seconds)
    had_lease = moved["lease"] is not None
    send_placement(client, body, dry_run=dry_run, called=[consumer], had_lease=had_lease)


_LIMIT: Final = re.compile(r"(?P<key>[^=]+)=(?P<most>[0-9]+)")
#: What to do about a refusal on the command line, which the service says for other programs.
_NEXT_STEPS: Final = {
    "berth.consumer.holds": (
        "`berth move` moves a consumer, and `berth release` gives back what it has"
    ),
}
_NO_PLACE: Final = frozenset({"berth.place.does_not_fit", "berth.place.undecided"})


def new_consumers(
    uuids: Sequence[str], count: int | None, owner: Mapping[str, str]
) -> list[dict[str, str]]:
    """The consumers of a body: those that were named, or that many with new UUIDs.

    Raises:
        UsageError: both were given.
    """
    if uuids and count is not None:
        raise click.UsageError("--consumer and --count exclude each other")
    every = uuids or [str(uuid4()) for _ in range(count or 1)]
    return [{"uuid": uuid, **owner} for uuid in every]


def named_consumers(
    names: Sequence[str], user: str | None, consumer_type: str
) -> list[dict[str, str]]:
    """The consumers of a body that have names, such as `web/job-17`.

    Raises:
        UsageError: a name does not have this form.
    """
    return [
        {
            "name": name,
            "project_id": project,
            "user_id": user or project,
            "consumer_type": consumer_type,
        }
        for project, name in map(parsed_name, names)
    ]


def limits_of(texts: Iterable[str]) -> dict[str, int]:
    """The member `max_per` of texts such as `rack=2`.

    Raises:
        UsageError: a text does not have this form.
    """
    limits = {}
    for text in texts:
        match = match_of(_LIMIT, text, "--max-per {} is not KEY=N, as in host=1 or rack=2")
        limits[match["key"]] = int(match["most"])
    return limits


def moving(
    client: Client, consumer: Json, request: RequestOptions, to: str | None
) -> dict[str, Any]:
    """The body that moves a consumer.

    Raises:
        NotThere: there is no provider `to`.
    """
    if not request.has_request:
        body = request.conditions()
    elif request.has("amounts", "group", "flavor", "request"):
        body = request.body()
    else:
        body = request.with_typed(amounts=_amounts_of(consumer)).body()
    # Conditions of this move alone, which do not stay with the consumer.
    host = body.setdefault("host", {})
    if to is not None:
        with suppress(Forbidden):  # a member of a project may not read providers
            find_provider(client, to)
        host["in"] = [to]
    elif not request.has("host_in"):
        host["not_in"] = [*host.get("not_in", ()), *consumer["allocations"]]
    owner = {name: consumer[name] for name in ("uuid", "project_id", "user_id", "consumer_type")}
    return {
        **body,
        "consumers": [{**owner, "consumer_generation": consumer["generation"]}],
        "replace": True,
    }


def _amounts_of(consumer: Json) -> list[str]:
    """What a consumer holds, as it is typed, added up over its providers."""
    sums: Counter[str] = Counter()
    for given in consumer["allocations"].values():
        sums.update(given["resources"])
    return [f"{name}={number}" for name, number in sums.items()]


def send_placement(
    client: Client,
    body: Mapping[str, Any],
    *,
    dry_run: bool,
    called: Sequence[str] = (),
    had_lease: bool = False,
) -> None:
    """Place, and print where; for a dry run only print.

    Args:
        called: what the user calls the consumers; without it, by name or UUID.
        had_lease: whether they had leases, which end unless the body has one.

    Raises:
        CommandFailed: nothing fits (NOTHING_FITS), or it was a dry run (PENDING).
        Conflict: a consumer holds something already, or others were faster.
    """
    path = f"{PLACE}?dry_run=true" if dry_run else PLACE
    try:
        answer = client.send("POST", path, body)
    except Conflict as error:
        if step := _NEXT_STEPS.get(error.code):
            fact, already, _ = str(error).partition(" already")
            raise error.saying(f"{fact}{already}; {step}") from error
        if error.code not in _NO_PLACE:
            raise
        # Where the request itself fits, the refusal says what limits it.
        if error.explanation and not fits(error.explanation) and not client.as_json:
            print_explanations(error.explanation)
        raise nothing_fits(body, error.warnings, str(error)) from error
    ended = "its lease would end" if dry_run else "its lease ended"
    note = f"; {ended}" if had_lease and "lease_seconds" not in body else ""
    consumers = called or [_called(consumer) for consumer in body["consumers"]]
    client.show(
        answer,
        lambda sent: _print_placements(client, consumers, sent, is_done=not dry_run, note=note),
    )
    if dry_run:
        raise CommandFailed("nothing was written", ExitCode.PENDING)


def _called(consumer: Json) -> str:
    """A consumer of a body, by its name or its UUID."""
    is_named = "name" in consumer
    return f"{consumer['project_id']}/{consumer['name']}" if is_named else str(consumer["uuid"])


def _print_placements(
    client: Client, consumers: Sequence[str], answer: Json, *, is_done: bool, note: str
) -> None:
    placements: Mapping[str, Json] = answer["placements"]
    names = _names(client, answer, is_done=is_done)
    if answer["repeated"]:
        note = ""
    for consumer, each in zip(consumers, placements.values(), strict=True):
        lease = _lease(each.get("lease"))
        done = _done(consumer, each, names, is_repeated=answer["repeated"], is_done=is_done)
        say(f"{done}: {_given(each, names)}{lease}{note}")


def _done(
    consumer: str, placement: Json, names: Mapping[str, str], *, is_repeated: bool, is_done: bool
) -> str:
    """What happened to a consumer, or would."""
    host = names[placement["host"]]
    if is_repeated:
        return f"already placed {consumer} on {host}"
    if (before := placement.get("from")) is None:
        return f"{'placed' if is_done else 'would place'} {consumer} on {host}"
    if before == placement["host"]:
        return f"{consumer} {'stays' if is_done else 'would stay'} on {host}"
    return f"{'moved' if is_done else 'would move'} {consumer} from {names[before]} to {host}"


def _names(client: Client, answer: Json, *, is_done: bool) -> Mapping[str, str]:
    """The names of the providers of an answer, which older services do not send."""
    placements: Mapping[str, Json] = answer["placements"]
    uuids = {
        uuid
        for each in placements.values()
        for uuid in (each["host"], *filter(None, [each.get("from")]), *each["allocations"])
    }
    if (sent := answer.get("providers")) is not None:
        return {uuid: sent.get(uuid, uuid) for uuid in uuids}
    names = names_of(client, uuids)
    if is_done and all(uuid == name for uuid, name in names.items()):
        # A member of a project may not read providers, but sees the names in its own consumers.
        names |= _names_held(client, placements)
    return names


def _lease(lease: Mapping[str, str] | None) -> str:
    """Until when it is leased, if it is."""
    if lease is None:
        return ""
    return f"; leased until {utc_time(datetime.fromisoformat(lease['expires_at']))}"


def _names_held(client: Client, consumers: Iterable[str]) -> dict[str, str]:
    """The names of the providers that some consumers hold something of."""
    names: dict[str, str] = {}
    for uuid in consumers:
        with suppress(NotThere):  # released meanwhile
            names |= client.consumer(uuid).providers
    return names


def _given(placement: Json, names: Mapping[str, str]) -> str:
    """What it holds; of other providers than the host, with their names."""
    parts = []
    for provider, given in placement["allocations"].items():
        whose = "" if provider == placement["host"] else f"{names[provider]} "
        parts.append(f"{whose}{amounts(given['resources'])}")
    return "; ".join(parts)
