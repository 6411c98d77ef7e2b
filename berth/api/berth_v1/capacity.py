# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/capacity`: how many more fit. Source: spec/beyond.md 4.2 to 4.4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct
from msgspec.structs import replace

from berth.api import examples
from berth.api.berth_v1.codes import TOO_LARGE
from berth.api.berth_v1.explain import COMPLETE
from berth.api.berth_v1.fleet_questions import (
    WARNING,
    Warnings,
    assumed,
    check_names,
    check_rights,
    expanded,
    flavor_to_count,
    read_what_if,
    takes_anything,
)
from berth.api.berth_v1.grammar import REQUEST, Names, WhatIfInput, counted, counted_map, up_to
from berth.api.berth_v1.inputs import BodySchema
from berth.api.berth_v1.questions import Asked, JSONObject, Requested, read_request
from berth.api.berth_v1.refusals import pointer_of, refused, unknown_name
from berth.api.berth_v1.revisions import at_revision
from berth.api.contract import Body, Contract, Dated, always, shows
from berth.api.request import Call, Searching, budget_of
from berth.api.shapes import list_of
from berth.api.struct_schema import Input, shown_at_revision
from berth.candidates.capacity import Capacity as Counts
from berth.candidates.capacity import Counting, Partition, best_hosts, every_host, hosts_by_uuid
from berth.candidates.capacity import of_host as capacity_of_host
from berth.candidates.question import Question
from berth.candidates.references import References, UnknownName
from berth.index.snapshot import Snapshot
from berth.model.bounds import (
    CAPACITY_HOSTS_MAX,
    CAPACITY_LINES_MAX,
    CAPACITY_REQUESTS_MAX,
    CAPACITY_VALUES_MAX,
)
from berth.model.budget import Budget
from berth.model.capacity import Capacity, FragmentsNow, OfFleet, OfHost, OfValue, OnHosts, Total
from berth.model.named import FlavorName
from berth.model.names import NAME_LENGTH_MAX, PATH_NAME_PATTERN, similar
from berth.model.shown import UNSET, Shown, Sometimes, Warned

#: Values of `by` that are no label.
BY_AGGREGATE: Final = "aggregate"
BY_HOST: Final = "host"


class _Body(Input):
    """What to count."""

    flavors: Annotated[
        Names | None,
        {
            **list_of({"type": "string", "pattern": PATH_NAME_PATTERN}),
            "uniqueItems": True,
            **counted("max_capacity_requests"),
        },
        "Names of stored flavors; without `flavors` and `requests`, all of them.",
    ] = None
    requests: Annotated[
        Mapping[str, JSONObject] | None,
        counted_map(PATH_NAME_PATTERN, REQUEST, "max_capacity_requests"),
        "Further requests by names of the caller's choice.",
    ] = None
    by: Annotated[
        Names,
        {
            **list_of({"type": "string", "minLength": 1, "maxLength": NAME_LENGTH_MAX}),
            "uniqueItems": True,
            **counted("max_capacity_keys"),
        },
        "Keys of labels, to count the hosts of each value together; `aggregate` for each"
        " aggregate, `host` for each host.",
    ] = ()
    hosts_max: Annotated[
        int,
        up_to("max_capacity_best", least=0),
        "How many of the hosts with the highest counts to name.",
    ] = 0
    what_if: Sometimes[WhatIfInput] = UNSET


BODY: Final = BodySchema(_Body)

_EXAMPLE: Final = {
    "complete": True,
    "flavors": {
        "m1.large": {
            "count": 10234,
            "at_most": 10234,
            "exact": True,
            "hosts": 412,
            "classes": {
                "VCPU": {"free": 61200, "usable": 40936, "stranded": 20264, "largest": 46},
                "MEMORY_MB": {
                    "free": 99614720,
                    "usable": 83836928,
                    "stranded": 15777792,
                    "largest": 402432,
                },
            },
            "by": {
                "zone": {
                    "z1": {"count": 5100, "at_most": 5100, "hosts": 200},
                    "z2": {"count": 5134, "at_most": 5134, "hosts": 212},
                }
            },
            "best": [
                {
                    "host": {"uuid": examples.PROVIDER, "name": "cn17"},
                    "count": 31,
                    "at_most": 31,
                }
            ],
        }
    },
    "warnings": [],
}


class Capacities(Shown):
    """The capacities for all flavors and requests of a question."""

    complete: Annotated[bool, COMPLETE]
    flavors: Annotated[
        Mapping[Annotated[str, Meta(pattern=PATH_NAME_PATTERN)], Capacity],
        "The flavors and the requests of the question, by name.",
    ]
    warnings: list[Warned]


_CAPACITIES: Final = shown_at_revision("Capacities", Capacities, example=_EXAMPLE, parts=(WARNING,))
_QUESTION: Final = {
    "flavors": ["m1.large"],
    "requests": {"big": {"groups": {"": {"resources": {"VCPU": 64}}}}},
    "by": ["zone"],
    "hosts_max": 1,
}


class _Wanted(Struct, frozen=True):
    """What to count, by name: alternatives, or what to say of a flavor that cannot be counted."""

    counted: Mapping[str, tuple[Asked, ...]]
    uncounted: Mapping[str, Capacity]

    def __len__(self) -> int:
        return len(self.counted) + len(self.uncounted)


@Contract(
    summary="Count how many more fit",
    details="It changes nothing. For each flavor and request, it counts how many can be placed"
    " one after another: on all hosts, by the labels of their aggregates, and on single hosts;"
    " and how much of the free capacity it cannot use.",
    body=Body(always(BODY), always(_QUESTION)),
    answers=shows(_CAPACITIES, Dated.NO, means="The capacities."),
)
def count_capacity(call: Call) -> bytes:
    """Count how often flavors and requests fit."""
    budget = budget_of(call)
    body = BODY.read(call)
    what_if = read_what_if(body.what_if)
    requested = {
        name: read_request(each, pointer_of(("requests", name)))
        for name, each in (body.requests or {}).items()
    }
    snapshot = call.services.index.snapshot()
    wanted = _wanted(snapshot, body, requested)
    for asked in wanted.counted.values():
        check_rights(call.services, asked)
    warnings = Warnings()
    with Searching(call, budget):
        fleet = assumed(call.services, snapshot, what_if, warnings, budget)
        references = References(fleet)
        for asked in wanted.counted.values():
            warnings.add_of(asked, references)
        warnings.add_labels(_label_keys(body), fleet)
        then = _counted(fleet, body, budget, len(wanted))
        now = None if fleet is snapshot else _counted(snapshot, body, budget, len(wanted))
        counted = {
            name: shown(then, now, [each.question for each in asked])
            for name, asked in wanted.counted.items()
        }
    every = {**wanted.uncounted, **counted}
    return at_revision(fleet, Capacities(budget.ended is None, every, warnings.sent))


def _label_keys(body: _Body) -> dict[str, str]:
    """The labels by which a body counts, by the pointers to them."""
    by = enumerate(body.by)
    return {f"/by/{place}": key for place, key in by if key not in (BY_AGGREGATE, BY_HOST)}


def _wanted(
    snapshot: Snapshot, body: _Body, requested: Mapping[str, tuple[Requested, ...]]
) -> _Wanted:
    """What a body asks for.

    Raises:
        Refused: 400.
    """
    stored = snapshot.names.records.flavors
    named: Names = () if body.requests is not None else sorted(stored)
    if body.flavors is not None:
        named = body.flavors
    if (asked_for := len(named) + len(requested)) > CAPACITY_REQUESTS_MAX:
        raise refused(
            "/flavors" if len(named) > len(requested) else "/requests",
            f"would count {asked_for:,} flavors and requests in all, more than"
            f" {CAPACITY_REQUESTS_MAX} (max_capacity_requests)",
            code=TOO_LARGE,
        )
    counted: dict[str, tuple[Asked, ...]] = {}
    uncounted: dict[str, Capacity] = {}
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


def _counted(snapshot: Snapshot, body: _Body, budget: Budget, requests: int) -> Counted:
    """What counts the requests of a body in one fleet.

    Raises:
        Refused: 400 for an answer that would be too long.
    """
    counting = Counting(snapshot, budget)
    partitions = {}
    lines = requests * body.hosts_max
    for place, key in enumerate(body.by):
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
    return Counted(counting, partitions, BY_HOST in body.by, body.hosts_max)


def _check_lines(lines: int, most: int, bound: str, at: str) -> None:
    if lines > most:
        hint = "; use hosts_max instead" if bound == "max_capacity_hosts" else ""
        raise refused(
            at, f"would make {lines:,} lines, more than {most:,} ({bound}){hint}", code=TOO_LARGE
        )


# --- Capacities as JSON: with a scenario, each figure beside the present one ----------------------


class Counted(Struct, frozen=True):
    """One fleet, and what of it to show.

    Attributes:
        partitions: by the key of the question.
        by_host: whether to show every host.
        best: how many of the hosts with the highest counts to show.
    """

    counting: Counting
    partitions: Mapping[str, Partition]
    by_host: bool
    best: int


def shown(then: Counted, now: Counted | None, alternatives: Sequence[Question]) -> Capacity:
    """The capacity for a request.

    Args:
        then: the fleet of the scenario, or the only one.
        now: the present fleet, if there is a scenario.
    """
    capacity = then.counting.capacity(alternatives)
    before = None if now is None else _Before(now, now.counting.capacity(alternatives))
    whole = _whole(capacity)
    by = {
        key: _parts(partition, key, capacity, before) for key, partition in then.partitions.items()
    }
    if then.by_host:
        by["host"] = {
            each.host.uuid: OfValue(
                name=each.host.name,
                count=each.count,
                at_most=each.at_most,
                now=OnHosts(each.now.count, each.now.at_most)
                if isinstance(each.now, Total)
                else each.now,
            )
            for each in _with_present([*every_host(then.counting, capacity)], before)
        }
    best: Sometimes[list[OfHost]] = UNSET
    if then.best:
        is_spent = then.counting.budget.is_spent()
        hosts = [] if is_spent else best_hosts(then.counting, capacity, then.best)
        best = _with_present(hosts, before)
    return Capacity(
        count=whole.count,
        at_most=whole.at_most,
        exact=whole.exact,
        hosts=whole.hosts,
        now=_whole(before.capacity) if before else UNSET,
        alternative=capacity.alternative if len(alternatives) > 1 else UNSET,
        classes=_classes(then, capacity, before),
        by=by or UNSET,
        best=best,
    )


class _Before(NamedTuple):
    """The present fleet beside a scenario, and what fits there."""

    counted: Counted
    capacity: Counts


def _whole(capacity: Counts) -> OfFleet:
    total = capacity.total()
    return OfFleet(total.count, total.at_most, total.count == total.at_most, capacity.hosts())


def _classes(then: Counted, capacity: Counts, before: _Before | None) -> dict[str, FragmentsNow]:
    classes = then.counting.fragments(capacity)
    if before is not None:
        # Another alternative may be the first that fits, with other classes.
        none = FragmentsNow(0, 0, 0, 0)
        for name, now in before.counted.counting.fragments(before.capacity).items():
            classes[name] = replace(classes.get(name, none), now=now)
    return classes


def _parts(
    partition: Partition, key: str, capacity: Counts, before: _Before | None
) -> dict[str, OfValue]:
    lines = partition.lines(capacity)
    if before is None:
        return lines
    present = before.counted.partitions[key].lines(before.capacity)
    none = OfValue(count=0, at_most=0, hosts=0)
    several = {}
    for value in sorted({*lines, *present}):
        now = present.get(value, none)
        several[value] = replace(
            lines.get(value, none), now=OnHosts(now.count, now.at_most, now.hosts)
        )
    return several


def _with_present(several: list[OfHost], before: _Before | None) -> list[OfHost]:
    """Some hosts, each with its present capacity as `now`; null if it does not exist yet."""
    if before is None:
        return several
    counting = before.counted.counting
    numbers = hosts_by_uuid(counting, [each.host.uuid for each in several])
    present: dict[str, Total] = {}
    for uuid, number in numbers.items():
        now = capacity_of_host(counting, before.capacity, number)
        present[uuid] = Total(now.count, now.at_most)
    return [replace(each, now=present.get(each.host.uuid)) for each in several]
