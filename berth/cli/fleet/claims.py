# SPDX-License-Identifier: Apache-2.0
"""Writes allocations: for one consumer, for several, or none any more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from berth.cli.columns import amounts, counted
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.fleet.client import consumer_path, path_of, print_answer
from berth.cli.fleet.references import consumer_uuid_of, names_of, uuid_of
from berth.cli.fleet.refusals import InConflict, NotThere
from berth.cli.fleet.wanted import read_json
from berth.cli.output import say

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.hosts.service import Answer

_AMOUNT: Final = re.compile(r"(?P<provider>.+):(?P<resource_class>[A-Z0-9_]+)=(?P<amount>[0-9]+)")
_CONCURRENT_UPDATE: Final = "placement.concurrent_update"
_NAME_TAKEN: Final = "berth.consumer.name_taken"


def parsed_name(text: str) -> tuple[str, str]:
    """The project and the name of a consumer, of a text such as `web/job-17`.

    Raises:
        UsageError: it does not have this form.
    """
    project, slash, name = text.partition("/")
    if not (project and slash and name) or "/" in name:
        raise click.UsageError(f"--for {text} is not PROJECT/NAME, as in web/job-17")
    return project, name


def typed(client: Client, texts: Iterable[str]) -> dict[str, Any]:
    """The allocations of `PROVIDER:CLASS=AMOUNT`.

    Raises:
        UsageError: a text does not have this form.
        NotThere: a provider does not exist.
    """
    allocations: dict[str, dict[str, dict[str, int]]] = {}
    for text in texts:
        match = _AMOUNT.fullmatch(text)
        if match is None:
            raise click.UsageError(f"{text} is not PROVIDER:CLASS=AMOUNT, as in cn31:VCPU=8")
        resources = allocations.setdefault(uuid_of(client, match["provider"]), {"resources": {}})
        resources["resources"][match["resource_class"]] = int(match["amount"])
    return {"allocations": allocations}


def chosen(file: TextIO, number: int) -> dict[str, Any]:
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


def mapped(client: Client, texts: Iterable[str]) -> dict[str, Any]:
    """The mappings of `GROUP=PROVIDER`.

    Raises:
        UsageError: a text does not have this form.
        NotThere: a provider does not exist.
    """
    mappings: dict[str, list[str]] = {}
    for text in texts:
        group, equals, reference = text.partition("=")
        if not equals or not reference:
            raise click.UsageError(f"--mapping {text} is not GROUP=PROVIDER, as in _GPU=cn31_gpu")
        mappings.setdefault(group, []).append(uuid_of(client, reference))
    return {"mappings": mappings} if mappings else {}


def present(client: Client, consumer: str) -> Any:
    """A consumer with the allocations that it has; without allocations, nothing else."""
    return client.read(path_of("allocations", consumer))


def send(client: Client, consumer: str, body: Mapping[str, Any]) -> None:
    """Write a consumer's allocations, and print them.

    Raises:
        InConflict: they do not fit, or somebody else was faster.
    """
    try:
        answer = client.send("PUT", path_of("allocations", consumer), body)
    except InConflict as error:
        if error.error_code == _CONCURRENT_UPDATE and body["consumer_generation"] is None:
            raise InConflict(
                f"consumer {consumer} has allocations already: --replace replaces them",
                error.error_code,
            ) from error
        raise
    _print_claim(client, consumer, body, answer)


def send_for(client: Client, name: str, body: Mapping[str, Any]) -> None:
    """Write the allocations of the consumer `project/name`, and print them.

    Raises:
        InConflict: they do not fit, the name is taken, or somebody else was faster.
    """
    try:
        answer = client.send("PUT", consumer_path(name), body)
    except InConflict as error:
        if error.error_code == _NAME_TAKEN:
            raise InConflict(
                f"{name} has allocations already: --replace replaces them", error.error_code
            ) from error
        raise
    _print_claim(client, name, body, answer)


def _print_claim(client: Client, consumer: str, body: Mapping[str, Any], answer: Answer) -> None:
    if client.as_json:
        print_answer(answer)
        return
    names = names_of(client, body["allocations"])
    say(f"claimed for {consumer}: {shown(body['allocations'], names)}")


def shown(allocations: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Allocations in a line: what each provider gives."""
    return "; ".join(
        f"{names[uuid]}: {amounts(given['resources'])}" for uuid, given in allocations.items()
    )


def send_file(client: Client, consumer: str | None, file: TextIO) -> None:
    """Write what a file says: the body of one consumer, or of several by their UUIDs.

    Raises:
        UsageError: it is not JSON.
        InConflict: they do not fit, or somebody else was faster.
    """
    body = read_json(file)
    if consumer is not None:
        answer = client.send("PUT", path_of("allocations", consumer), body)
    else:
        answer = client.send("POST", "/allocations", body)
    if client.as_json:
        print_answer(answer)
    else:
        say(f"claimed for {consumer or counted(len(body), 'consumer')}")


def release(client: Client, consumers: Sequence[str]) -> None:
    """Remove all allocations of consumers, in one transaction.

    Args:
        consumers: UUIDs, or `project/name`.

    Raises:
        NotThere: one has none; nothing was removed.
        InConflict: another client changed one of several; nothing was removed.
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


def _released(client: Client, consumer: str) -> dict[str, Any]:
    body = present(client, consumer)
    if not body["allocations"]:
        raise NotThere(f"no consumer {consumer} has allocations")
    return {**body, "allocations": {}}


def reshape(client: Client, file: TextIO) -> None:
    """Send the body of `POST /reshaper` in a file, in which providers may have their names.

    Raises:
        CommandFailed: the file is not such a body (USAGE).
        InConflict: it does not fit, or somebody else was faster; nothing was changed.
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
        raise CommandFailed(
            f'{file.name} is not {{"inventories": {{...}}, "allocations": {{...}}}}', ExitCode.USAGE
        ) from error
    if client.as_json:
        print_answer(answer)
    else:
        say(
            f"reshaped {counted(len(inventories), 'provider')} "
            f"and {counted(len(allocations), 'consumer')}"
        )


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
        **({"mappings": mappings} if mappings else {}),
    }
