# SPDX-License-Identifier: Apache-2.0
"""Aggregates with their labels. Source: spec/beyond.md 7.2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from berth.api.berth_v1 import body
from berth.api.berth_v1.pointed import PointedSchema
from berth.api.berth_v1.refusals import not_found
from berth.api.berth_v1.revisions import after_write, is_unchanged
from berth.api.operations.berth_v1.aggregates import REPLACE
from berth.api.query_string import parse_pairs, values_of
from berth.api.rendering import answer
from berth.api.request import Request, Response, Services
from berth.index.aggregate_members import count_all_members, count_members
from berth.index.snapshot import Snapshot
from berth.model.ids import AggregateUUID, parse_uuid_lax
from berth.store import labels as store

_REPLACE: Final = PointedSchema(REPLACE)


def list_aggregates(services: Services, request: Request, response: Response) -> None:
    """List the aggregates that have members or labels, and all of the given labels."""
    wanted = _wanted_labels(request)
    snapshot = services.index.snapshot()
    if is_unchanged(request, response, snapshot):
        return
    members, labels = count_all_members(snapshot), snapshot.names.labels_of
    shown = [
        _shown(uuid, labels.get(uuid), members.get(uuid, 0))
        for uuid in _matching(snapshot, wanted, members)
    ]
    answer(response, {"revision": snapshot.revision, "aggregates": shown})


def show_aggregate(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Show one aggregate."""
    aggregate = _aggregate(uuid)
    snapshot = services.index.snapshot()
    if aggregate not in snapshot.names.labels_of and not count_members(snapshot, aggregate):
        raise not_found(f"Aggregate {uuid} has neither members nor labels.")
    _answer(response, snapshot, aggregate, snapshot.names.labels_of.get(aggregate))


def replace_labels(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Replace the labels of an aggregate."""
    aggregate = _aggregate(uuid)
    wanted = body.read(request, _REPLACE)
    before = services.index.snapshot()
    store.replace_labels(services.database, aggregate, wanted["labels"])
    _answer(response, after_write(services, before), aggregate, wanted["labels"])


def _aggregate(text: str) -> AggregateUUID:
    uuid = parse_uuid_lax(text)
    if uuid is None:
        raise not_found(f"{text} is not a UUID.")
    return AggregateUUID(uuid)


def _wanted_labels(request: Request) -> list[tuple[str, str]]:
    """The labels of the query, each of which is checked."""
    parts = (each.partition("=") for each in values_of(parse_pairs(request.query_string), "label"))
    return [(key, value) for key, _, value in parts]


def _matching(
    snapshot: Snapshot, wanted: Iterable[tuple[str, str]], members: Mapping[AggregateUUID, int]
) -> list[AggregateUUID]:
    """The aggregates with all of some labels, in order."""
    names = snapshot.names
    matching = members.keys() | names.labels_of.keys()
    for label in wanted:
        matching &= names.labels.get(label, frozenset())
    return sorted(matching)


def _answer(
    response: Response,
    snapshot: Snapshot,
    aggregate: AggregateUUID,
    labels: Mapping[str, str] | None,
) -> None:
    shown = _shown(aggregate, labels, count_members(snapshot, aggregate))
    answer(response, {"revision": snapshot.revision, **shown})


def _shown(
    uuid: AggregateUUID, labels: Mapping[str, str] | None, members: int
) -> dict[str, object]:
    return {"uuid": uuid, "labels": labels or {}, "members": members}
