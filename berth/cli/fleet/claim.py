# SPDX-License-Identifier: Apache-2.0
"""`berth claim`: gives a consumer what it was looking for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from berth.cli.fleet.access import Access, accessing
from berth.cli.fleet.completing import provider_names
from berth.cli.fleet.owners import consumer_typed
from berth.cli.fleet.references import parsed_uuid

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client


@click.command()
@click.argument("consumer", metavar="[CONSUMER]", required=False)
@click.argument("amounts", metavar="[PROVIDER:CLASS=AMOUNT]...", nargs=-1)
@click.option(
    "--candidate",
    type=click.File(),
    metavar="FILE",
    help="Claim a candidate that `berth candidates --json` printed to this file, or to standard "
    "input (-).",
)
@click.option(
    "--number",
    default=1,
    show_default=True,
    metavar="N",
    type=click.IntRange(min=1),
    help="With --candidate: the Nth.",
)
@click.option(
    "--for",
    "name",
    metavar="PROJECT/NAME",
    help="Claim for a consumer with a name, instead of --project and CONSUMER; berth makes its "
    "UUID.",
)
@click.option("--project", metavar="PROJECT", help="The consumer's project.")
@click.option("--user", metavar="USER", help="The consumer's user.  [default with --for: PROJECT]")
@consumer_typed("The consumer's type.")
@click.option(
    "--mapping",
    "mappings",
    multiple=True,
    metavar="GROUP=PROVIDER",
    shell_complete=provider_names,
    help="Which provider serves a group of the request; may be repeated.",
)
@click.option("--replace", is_flag=True, help="Replace what the consumer has now.")
@click.option(
    "--generation",
    metavar="N",
    type=click.IntRange(min=0),
    help="Replace what the consumer has, if it is still at this generation.",
)
@click.option(
    "--request",
    type=click.File(),
    metavar="FILE",
    help="Send this JSON: the body of PUT /allocations/CONSUMER, or without CONSUMER the body of "
    "POST /allocations, for several consumers at once.",
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
    # Deferred: `--help` does not need them.
    from berth.cli.fleet import claims

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
            claims.send_file(client, consumer, request)
            return
        allocations = (
            claims.chosen(candidate, number) if candidate else claims.typed(client, amounts)
        )
        body: dict[str, Any] = {
            **allocations,
            **claims.mapped(client, mappings),
            "user_id": user or str(name).partition("/")[0],
            "consumer_type": consumer_type,
        }
        if name is not None:
            seen = _seen_of_name(client, name, generation, replace=replace)
            chosen = {} if consumer is None else {"uuid": consumer}
            claims.send_for(client, name, {**body, **chosen, "generation": seen})
            return
        assert consumer is not None, "checked above"
        seen = _seen(client, consumer, generation, replace=replace)
        claims.send(client, consumer, {**body, "project_id": project, "consumer_generation": seen})


def _check_name(name: str, project: str | None, request: TextIO | None) -> None:
    # Deferred: `--help` does not need it.
    from berth.cli.fleet import claims

    of_project, _ = claims.parsed_name(name)
    if project not in (None, of_project):
        raise click.UsageError(f"--for {name} and --project {project} name two projects")
    if request is not None:
        raise click.UsageError("a file of --request says whose consumer it is, without --for")


def _seen_of_name(
    client: Client, name: str, generation: int | None, *, replace: bool
) -> int | None:
    """As `_seen`, of the consumer with a name."""
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.refusals import NotThere

    if generation is not None or not replace:
        return generation
    try:
        return client.consumer(name).generation
    except NotThere:
        return None


def _seen(client: Client, consumer: str, generation: int | None, *, replace: bool) -> int | None:
    """The generation that the claim is based on; None for a consumer without allocations."""
    # Deferred: `--help` does not need it.
    from berth.cli.fleet.claims import present

    if generation is None and replace:
        seen: int | None = present(client, consumer).get("consumer_generation")
        return seen
    return generation
