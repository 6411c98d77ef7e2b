# SPDX-License-Identifier: Apache-2.0
"""Assumptions of a question (`what_if`), with references as they were sent.

Source: spec/beyond.md 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from berth.candidates.question import Item
from berth.candidates.references import References, UnknownName, UnknownReference, placed
from berth.candidates.resolve import membership_of
from berth.index.draining import drains_named
from berth.index.scenario import AddedHosts, AssumedRatio, Scenario
from berth.index.sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, ProviderId
from berth.model.names import similar


class RatioAssumed(NamedTuple):
    """Another allocation ratio of a class; `member_of` are conditions on the hosts' roots."""

    resource_class: str
    ratio: float
    member_of: tuple[Item, ...] = ()


class HostsAssumed(NamedTuple):
    """Copies of the tree that a provider reference names."""

    like: str
    copies: int


class WhatIf(Struct, frozen=True):
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
    add_hosts: tuple[HostsAssumed, ...] = ()


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
        drained=references.located(what_if.drain),
        without=references.located(what_if.without_hosts),
        added=[
            AddedHosts(at, added.copies)
            for added in what_if.add_hosts
            if (at := references.location(added.like)) is not None
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
        at = f"/allocation_ratio/{place}/member_of"
        names = enumerate(item.names for item in assumed.member_of)
        members = ((f"{at}/{number}", name) for number, several in names for name in several)
        yield from references.unknown("aggregate", members)
    yield from references.unknown("drain", placed("/undrain", what_if.undrain))
    like = ((f"/add_hosts/{place}/like", each.like) for place, each in enumerate(what_if.add_hosts))
    drained, gone = placed("/drain", what_if.drain), placed("/without_hosts", what_if.without_hosts)
    yield from references.unknown("provider", chain(drained, gone, like))


def _members(snapshot: Snapshot, assumed: RatioAssumed, references: References) -> Mask | None:
    """The sets of aggregates that meet the conditions on a host; None for all. Not to be in an
    aggregate that does not exist is no condition."""
    test = membership_of(snapshot, assumed.member_of, references)
    tables = [table for table in (test.member, test.forbidden) if table is not None]
    return test.mask(np.arange(min(map(len, tables), default=0)))
