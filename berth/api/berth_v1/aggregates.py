# SPDX-License-Identifier: Apache-2.0
"""Aggregates with their labels. Source: spec/beyond.md 7.2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from berth.api import examples
from berth.api.answers import SENT, Sent
from berth.api.berth_v1.inputs import BodySchema
from berth.api.berth_v1.refusals import not_found
from berth.api.berth_v1.revisions import after_write, at_revision, is_unchanged, lists
from berth.api.contract import Body, Contract, Dated, Parameter, Query, always, shows
from berth.api.query_string import parse_pairs, values_of
from berth.api.request import Call
from berth.api.schema import JSONSchema
from berth.api.struct_schema import Input, shown, shown_at_revision
from berth.index.snapshot import Snapshot
from berth.index.totals import count_all_members, count_members
from berth.model.bounds import LABELS_MAX
from berth.model.ids import AggregateUUID, parse_uuid_lax
from berth.model.names import LABEL_KEY
from berth.model.printable import CONTROLS
from berth.model.shown import Count, Shown
from berth.store import named as store

_VALUE: Final = f"[^={CONTROLS}]{{1,255}}"
_VALUE_SCHEMA: JSONSchema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": rf"^[^={CONTROLS}]*\Z",
}

_LABELS: dict[str, Any] = {
    "type": "object",
    "description": "Keys and values. The label `name` is unique among all aggregates.",
    "patternProperties": {rf"^{LABEL_KEY}\Z": _VALUE_SCHEMA},
    "additionalProperties": False,
}


class _Body(Input):
    """The labels that an aggregate is to have."""

    labels: Annotated[
        Mapping[str, str], {**_LABELS, "maxProperties": LABELS_MAX, "x-bound": "max_labels"}
    ]


_BODY: Final = BodySchema(_Body)

FILTERS: Final = Query(
    Parameter(
        name="label",
        means="Only aggregates with this label, `key=value`. If repeated, with all of these "
        "labels.",
        example="zone=z1",
        schema={"type": "string", "pattern": rf"^{LABEL_KEY}={_VALUE}\Z"},
        expected="a label, key=value, such as zone=z1",
        repeats_since=0,
    )
)

_EXAMPLE: Final = {
    "uuid": examples.AGGREGATE,
    "labels": {"name": "az-1", "zone": "z1"},
    "members": 40,
}


class ListedAggregate(Shown):
    """An aggregate with its labels."""

    component = "ListedAggregate"

    uuid: AggregateUUID
    labels: Annotated[Mapping[str, str], _LABELS]
    members: Annotated[Count, "How many providers are in the aggregate."]


class Aggregates(Shown):
    """All aggregates, or those with some labels."""

    aggregates: Annotated[
        list[ListedAggregate], "The aggregates that have labels or members, by UUID."
    ]


_LISTED: Final = shown(ListedAggregate, example=_EXAMPLE)
_AGGREGATE: Final = shown_at_revision("Aggregate", ListedAggregate, example=_EXAMPLE)
_AGGREGATES: Final = shown_at_revision(
    "Aggregates", Aggregates, example={"aggregates": [_EXAMPLE]}, parts=(_LISTED,)
)


@Contract(
    summary="List aggregates with their labels",
    query=FILTERS,
    answers=lists(_AGGREGATES, means="The aggregates with all of the labels."),
)
def list_aggregates(call: Call) -> Sent | bytes:
    """List the aggregates that have members or labels, and all of the given labels."""
    wanted = _wanted_labels(call)
    snapshot = call.services.index.snapshot()
    if is_unchanged(call, snapshot):
        return SENT
    members, labels = count_all_members(snapshot), snapshot.names.records.labels_of
    shown = [
        ListedAggregate(uuid, labels.get(uuid, {}), members.get(uuid, 0))
        for uuid in _matching(snapshot, wanted, members)
    ]
    return at_revision(snapshot, Aggregates(shown))


@Contract(summary="Show an aggregate with its labels", answers=shows(_AGGREGATE, Dated.NO))
def show_aggregate(call: Call, uuid: str) -> bytes:
    """Show one aggregate."""
    aggregate = _aggregate(uuid)
    snapshot = call.services.index.snapshot()
    if aggregate not in snapshot.names.records.labels_of and not count_members(snapshot, aggregate):
        raise not_found(f"Aggregate {uuid} has neither members nor labels.")
    return _shown(snapshot, aggregate, snapshot.names.records.labels_of.get(aggregate, {}))


@Contract(
    summary="Replace the labels of an aggregate",
    details="An empty object removes them. An aggregate may have labels before a provider is "
    "in it.",
    body=Body(always(_BODY), always({"labels": _EXAMPLE["labels"]})),
    answers=shows(_AGGREGATE, Dated.NO, means="The aggregate with its new labels."),
    conflict="Another aggregate has this `name`.",
)
def replace_labels(call: Call, uuid: str) -> bytes:
    """Replace the labels of an aggregate."""
    aggregate = _aggregate(uuid)
    labels = _BODY.read(call).labels
    before = call.services.index.snapshot()
    store.replace_labels(call.services.database, aggregate, labels)
    return _shown(after_write(call.services, before), aggregate, labels)


def _aggregate(text: str) -> AggregateUUID:
    uuid = parse_uuid_lax(text)
    if uuid is None:
        raise not_found(f"{text} is not a UUID.")
    return AggregateUUID(uuid)


def _wanted_labels(call: Call) -> list[tuple[str, str]]:
    """The labels of the query, each of which is checked."""
    parts = (each.partition("=") for each in values_of(parse_pairs(call.query_string), "label"))
    return [(key, value) for key, _, value in parts]


def _matching(
    snapshot: Snapshot, wanted: Iterable[tuple[str, str]], members: Mapping[AggregateUUID, int]
) -> list[AggregateUUID]:
    """The aggregates with all of some labels, in order."""
    names = snapshot.names
    matching = members.keys() | names.records.labels_of.keys()
    for label in wanted:
        matching &= names.labels.get(label, frozenset())
    return sorted(matching)


def _shown(snapshot: Snapshot, aggregate: AggregateUUID, labels: Mapping[str, str]) -> bytes:
    members = count_members(snapshot, aggregate)
    return at_revision(snapshot, ListedAggregate(aggregate, labels, members))
