# SPDX-License-Identifier: Apache-2.0
"""A host's report to the service: at start-up, when the tree may change its shape, and later.

One pass reads the tree, lets the driver edit it, and writes the difference. Somebody else may have
changed the tree or its consumers meanwhile, which is how things are and not an error: the pass is
made again, from a fresh look, with growing pauses.
Source: spec/compute-side.md 3.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Set
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol, TypedDict

from berth.hosts.errors import (
    Conflict,
    HealingNeeded,
    NotThere,
    ReshapeNeeded,
    RestoreNeeded,
    Truth,
    Unreachable,
)
from berth.hosts.plan import Allocations, Plan, make_plan
from berth.hosts.provider_tree import ProviderSubTree, ProviderTree
from berth.hosts.report_client import ReportClient

LOG = logging.getLogger(__name__)

#: Seconds before the second attempt; each later pause is twice as long.
_FIRST_PAUSE_S: Final = 0.25
_PAUSE_S_MAX: Final = 15.0


class Driver(Protocol):
    """Who knows a host.

    A driver edits the tree in place, so that it says what the host offers, and leaves alone what
    is not its own. It is called again and again, and changes nothing where nothing has changed.
    """

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Make the tree of a node what the host offers.

        Args:
            allocations: what the consumers of the tree hold, to be edited where inventory that is
                in use moves; None where nothing may move.

        Raises:
            ReshapeNeeded: inventory that is in use has to move, and `allocations` is None. What
                was edited before is kept: the same tree comes again, with the allocations.
            HealingNeeded: consumers have more than the service knows of, nothing has to move, and
                `allocations` is None. Who is not among the allocations when they come holds
                nothing of this tree, and gets nothing.
            ReshapeFailed: what the host knows and what the consumers hold do not agree.
        """


@dataclass(frozen=True, slots=True)
class Node:
    """A host as the service knows it: its root provider."""

    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a report at the start would make of a node."""

    #: As the service has it: without any provider where it does not know the node.
    before: ProviderTree
    after: ProviderTree
    #: What the consumers of the tree hold now; empty where nothing moves.
    held: Allocations
    plan: Plan


def tree_of_new(driver: Driver, node: Node) -> ProviderSubTree:
    """What a driver makes of a node that the service does not know.

    Nobody holds anything of it: a driver that asks what is held of it is told so.
    """
    tree = ProviderSubTree(node.uuid)
    tree.new_root(node.name, node.uuid)
    try:
        driver.update_provider_tree(tree, node.name)
    except ReshapeNeeded:
        driver.update_provider_tree(tree, node.name, {})
    return tree


class _Update(TypedDict, total=False):
    """What goes with a tree into `ReportClient.update_from_provider_tree`."""

    allocations: Allocations
    truth: Truth
    may_move: bool
    may_shrink: bool


class Tracker:
    """Reports nodes that one driver knows, each from one thread at a time.

    Several nodes may be reported side by side where the driver can be called so.

    Args:
        attempts_max: passes made for one report, before the last one's error is the report's.
        pause: waits so many seconds.
        rng: spreads the pauses, so that hosts that met once do not meet again.
    """

    def __init__(
        self,
        client: ReportClient,
        driver: Driver,
        *,
        attempts_max: int,
        pause: Callable[[float], None],
        rng: Random,
    ) -> None:
        assert attempts_max >= 1
        self._client = client
        self._driver = driver
        self._attempts_max = attempts_max
        self._pause = pause
        self._rng = rng
        #: Consumers that have something and hold nothing, once they were told of.
        self._told: set[str] = set()
        #: The nodes whose driver has asked for a reshape that was not carried out yet.
        self._pending: set[Node] = set()

    def is_reshape_pending(self, node: Node) -> bool:
        """Whether the tree of a node needs a shape that it has not taken yet."""
        return node in self._pending

    def report(self, node: Node, *, startup: bool) -> Plan:
        """Make the service's tree of a node what the driver says.

        Args:
            startup: inventory that is in use may move. In any pass consumers' allocations may
                grow to what a driver says that they really have.

        Returns:
            What was sent.

        Raises:
            ReshapeNeeded: it would have to, and this is not the start.
            ReshapeFailed, BadProviderTree, Refused: it cannot be done; the tree has its old shape.
            Conflict, NotThere, Unreachable: not now, after `attempts_max` attempts.
        """
        for attempt in range(self._attempts_max - 1):
            try:
                return self._pass(node, startup=startup)
            except (Conflict, NotThere, Unreachable) as error:
                pause = self._pause_after(attempt)
                LOG.info("%s is reported again in %.1f s: %s", node.name, pause, error)
                self._pause(pause)
        return self._pass(node, startup=startup)

    def rehearse(self, node: Node) -> Rehearsal:
        """Find out what a report at the start would do; nothing is written.

        Raises:
            NameTaken: another provider has the node's name.
            ReshapeFailed, BadProviderTree: it cannot be done.
            Refused, Unreachable: the service said so, or nothing.
        """
        if not self._client.get_providers_in_tree(None, node.uuid):
            return self._rehearse_new(node)
        tree = self._client.get_provider_tree_and_ensure_root(None, node.uuid, node.name)
        before = copy.deepcopy(tree)
        plan = self._client.plan_update(tree, **self._edit(node, tree, startup=True))
        return Rehearsal(before, tree, self._client.held_in(tree), plan)

    def _rehearse_new(self, node: Node) -> Rehearsal:
        self._client.refuse_taken_name(node.name)
        before = ProviderTree()
        tree = tree_of_new(self._driver, node)
        return Rehearsal(before, tree, {}, make_plan(before, tree, node.uuid))

    def _pass(self, node: Node, *, startup: bool) -> Plan:
        tree = self._client.get_provider_tree_and_ensure_root(None, node.uuid, node.name)
        update = self._edit(node, tree, startup=startup)
        plan = self._client.update_from_provider_tree(None, tree, **update)
        self._pending.discard(node)
        return plan

    def _edit(self, node: Node, tree: ProviderTree, *, startup: bool) -> _Update:
        """Make a tree what it is to be, and what its consumers hold where that is to change."""
        if tree.exists(node.uuid) and tree.data(node.uuid).name != node.name:
            tree.rename(node.uuid, node.name)
        update = _Update(may_move=startup)
        try:
            self._driver.update_provider_tree(tree, node.name)
        except ReshapeNeeded as needed:
            if not isinstance(needed, HealingNeeded):
                self._pending.add(node)
                if not startup:
                    raise
            LOG.info("What is held of %s is read, to be changed with its tree", node.name)
            allocations = self._client.get_allocations_for_provider_tree(None, node.uuid)
            holders = frozenset(allocations)
            self._driver.update_provider_tree(tree, node.name, allocations)
            update["allocations"] = allocations
            # What of it does not fit, the driver knows since it has the allocations.
            update["truth"] = self._holders_of(needed.truth, holders)
            update["may_shrink"] = isinstance(needed, RestoreNeeded)
        return update

    def _holders_of(self, truth: Truth, holders: Set[str]) -> Truth:
        """Of the consumers that have more than they hold, those that hold something.

        Of the others nobody knows whose they are: they are lost, or just about to move.
        """
        homeless = truth.keys() - holders
        for consumer in sorted(homeless - self._told):
            LOG.warning(
                "Consumer %s has %s and holds nothing of this tree; nothing is added for it",
                consumer,
                ", ".join(f"{amount} {name}" for name, amount in sorted(truth[consumer].items())),
            )
        self._told |= homeless
        return {consumer: truth[consumer] for consumer in truth if consumer in holders}

    def _pause_after(self, attempt: int) -> float:
        """Twice as long after each attempt, and somewhere in the upper half of that."""
        longest = min(_FIRST_PAUSE_S * 2.0**attempt, _PAUSE_S_MAX)
        return longest * self._rng.uniform(0.5, 1.0)
