# SPDX-License-Identifier: Apache-2.0
"""Sends placements, and prints where the consumers are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import click

from berth.cli.columns import amount
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.fleet.candidates import nothing_fits
from berth.cli.fleet.claims import parsed_name
from berth.cli.fleet.client import PLACE, consumer_path, print_answer
from berth.cli.fleet.durations import utc_time
from berth.cli.fleet.explanations import fits, print_explanations
from berth.cli.fleet.references import find_provider, names_of
from berth.cli.fleet.refusals import NEXT_STEPS, Forbidden, InConflict, NotThere
from berth.cli.output import say
from berth.client.errors import Refused

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json
    from berth.cli.fleet.wanted import Wanted

_LIMIT: Final = re.compile(r"(?P<key>[^=]+)=(?P<most>[0-9]+)")
_NO_PLACE: Final = frozenset({"berth.place.does_not_fit", "berth.place.undecided"})


def new_consumers(
    uuids: Sequence[str], count: int | None, owner: Mapping[str, str]
) -> list[dict[str, str]]:
    """The consumers of a body: those that were named, or so many with new UUIDs.

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


def limits_of(texts: Iterable[str]) -> dict[str, dict[str, int]]:
    """The member `max_per` of texts such as `rack=2`.

    Raises:
        UsageError: a text does not have this form.
    """
    limits = {}
    for text in texts:
        if (match := _LIMIT.fullmatch(text)) is None:
            raise click.UsageError(f"--max-per {text} is not KEY=N, as in host=1 or rack=2")
        limits[match["key"]] = int(match["most"])
    return {"max_per": limits} if limits else {}


def consumer_to_move(client: Client, reference: str) -> Json:
    """A consumer as it is now.

    Raises:
        NotThere: it holds nothing.
    """
    consumer: Json = client.read(consumer_path(reference))
    return consumer


def moving(client: Client, consumer: Json, wanted: Wanted, to: str | None) -> dict[str, Any]:
    """The body that moves a consumer.

    Raises:
        NotThere: there is no provider `to`.
    """
    if not wanted.has_request:
        body = wanted.conditions()
    elif wanted.amounts or wanted.group or wanted.flavor or wanted.request:
        body = wanted.body()
    else:
        body = replace(wanted, amounts=_amounts_of(consumer)).body()
    # Conditions of this move alone, which do not stay with the consumer.
    host = body.setdefault("host", {})
    if to is not None:
        with suppress(Forbidden):  # a member of a project may not read providers
            find_provider(client, to)
        host["in"] = [to]
    elif not wanted.host_in:
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
        InConflict: a consumer holds something already, or others were faster.
    """
    path = f"{PLACE}?dry_run=true" if dry_run else PLACE
    try:
        answer = client.send("POST", path, body)
    except InConflict as error:
        if step := NEXT_STEPS.get(error.error_code):
            fact, already, _ = str(error).partition(" already")
            raise InConflict(f"{fact}{already}; {step}", error.error_code) from error
        if error.error_code not in _NO_PLACE:
            raise
        refusal = error.__cause__
        assert isinstance(refusal, Refused), "the client has refused"
        # Where the request itself fits, the refusal says what limits it.
        if refusal.explanation and not fits(refusal.explanation) and not client.as_json:
            print_explanations(refusal.explanation)
        raise nothing_fits(body, refusal.warnings, str(error)) from error
    if client.as_json:
        print_answer(answer)
    else:
        ended = "its lease would end" if dry_run else "its lease ended"
        note = f"; {ended}" if had_lease and "lease_seconds" not in body else ""
        consumers = called or [_called(consumer) for consumer in body["consumers"]]
        _print_placements(client, consumers, answer.json(), is_done=not dry_run, note=note)
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
        amounts = ", ".join(
            f"{name} {amount(number)}" for name, number in given["resources"].items()
        )
        is_host = provider == placement["host"]
        parts.append(amounts if is_host else f"{names[provider]} {amounts}")
    return "; ".join(parts)
