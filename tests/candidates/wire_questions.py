# SPDX-License-Identifier: Apache-2.0
"""Asks the search requests as they are sent to `/berth/v1`, directly, without HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from berth.api.berth_v1.expanding import expanded
from berth.api.berth_v1.reading import read_request
from berth.candidates import Budget, search
from berth.candidates.batch import Batch
from berth.candidates.fitting import fitting_hosts
from berth.candidates.plan import Plan
from berth.candidates.question import Question
from berth.candidates.references import References, request_of
from berth.candidates.resolve import NothingFits, resolve
from berth.index.draining import tolerating
from berth.index.snapshot import Location, Snapshot
from tests.brute_force import Candidate
from tests.brute_question import Request
from tests.candidates.engine import PLAIN
from tests.queries import Group, Query
from tests.worlds import World, aggregate_uuid, provider_uuid


def search_candidates(snapshot: Snapshot, request: Request) -> list[Candidate]:
    """The candidates of a request without alternatives, by names."""
    snapshot = tolerating(snapshot, question_of(request, snapshot).tolerate)
    plan = plan_of(snapshot, request)
    if plan is None:
        return []
    batches = search(snapshot, plan, PLAIN, None, rng=Random(0), budget=Budget())
    return [each for batch in batches for each in candidates_of(snapshot, plan, batch)]


def search_hosts(snapshot: Snapshot, request: Request) -> list[str]:
    """The names of the hosts that fit, sorted."""
    snapshot = tolerating(snapshot, question_of(request, snapshot).tolerate)
    plan = plan_of(snapshot, request)
    if plan is None:
        return []
    return sorted(
        _name(snapshot, Location(block_id, row, 0))
        for block_id, mask in fitting_hosts(snapshot, plan, Budget()).items()
        for row in mask.nonzero()[0].tolist()
    )


def plan_of(snapshot: Snapshot, request: Request) -> Plan | None:
    """The plan of a request; None if nothing fits without a search."""
    wanted = request_of(question_of(request, snapshot), References(snapshot))
    try:
        return resolve(snapshot, wanted, one_per_tree=False)
    except NothingFits:
        return None


def candidates_of(snapshot: Snapshot, plan: Plan, batch: Batch) -> Iterator[Candidate]:
    """The candidates of a batch, by names."""
    classes = snapshot.names.class_names
    for place, position in enumerate(batch.positions.tolist()):
        names = {
            choice: _name(snapshot, snapshot.locate(batch.trees.provider_id(choice, position)))
            for choice in batch.all_choices
        }
        yield Candidate(
            frozenset(
                ((names[choice], classes[class_id]), n if isinstance(n, int) else int(n[place]))
                for (choice, class_id), n in batch.given(plan).items()
            ),
            frozenset(
                (group, frozenset(map(names.__getitem__, choices)))
                for group, choices in batch.serving(plan).items()
            ),
        )


def _name(snapshot: Snapshot, at: Location | None) -> str:
    assert at is not None
    name: str = json.loads(snapshot.block(at.block_id).names.item(at.node, at.row))
    return name


def read_candidate(item: Mapping[str, Any], fleet: World) -> Candidate:
    """A candidate as it is sent, with `allocations` and `mappings` in the form of 1.39."""
    return Candidate(
        frozenset(
            ((fleet.names[uuid], name), amount)
            for uuid, given in item["allocations"].items()
            for name, amount in given["resources"].items()
        ),
        frozenset(
            (group, frozenset(fleet.names[uuid] for uuid in uuids))
            for group, uuids in item["mappings"].items()
        ),
    )


def question_of(request: Request, snapshot: Snapshot) -> Question:
    """The request as a value of the product; it has no alternatives."""
    (asked,) = expanded(read_request(request, ""), snapshot)
    return asked.question


def translated(query: Query) -> Request:
    """The request that is equal to a query of 1.39 (spec/beyond.md 2.3)."""
    suffixed = [group.suffix for group in query.suffixed]
    request: dict[str, Any] = {
        "groups": {group.suffix: _translated(group) for group in query.groups},
        "host": {
            "required": [
                *sorted(query.root_required),
                *(f"!{trait}" for trait in sorted(query.root_forbidden)),
            ]
        },
        "together": [
            {"groups": sorted(names), "at": "subtree"}
            for names in query.same_subtree
            if len(names) > 1
        ],
    }
    if query.group_policy == "isolate" and len(suffixed) > 1:
        request["apart"] = [{"groups": suffixed, "at": "provider"}]
    return request


def _translated(group: Group) -> dict[str, Any]:
    members: dict[str, Any] = {
        "resources": dict(group.resources),
        "required": [*map(sorted, group.required), *(f"!{t}" for t in sorted(group.forbidden))],
        "member_of": [
            *([aggregate_uuid(name) for name in sorted(names)] for names in group.member_of),
            *(f"!{aggregate_uuid(name)}" for name in sorted(group.not_member_of)),
        ],
    }
    if group.in_tree is not None:
        members["in_tree"] = [provider_uuid(group.in_tree)]
    return members
