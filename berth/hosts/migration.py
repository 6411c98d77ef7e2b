# SPDX-License-Identifier: Apache-2.0
"""Bringing the trees of many nodes into the shape that they are to have, one node after another.

Each node is migrated wholly or left as it was; one that cannot be does not hold up the others. What
is done for a node is what an agent does when it starts (`Tracker.report`).
Source: spec/compute-side.md 6.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from berth.hosts.errors import NameTaken, ReshapeFailed, is_mistake
from berth.hosts.plan import Plan
from berth.hosts.report_client import ReportClient
from berth.hosts.tracker import Driver, Node, Rehearsal, Tracker
from berth.hosts.undo import Change, Undoing

LOG = logging.getLogger(__name__)

#: Says as which node one goes on whose name another provider has, or raises.
TakeOver = Callable[[Node, NameTaken], Node]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What has become of one node."""

    node: Node
    #: What was sent, or would be; empty: nothing to do.
    plan: Plan = field(default_factory=Plan)
    #: Of a dry run: before and after.
    rehearsal: Rehearsal | None = None
    #: Why the node is as it was.
    error: Exception | None = None


def migrate(
    tracker: Tracker,
    nodes: Iterable[Node],
    *,
    dry_run: bool,
    take_over: TakeOver | None = None,
) -> Iterator[Outcome]:
    """Migrate nodes, or find out what that would do.

    Args:
        take_over: for a node whose name is taken; None: that is an error.

    Yields:
        What has become of each, when it is done with it.
    """
    for node in nodes:
        try:
            yield _outcome(tracker, node, dry_run, take_over)
        except Exception as error:
            # Whatever it is, a driver's own mistake too, it is that of this node.
            if is_mistake(error):
                LOG.exception("%s cannot be migrated", node.name)
            yield Outcome(node, error=error)


def undo(
    client: ReportClient,
    changes: Iterable[Change],
    make_tracker: Callable[[Driver], Tracker],
    *,
    dry_run: bool,
) -> Iterator[Outcome]:
    """Take changes back, the last first, or find out what that would do.

    Args:
        make_tracker: of the client, for a driver.

    Yields:
        What has become of each change's node.
    """
    for change in reversed([*changes]):
        listed = client.get_providers_in_tree(None, change.root)
        name = next((one["name"] for one in listed if one["uuid"] == change.root), None)
        if name is None:
            error = ReshapeFailed(f"the service does not know the provider {change.root} any more")
            yield Outcome(Node(change.root, change.name), error=error)
        else:
            node = Node(change.root, name)
            yield from migrate(make_tracker(Undoing(change)), [node], dry_run=dry_run)


def _outcome(tracker: Tracker, node: Node, dry_run: bool, take_over: TakeOver | None) -> Outcome:
    migrate_one = _rehearsed if dry_run else _reported
    try:
        return migrate_one(tracker, node)
    except NameTaken as taken:
        if take_over is None:
            raise
        return migrate_one(tracker, take_over(node, taken))


def _reported(tracker: Tracker, node: Node) -> Outcome:
    return Outcome(node, plan=tracker.report(node, startup=True))


def _rehearsed(tracker: Tracker, node: Node) -> Outcome:
    found = tracker.rehearse(node)
    return Outcome(node, plan=found.plan, rehearsal=found)
