# SPDX-License-Identifier: Apache-2.0
"""`berth claim`, `berth release` and `berth reshape`: allocations as the user names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from berth.cli.columns import amounts, counted
from berth.cli.failure import Misused
from berth.cli.fleet.access import Access
from berth.cli.fleet.labels import parsed_uuid
from berth.cli.fleet.references import consumer_uuid_of, names_of, uuid_of
from berth.cli.fleet.request_options import read_json, without_none
from berth.cli.options import Decorator, accessing, argument, asking, flag, match_of, option
from berth.cli.output import say
from berth.model.paths import consumer_path, path_of
from berth.model.refusals import Conflict, NotThere

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client


def consumer_typed(text: str) -> Decorator:
    """Add `--type` of the consumers; the command gets it as `consumer_type`.

    Args:
        text: the help.
    """
    return option(
        "--type TYPE", text, parameter="consumer_type", default="INSTANCE", show_default=True
    )


@click.command()
@argument("consumer", "[CONSUMER]")
@argument("amounts", "[PROVIDER:CLASS=AMOUNT]...")
@option(
    "--candidate FILE",
    "Claim a candidate that `berth candidates --json` printed to this file, or to standard "
    "input (-).",
    type=click.File(),
)
@option(
    "--number N",
    "With --candidate: the Nth.",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
)
@option(
    "--for PROJECT/NAME",
    "Claim for a consumer with a name, instead of --project and CONSUMER; berth makes its UUID.",
    parameter="name",
)
@option("--project PROJECT", "The consumer's project.")
@option("--user USER", "The consumer's user.  [default with --for: PROJECT]")
@consumer_typed("The consumer's type.")
@option(
    "--mapping GROUP=PROVIDER...",
    "Which provider serves a group of the request; may be repeated.",
    parameter="mappings",
)
@flag("--replace", "Replace what the consumer has now.")
@option(
    "--generation N",
    "Replace what the consumer has, if it is still at this generation.",
    type=click.IntRange(min=0),
)
@option(
    "--request FILE",
    "Send this JSON: the body of PUT /allocations/CONSUMER, or without CONSUMER the body of "
    "POST /allocations, for several consumers at once.",
    type=click.File(),
)
@accessing
def claim(
    access: Access,
    consumer: str | None,
    amounts: Sequence[str],
    candidate: TextIO | None,
    number: int,
    name: str | None,
    project: str | None,
    user: str | None,
    consumer_type: str,
    mappings: Sequence[str],
    replace: bool,
    generation: int | None,
    request: TextIO | None,
) -> None:
    """Allocate resources to a consumer, all or nothing.

    \b
      berth claim $(uuidgen) cn31:VCPU=8 cn31:MEMORY_MB=16384 --project web --user alice
      berth claim --for web/job-17 cn31:VCPU=8 --user alice
      berth candidates VCPU=8 --json | berth claim $(uuidgen) --candidate - --project web --user al

    CONSUMER is a UUID that you choose, such as that of a virtual machine. A consumer that has
    allocations already is refused, unless --replace or --generation is given.
    """
    if name is not None and consumer is not None and parsed_uuid(consumer) is None:
        amounts, consumer = (consumer, *amounts), None
    if sum(map(bool, (amounts, candidate, request))) != 1:
        raise click.UsageError(
            "say what to claim: PROVIDER:CLASS=AMOUNT, --candidate or --request, one of them"
        )
    if name is not None:
        _check_name(name, project, request)
    elif consumer is None and request is None:
        raise click.UsageError("name the CONSUMER, a UUID, or give it a name with --for")
    elif request is None and not (project and user):
        raise click.UsageError("--project and --user say whose consumer it is")
    with access.client() as client:
        if request is not None:
            _send_file(client, consumer, request)
            return
        allocations = _chosen(candidate, number) if candidate else _typed(client, amounts)
        body: dict[str, Any] = {
            **allocations,
            **_mapped(client, mappings),
            "user_id": user or str(name).partition("/")[0],
            "consumer_type": consumer_type,
        }
        if name is not None:
            seen = _seen_of_name(client, name, generation, replace=replace)
            body |= {**without_none(uuid=consumer), "generation": seen}
            path, taken = consumer_path(name), {_NAME_TAKEN}
        else:
            assert consumer is not None, "checked above"
            seen = _seen(client, consumer, generation, replace=replace)
            body |= {"project_id": project, "consumer_generation": seen}
            path = path_of("allocations", consumer)
            taken = {_CONCURRENT_UPDATE} if seen is None else set()
        try:
            answer = client.send("PUT", path, body)
        except Conflict as error:
            if error.code not in taken:
                raise
            called = name or f"consumer {consumer}"
            sentence = f"{called} has allocations already: --replace replaces them"
            raise error.saying(sentence) from error
        client.show(
            answer, lambda _: say(f"claimed for {name or consumer}: {_given(client, body)}")
        )


def _check_name(name: str, project: str | None, request: TextIO | None) -> None:
    of_project, _ = parsed_name(name)
    if project not in (None, of_project):
        raise click.UsageError(f"--for {name} and --project {project} name two projects")
    if request is not None:
        raise click.UsageError("a file of --request says whose consumer it is, without --for")


def _seen_of_name(
    client: Client, name: str, generation: int | None, *, replace: bool
) -> int | None:
    """As `_seen`, of the consumer with a name."""
    if generation is not None or not replace:
        return generation
    try:
        return client.consumer(name).generation
    except NotThere:
        return None


def _seen(client: Client, consumer: str, generation: int | None, *, replace: bool) -> int | None:
    """The generation that the claim is based on; None for a consumer without allocations."""
    if generation is None and replace:
        seen: int | None = _present(client, consumer).get("consumer_generation")
        return seen
    return generation


@click.command()
@argument("consumers", "CONSUMER...", required=True)
@asking
def release(client: Client, consumers: Sequence[str]) -> None:
    """Remove all allocations of consumers, of all or of none.

    \b
      berth release web/job-17

    CONSUMER is a UUID, or the consumer's project and name.
    """
    if len(consumers) == 1 and "/" in consumers[0]:
        client.release(consumers[0])
    elif len(consumers) == 1:
        client.send("DELETE", path_of("allocations", consumers[0]))
    else:
        uuids = [consumer_uuid_of(client, consumer) for consumer in consumers]
        client.send("POST", "/allocations", {uuid: _released(client, uuid) for uuid in uuids})
    if not client.as_json:
        say(f"released {', '.join(consumers)}")


@click.command()
@argument("file", "FILE", type=click.File())
@asking
def reshape(client: Client, file: TextIO) -> None:
    """Replace inventories of providers and allocations of consumers in one transaction.

    FILE is JSON, the body of POST /reshaper, or - for standard input. Providers are named by UUID
    or by name.
    """
    body = read_json(file)
    try:
        inventories, allocations = body["inventories"], body["allocations"]
        answer = client.send(
            "POST",
            "/reshaper",
            {
                "inventories": _by_uuid(client, inventories),
                "allocations": {
                    consumer: _with_uuids(client, of_consumer)
                    for consumer, of_consumer in allocations.items()
                },
            },
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise Misused(
            f'{file.name} is not {{"inventories": {{...}}, "allocations": {{...}}}}'
        ) from error
    sums = f"{counted(len(inventories), 'provider')} and {counted(len(allocations), 'consumer')}"
    client.show(answer, lambda _: say(f"reshaped {sums}"))


_AMOUNT: Final = re.compile(r"(?P<provider>.+):(?P<resource_class>[A-Z0-9_]+)=(?P<amount>[0-9]+)")
_MAPPING: Final = re.compile(r"(?P<group>[^=]*)=(?P<reference>.+)", re.DOTALL)
_NAMED: Final = re.compile(r"(?P<project>[^/]+)/(?P<name>[^/]+)")
_CONCURRENT_UPDATE: Final = "placement.concurrent_update"
_NAME_TAKEN: Final = "berth.consumer.name_taken"


def parsed_name(text: str) -> tuple[str, str]:
    """The project and the name of a consumer, of a text such as `web/job-17`.

    Raises:
        UsageError: it does not have this form.
    """
    match = match_of(_NAMED, text, "--for {} is not PROJECT/NAME, as in web/job-17")
    return match["project"], match["name"]


def _typed(client: Client, texts: Iterable[str]) -> dict[str, Any]:
    """The allocations of `PROVIDER:CLASS=AMOUNT`.

    Raises:
        UsageError: a text does not have this form.
        NotThere: a provider does not exist.
    """
    allocations: dict[str, dict[str, dict[str, int]]] = {}
    for text in texts:
        match = match_of(_AMOUNT, text, "{} is not PROVIDER:CLASS=AMOUNT, as in cn31:VCPU=8")
        resources = allocations.setdefault(uuid_of(client, match["provider"]), {"resources": {}})
        resources["resources"][match["resource_class"]] = int(match["amount"])
    return {"allocations": allocations}


def _chosen(file: TextIO, number: int) -> dict[str, Any]:
    """The allocations and mappings of a candidate, from the answer of either API.

    Raises:
        UsageError: there is no such candidate in the file.
    """
    answer = read_json(file)
    candidates = answer.get("candidates", answer.get("allocation_requests"))
    if not isinstance(candidates, list):
        raise click.UsageError(f"{file.name} is not the output of `berth candidates --json`")
    if len(candidates) < number:
        raise click.UsageError(f"{file.name} has {counted(len(candidates), 'candidate')}")
    candidate = candidates[number - 1]
    return {name: candidate[name] for name in ("allocations", "mappings")}


def _mapped(client: Client, texts: Iterable[str]) -> dict[str, Any]:
    """The mappings of `GROUP=PROVIDER`.

    Raises:
        UsageError: a text does not have this form.
        NotThere: a provider does not exist.
    """
    mappings: dict[str, list[str]] = {}
    for text in texts:
        match = match_of(_MAPPING, text, "--mapping {} is not GROUP=PROVIDER, as in _GPU=cn31_gpu")
        mappings.setdefault(match["group"], []).append(uuid_of(client, match["reference"]))
    return without_none(mappings=mappings or None)


def _present(client: Client, consumer: str) -> Any:
    """A consumer with the allocations that it has; without allocations, nothing else."""
    return client.read(path_of("allocations", consumer))


def _given(client: Client, body: Mapping[str, Any]) -> str:
    return shown(body["allocations"], names_of(client, body["allocations"]))


def shown(allocations: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Allocations in a line: what each provider gives."""
    return "; ".join(
        f"{names[uuid]}: {amounts(given['resources'])}" for uuid, given in allocations.items()
    )


def _send_file(client: Client, consumer: str | None, file: TextIO) -> None:
    """Write what a file says: the body of one consumer, or of several by their UUIDs.

    Raises:
        UsageError: it is not JSON.
        Conflict: they do not fit, or somebody else was faster.
    """
    body = read_json(file)
    if consumer is not None:
        answer = client.send("PUT", path_of("allocations", consumer), body)
    else:
        answer = client.send("POST", "/allocations", body)
    client.show(answer, lambda _: say(f"claimed for {consumer or counted(len(body), 'consumer')}"))


def _released(client: Client, consumer: str) -> dict[str, Any]:
    body = _present(client, consumer)
    if not body["allocations"]:
        raise NotThere(f"no consumer {consumer} has allocations")
    return {**body, "allocations": {}}


def _by_uuid(client: Client, providers: Mapping[str, Any]) -> dict[str, Any]:
    return {uuid_of(client, reference): value for reference, value in providers.items()}


def _with_uuids(client: Client, body: Mapping[str, Any]) -> dict[str, Any]:
    """The allocations and mappings of one consumer, by the UUIDs of providers."""
    mappings = {
        group: [uuid_of(client, reference) for reference in references]
        for group, references in body.get("mappings", {}).items()
    }
    return {
        **body,
        "allocations": _by_uuid(client, body["allocations"]),
        **without_none(mappings=mappings or None),
    }
