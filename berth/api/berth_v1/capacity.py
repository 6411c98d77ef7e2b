# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/capacity`: how many more fit. Source: spec/beyond.md 4.2 to 4.4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from berth.api.berth_v1 import body
from berth.api.berth_v1.asking import Warnings, assumed, check_names, check_rights, read_what_if
from berth.api.berth_v1.counted import Counted, shown
from berth.api.berth_v1.expanding import expanded, flavor_to_count, takes_anything
from berth.api.berth_v1.pointed import pointer_of, refused
from berth.api.berth_v1.reading import Asked, JSONObject, Requested, read_request
from berth.api.berth_v1.refusals import unknown_name
from berth.api.operations.berth_v1.capacity import BODY_SCHEMA, BY_AGGREGATE, BY_HOST
from berth.api.operations.berth_v1.codes import TOO_LARGE
from berth.api.rendering import answer
from berth.api.request import Request, Response, Services
from berth.api.searching import Searching, budget_of
from berth.candidates.capacity import Counting
from berth.candidates.capacity.by import Partition
from berth.candidates.references import References, UnknownName
from berth.index.snapshot import Snapshot
from berth.model.bounds import (
    CAPACITY_HOSTS_MAX,
    CAPACITY_LINES_MAX,
    CAPACITY_REQUESTS_MAX,
    CAPACITY_VALUES_MAX,
)
from berth.model.budget import Budget
from berth.model.flavor import FlavorName
from berth.model.similar_names import similar

JSON = dict[str, object]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What to count, by name: alternatives, or what to say of a flavor that cannot be counted."""

    counted: Mapping[str, tuple[Asked, ...]]
    uncounted: Mapping[str, JSON]

    def __len__(self) -> int:
        return len(self.counted) + len(self.uncounted)


def count_capacity(services: Services, request: Request, response: Response) -> None:
    """Count how often flavors and requests fit."""
    budget = budget_of(services, request)
    sent: JSONObject = body.read(request, BODY_SCHEMA)
    what_if = read_what_if(sent["what_if"], "/what_if") if "what_if" in sent else None
    requested = _requested(sent)
    snapshot = services.index.snapshot()
    wanted = _wanted(snapshot, sent, requested)
    for asked in wanted.counted.values():
        check_rights(services, asked)
    warnings = Warnings()
    with Searching(services, request, budget):
        fleet = snapshot
        if what_if is not None:
            fleet = assumed(services, snapshot, what_if, "/what_if", warnings, budget)
        references = References(fleet)
        for asked in wanted.counted.values():
            warnings.add_of(asked, references)
        warnings.add_labels(_label_keys(sent), fleet)
        then = _counted(fleet, sent, budget, len(wanted))
        now = None if fleet is snapshot else _counted(snapshot, sent, budget, len(wanted))
        counted = {
            name: shown(then, now, [each.question for each in asked])
            for name, asked in wanted.counted.items()
        }
    answer(
        response,
        {
            "revision": fleet.revision,
            "complete": budget.ended is None,
            "flavors": {**wanted.uncounted, **counted},
            "warnings": warnings.sent,
        },
    )


def _label_keys(sent: JSONObject) -> dict[str, str]:
    """The labels by which a body counts, by the pointers to them."""
    by = enumerate(sent.get("by", ()))
    return {f"/by/{place}": key for place, key in by if key not in (BY_AGGREGATE, BY_HOST)}


def _requested(sent: JSONObject) -> dict[str, tuple[Requested, ...]]:
    """The requests of a body by their names.

    Raises:
        Refused: 400.
    """
    return {
        name: read_request(each, pointer_of(("requests", name)))
        for name, each in sent.get("requests", {}).items()
    }


def _wanted(
    snapshot: Snapshot, sent: JSONObject, requested: Mapping[str, tuple[Requested, ...]]
) -> _Wanted:
    """What a body asks for.

    Raises:
        Refused: 400.
    """
    stored = snapshot.names.flavors
    named = sent.get("flavors", () if "requests" in sent else sorted(stored))
    if (asked_for := len(named) + len(requested)) > CAPACITY_REQUESTS_MAX:
        raise refused(
            "/flavors" if len(named) > len(requested) else "/requests",
            f"would count {asked_for:,} flavors and requests in all, more than"
            f" {CAPACITY_REQUESTS_MAX} (max_capacity_requests)",
            code=TOO_LARGE,
        )
    counted: dict[str, tuple[Asked, ...]] = {}
    uncounted: dict[str, JSON] = {}
    for place, name in enumerate(named):
        if name not in stored:
            meant = similar(name, stored)
            raise unknown_name(UnknownName(f"/flavors/{place}", "flavor", name, meant))
        if name in requested:
            raise refused(pointer_of(("requests", name)), "has the name of a flavor in flavors")
        flavor = flavor_to_count(snapshot, FlavorName(name))
        if isinstance(flavor, Asked):
            counted[name] = (flavor,)
        else:
            uncounted[name] = flavor
    for name, each in requested.items():
        counted[name] = asked = expanded(each, snapshot)
        check_names(asked, snapshot)
        for alternative in asked:
            if not takes_anything(alternative):
                at = alternative.parts[0].at
                raise refused(at, "asks for no resources, so it fits any number of times")
    return _Wanted(counted, uncounted)


def _counted(snapshot: Snapshot, sent: JSONObject, budget: Budget, requests: int) -> Counted:
    """What counts the requests of a body in one fleet.

    Raises:
        Refused: 400 for an answer that would be too long.
    """
    counting = Counting(snapshot, budget)
    partitions = {}
    lines = requests * sent.get("hosts_max", 0)
    for place, key in enumerate(sent.get("by", ())):
        at = f"/by/{place}"
        if key == BY_HOST:
            _check_lines(
                requests * counting.fleet.size, CAPACITY_HOSTS_MAX, "max_capacity_hosts", at
            )
            continue
        partition = Partition(counting, None if key == BY_AGGREGATE else key)
        if len(partition.values) > CAPACITY_VALUES_MAX:
            raise refused(
                at,
                f"divides the hosts into {len(partition.values):,} parts, more than"
                f" {CAPACITY_VALUES_MAX:,} (max_capacity_values)",
                code=TOO_LARGE,
            )
        lines += requests * len(partition.values)
        _check_lines(lines, CAPACITY_LINES_MAX, "max_capacity_lines", at)
        partitions[key] = partition
    return Counted(counting, partitions, BY_HOST in sent.get("by", ()), sent.get("hosts_max", 0))


def _check_lines(lines: int, most: int, bound: str, at: str) -> None:
    if lines > most:
        hint = "; use hosts_max instead" if bound == "max_capacity_hosts" else ""
        raise refused(
            at, f"would make {lines:,} lines, more than {most:,} ({bound}){hint}", code=TOO_LARGE
        )
