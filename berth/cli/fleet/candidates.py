# SPDX-License-Identifier: Apache-2.0
"""`berth candidates`: where a request fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import click

from berth.cli.columns import amount, counted, print_columns
from berth.cli.failure import CommandFailed, ExitCode
from berth.cli.fleet.access import Access
from berth.cli.fleet.claims import shown
from berth.cli.fleet.labels import Labels, memberships
from berth.cli.fleet.references import names_of, uuid_of
from berth.cli.fleet.refusals import narrowing, warnings_in
from berth.cli.fleet.request_options import RequestOptions, ordering, takes_question, without_none
from berth.cli.fleet.why import print_explanations
from berth.cli.options import accessing, option
from berth.cli.output import say
from berth.model.paths import CANDIDATES
from berth.model.refusals import NoOwnApi

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json


@click.command()
@takes_question
@ordering("Which candidate comes first: one on the fullest host (pack) or the emptiest (spread).")
@option("--limit N", "At most N.  [default: 10]", type=click.IntRange(1, 10_000))
@option(
    "--per-host N",
    "At most N of one host.  [default: 1; any number with --json]",
    type=click.IntRange(min=1),
)
@accessing
def candidates(
    access: Access,
    request: RequestOptions,
    order: dict[str, Any] | None,
    limit: int | None,
    per_host: int | None,
) -> None:
    """Find where a request fits.

    \b
      berth candidates VCPU=8 MEMORY_MB=16384 --required HW_CPU_X86_AVX2
      berth candidates m1.large --host-member-of zone=z1
      berth candidates VCPU=4 --group '_GPU0 VGPU=1' --group '_GPU1 VGPU=1' \\
        --apart _GPU0,_GPU1@HW_NUMA_ROOT
      berth candidates 'resources=VCPU:16&required=HW_CPU_X86_AVX512F'

    An argument without = is the name of a flavor. The last example takes a query of GET
    /allocation_candidates, as a log shows it. LEVEL is provider, tree, subtree, or a trait of the
    nearest provider above that has it.

    If nothing fits, it prints what `berth why` would print.

    Exit codes: 0 something fits; 14 nothing does.
    """
    options = without_none(limit=limit, per_host=per_host, order=order)
    body = {"limit": 10, **request.body(), **options}
    with access.client() as client:
        answer = ask(client, body)
        client.show(answer, lambda sent: _print(client, sent, body["limit"]))
    if not _candidates_in(answer.json()):
        raise nothing_fits(body, warnings_in(answer), "nothing fits")


def _print(client: Client, answer: Json, limit: int) -> None:
    if _candidates_in(answer):
        print_candidates(client, answer, limit)
    elif explanation := answer.get("explanation"):
        print_explanations(explanation)


def _candidates_in(answer: Json) -> Sequence[Json]:
    """Those in the answer of either API."""
    every: Sequence[Json] = answer.get("candidates", answer.get("allocation_requests"))
    return every


def nothing_fits(
    body: Mapping[str, Any], warnings: Iterable[Mapping[str, str]], sentence: str
) -> CommandFailed:
    """The failure where nothing fits, or where the request insists on what does not exist."""
    # What does not exist in an assumed fleet may well exist.
    names = [] if "what_if" in body else narrowing(warnings)
    if names:
        return CommandFailed(
            "nothing fits, because the request names what does not exist: "
            f"{', '.join(dict.fromkeys(names))}",
            ExitCode.SERVICE,
        )
    return CommandFailed(sentence, ExitCode.NOTHING_FITS)


def ask(client: Client, body: dict[str, Any]) -> Any:
    """The answer of berth's own API, or of the old route of a service that does not have it."""
    for_people = {"per_host": 1, **body, "summaries": True, "explain": True}
    complete = body if client.as_json else for_people
    try:
        return client.send("POST", CANDIDATES, complete)
    except NoOwnApi:
        return client.get("/allocation_candidates", old_query(client, body))


#: A larger capacity is shown as a percentage.
_CAPACITY_SHOWN_MAX: Final = 10_000


def print_candidates(client: Client, answer: Json, limit: int) -> None:
    """Print a table of candidates, in the order of the answer of either API."""
    candidates = _candidates_in(answer)
    summaries: Mapping[str, Json] = answer["provider_summaries"]
    providers = {uuid for candidate in candidates for uuid in candidate["allocations"]}
    hosts = [_host_of(candidate, summaries) for candidate in candidates]
    names = names_of(client, providers | set(hosts))
    rows = [
        [
            names[host],
            shown(candidate["allocations"], names),
            *([f"{candidate['score']['total']:.2f}"] if "score" in candidate else []),
            _after(candidate["allocations"], summaries),
        ]
        for host, candidate in zip(hosts, candidates, strict=True)
    ]
    score = ["SCORE"] if "score" in candidates[0] else []
    print_columns(["HOST", "GIVES", *score, "AFTER"], rows, right=["SCORE"])
    say(
        f"{counted(len(candidates), 'candidate')} on {counted(len(set(hosts)), 'host')}; "
        f"{_rest(answer, is_full=len(candidates) == limit)}"
    )


def _rest(answer: Json, *, is_full: bool) -> str:
    """What is known of other candidates; the old API does not say whether it left any out."""
    if "more" not in answer:
        return "there may be more" if is_full else "no more fit"
    return "more fit" if answer["more"] else "no more fit"


def _host_of(candidate: Json, summaries: Mapping[str, Json]) -> str:
    """The anchor; the old API does not say which it is, so the root of the first provider."""
    first = next(iter(candidate["allocations"]))
    return str(candidate.get("host") or summaries[first]["root_provider_uuid"])


def _after(allocations: Mapping[str, Any], summaries: Mapping[str, Json]) -> str:
    """What will be used of each class of the providers that give it, all together."""
    sums: dict[str, tuple[int, int]] = {}
    for uuid, given in allocations.items():
        for name, number in given["resources"].items():
            total = summaries[uuid]["resources"][name]
            used, capacity = sums.get(name, (0, 0))
            sums[name] = used + total["used"] + number, capacity + total["capacity"]
    return ", ".join(f"{name} {_share(*total)}" for name, total in sums.items())


def _share(used: int, capacity: int) -> str:
    if capacity > _CAPACITY_SHOWN_MAX:
        return f"{100 * used // capacity} %"
    return f"{amount(used)}/{amount(capacity)}"


Pairs = Iterator[tuple[str, str]]

_MEMBERS: Final = frozenset({"groups", "host", "together", "apart"})
_OF_GROUP: Final = frozenset({"resources", "required", "member_of", "in_tree"})


def old_query(client: Client, body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The query that asks a question, or as much of one as the old route can be asked.

    Raises:
        CommandFailed: the old route has no such condition (UNSUPPORTED).
        NotThere: a provider or an aggregate does not exist.
    """
    _refuse(set(body) - {"request", "limit"})
    request = body["request"]
    if "query" in request:
        pairs = parse_qsl(request["query"], keep_blank_values=True)
        query = [(name, value) for name, value in pairs if name != "limit"]
    else:
        query = list(_of_request(client, request))
    return [*query, ("limit", str(body["limit"]))] if "limit" in body else query


def _of_request(client: Client, request: Mapping[str, Any]) -> Pairs:
    _refuse(set(request) - _MEMBERS)
    labels = client.labels
    for name, group in request["groups"].items():
        yield from _of_group(client, labels, name, group)
    host = request.get("host", {})
    _refuse({f"host.{name}" for name in host if name != "required"})
    if traits := host.get("required"):
        _refuse({"alternatives of host.required" for item in traits if not isinstance(item, str)})
        yield "root_required", ",".join(traits)
    named = [name for name in request["groups"] if name]
    yield from _relations(request, named)


def _of_group(client: Client, labels: Labels, name: str, group: Mapping[str, Any]) -> Pairs:
    _refuse(set(group) - _OF_GROUP)
    if resources := group.get("resources"):
        pairs = (f"{resource_class}:{number}" for resource_class, number in resources.items())
        yield f"resources{name}", ",".join(pairs)
    for item in group.get("required", ()):
        yield f"required{name}", _written(item)
    for item in group.get("member_of", ()):
        for text in memberships(labels, [_written(item)]):
            yield f"member_of{name}", text
    trees = group.get("in_tree", ())
    _refuse({"several trees in in_tree"} if len(trees) > 1 else set())
    for reference in trees:
        yield f"in_tree{name}", uuid_of(client, reference)


def _relations(request: Mapping[str, Any], named: Sequence[str]) -> Pairs:
    for relation in request.get("together", ()):
        _refuse({"together"} if relation["at"] != "subtree" else set())
        yield "same_subtree", ",".join(relation["groups"])
    apart = request.get("apart", ())
    for relation in apart:
        is_isolation = relation["at"] == "provider" and set(relation["groups"]) == set(named)
        _refuse(set() if is_isolation else {"apart"})
    if len(named) > 1:
        yield "group_policy", "isolate" if apart else "none"


def _written(item: str | Sequence[str]) -> str:
    return item if isinstance(item, str) else f"in:{','.join(item)}"


def _refuse(members: set[str]) -> None:
    if members:
        raise CommandFailed(
            f"this service does not have berth's own API (/berth/v1), which "
            f"{', '.join(sorted(members))} needs",
            ExitCode.UNSUPPORTED,
        )
