# SPDX-License-Identifier: Apache-2.0
"""Candidates for people: the host, what it gives, and how full it is afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from berth.cli.columns import amount, counted, print_columns
from berth.cli.fleet.claims import shown
from berth.cli.fleet.references import names_of
from berth.cli.output import say

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json

#: A larger capacity is shown as a percentage.
_CAPACITY_SHOWN_MAX: Final = 10_000


def print_candidates(client: Client, answer: Json, limit: int) -> None:
    """Print a table of candidates, in the order of the answer of either API."""
    candidates: Sequence[Json] = answer.get("candidates") or answer["allocation_requests"]
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
