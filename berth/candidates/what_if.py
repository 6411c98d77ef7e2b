# SPDX-License-Identifier: Apache-2.0
"""Assumptions of a question (`what_if`), with references as they were sent.

Source: spec/beyond.md 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from berth.candidates.question import Item
from berth.candidates.references import (
    References,
    UnknownName,
    UnknownReference,
    member_of,
    not_member_of,
)
from berth.candidates.resolve import membership_test
from berth.index.aggregate_sets import Mask
from berth.index.draining import drains_named
from berth.index.scenario import AddedHosts, AssumedRatio, Scenario
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ClassId, ProviderId
from berth.model.similar_names import similar


class RatioAssumed(NamedTuple):
    """Another allocation ratio of a class; `member_of` are conditions on the hosts' roots."""

    resource_class: str
    ratio: float
    member_of: tuple[Item, ...] = ()


class HostsAssumed(NamedTuple):
    """Copies of the tree that a provider reference names."""

    like: str
    copies: int


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What a question assumes.

    Attributes:
        without_consumers: uuids of consumers whose allocations do not count.
        undrain: names of drains that are not in effect.
        drain: provider references, which are drained with all below them.
        without_hosts: provider references, whose trees are gone.
    """

    nothing_used: bool = False
    without_consumers: tuple[str, ...] = ()
    allocation_ratio: tuple[RatioAssumed, ...] = ()
    undrain: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    without_hosts: tuple[str, ...] = ()
    add_hosts: tuple[HostsAssumed, ...] = field(default=())


def scenario_of(
    snapshot: Snapshot,
    what_if: WhatIf,
    references: References,
    freed: Mapping[tuple[ProviderId, ClassId], int],
) -> Scenario:
    """The scenario that some assumptions stand for; references that stand for nothing are passed
    over.

    Args:
        freed: what `without_consumers` hold, by provider and class.
    """
    return Scenario(
        nothing_used=what_if.nothing_used,
        freed=freed,
        ratios=[
            AssumedRatio(
                snapshot.names.class_ids[assumed.resource_class],
                assumed.ratio,
                _members(snapshot, assumed, references),
            )
            for assumed in what_if.allocation_ratio
            if assumed.resource_class in snapshot.names.class_ids
        ],
        undrained=drains_named(snapshot, what_if.undrain),
        drained=_all_located(snapshot, references, what_if.drain),
        without=_all_located(snapshot, references, what_if.without_hosts),
        added=[
            AddedHosts(at, added.copies)
            for added in what_if.add_hosts
            if (at := _located(snapshot, references, added.like)) is not None
        ],
    )


def unknown_in(
    what_if: WhatIf, snapshot: Snapshot, references: References
) -> Iterator[UnknownReference | UnknownName]:
    """What assumptions name that does not exist; pointers begin at `what_if`."""
    for place, assumed in enumerate(what_if.allocation_ratio):
        classes = snapshot.names.class_ids
        if (name := assumed.resource_class) not in classes:
            at = f"/allocation_ratio/{place}/resource_class"
            yield UnknownName(at, "resource_class", name, similar(name, classes))
        for number, item in enumerate(assumed.member_of):
            for reference in item.names:
                if not references.aggregates(reference):
                    at = f"/allocation_ratio/{place}/member_of/{number}"
                    yield UnknownReference(at, "aggregate", reference)
    for place, drain in enumerate(what_if.undrain):
        if not references.is_drain(drain):
            yield UnknownReference(f"/undrain/{place}", "drain", drain)
    named = [
        *((f"/drain/{place}", reference) for place, reference in enumerate(what_if.drain)),
        *((f"/without_hosts/{place}", ref) for place, ref in enumerate(what_if.without_hosts)),
        *((f"/add_hosts/{place}/like", like) for place, (like, _) in enumerate(what_if.add_hosts)),
    ]
    for at, reference in named:
        if references.provider(reference) is None:
            yield UnknownReference(at, "provider", reference)


def _members(snapshot: Snapshot, assumed: RatioAssumed, references: References) -> Mask | None:
    """The sets of aggregates that meet the conditions on a host; None for all. Not to be in an
    aggregate that does not exist is no condition."""
    test = membership_test(
        snapshot,
        member_of(assumed.member_of, references),
        not_member_of(assumed.member_of, references),
    )
    inside, outside = test.member, test.forbidden
    if inside is None:
        return None if outside is None else ~outside
    return inside if outside is None else inside & ~outside[: len(inside)]


def _all_located(
    snapshot: Snapshot, references: References, several: Iterable[str]
) -> list[Location]:
    located = (_located(snapshot, references, each) for each in several)
    return [at for at in located if at is not None]


def _located(snapshot: Snapshot, references: References, reference: str) -> Location | None:
    uuid = references.provider(reference)
    return None if uuid is None else snapshot.locate_uuid(uuid)
