# SPDX-License-Identifier: Apache-2.0
"""Reshapes the trees of many nodes, one after another.

Each node is migrated completely or left as it was; a node that fails does not hold up the others.
What happens to a node is what an agent does when it starts (`Tracker.report`).
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

#: Decides under which UUID a node continues whose name another provider has, or raises.
TakeOver = Callable[[Node, NameTaken], Node]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one node."""

    node: Node
    #: What was sent, or would be sent; empty: nothing to do.
    plan: Plan = field(default_factory=Plan)
    #: Of a dry run: before and after.
    rehearsal: Rehearsal | None = None
    #: Why the node was not migrated.
    error: Exception | None = None


def migrate(
    tracker: Tracker,
    nodes: Iterable[Node],
    *,
    dry_run: bool,
    take_over: TakeOver | None = None,
) -> Iterator[Outcome]:
    """Migrate nodes, or find out what that would change.

    Args:
        take_over: called for a node whose name is taken; None: that is an error.

    Yields:
        The result for each node.
    """
    for node in nodes:
        try:
            yield _outcome(tracker, node, dry_run, take_over)
        except Exception as error:
            # Any error, including a driver's bug, affects only this node.
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
    """Undo changes, the last first, or find out what that would change.

    Args:
        make_tracker: makes the client's tracker for a driver.

    Yields:
        The result for the node of each change.
    """
    for change in reversed([*changes]):
        listed = client.get_providers_in_tree(None, change.root)
        name = next(
            (provider["name"] for provider in listed if provider["uuid"] == change.root), None
        )
        if name is None:
            error = ReshapeFailed(f"the service no longer has the provider {change.root}")
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
    rehearsal = tracker.rehearse(node)
    return Outcome(node, plan=rehearsal.plan, rehearsal=rehearsal)
