# SPDX-License-Identifier: Apache-2.0
"""Reports a host to the service: at start-up, when its tree may be reshaped, and later.

One pass reads the tree, lets the driver edit it, and writes the differences. Another client may
change the tree or its consumers meanwhile. That is normal: the pass is repeated from a fresh read,
with growing pauses.
Source: spec/compute-side.md 3.
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import KW_ONLY, dataclass, field
from random import Random
from typing import Final, Protocol

from berth.hosts.errors import (
    ActualUsage,
    Conflict,
    HealingNeeded,
    NotThere,
    ReshapeNeeded,
    RestoreNeeded,
    Unreachable,
)
from berth.hosts.plan import Allocations, Moves, Plan, make_plan
from berth.hosts.provider_tree import ProviderSubTree, ProviderTree
from berth.hosts.report_client import ReportClient

LOG = logging.getLogger(__name__)

#: Seconds before the second attempt; each later pause is twice as long.
_FIRST_PAUSE_S: Final = 0.25
_PAUSE_S_MAX: Final = 15.0


class Driver(Protocol):
    """Examines a host.

    A driver edits a tree in place so that it shows what the host offers, and leaves alone what is
    not
    its own. It is called again and again, and changes nothing if nothing has changed.
    """

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Update the tree of a node to what the host offers.

        Args:
            allocations: the allocations of the tree's consumers, to be edited if inventory that is
                in use
                moves; None if nothing may move.

        Raises:
            ReshapeNeeded: inventory that is in use has to move, and `allocations` is None. The
                edits so
                far are kept: the driver is called again with the same tree, and the allocations.
            HealingNeeded: consumers use more than is allocated to them, nothing has to move, and
                `allocations` is None. A consumer that is not among the allocations has none in this
                tree,
                and gets none.
            ReshapeFailed: the host's state and the allocations contradict each other.
        """


@dataclass(frozen=True, slots=True)
class Node:
    """A host's root provider."""

    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a report at the start would change."""

    #: The tree in the service; empty if the service does not know the node.
    before: ProviderTree
    after: ProviderTree
    #: The current allocations of the tree's consumers; empty if nothing moves.
    current: Allocations
    plan: Plan


def tree_of_new(driver: Driver, node: Node) -> ProviderSubTree:
    """The tree that a driver makes of a node that the service does not know.

    It has no consumers: a driver that asks for the allocations gets none.
    """
    tree = ProviderSubTree(node.uuid)
    tree.new_root(node.name, node.uuid)
    try:
        driver.update_provider_tree(tree, node.name)
    except ReshapeNeeded:
        driver.update_provider_tree(tree, node.name, {})
    return tree


@dataclass(eq=False)
class Tracker:
    """Reports the nodes of one driver, each from one thread at a time.

    Several nodes may be reported concurrently if the driver allows it.

    Attributes:
        attempts_max: the number of passes for one report, before its error is raised. Conflicts
            with other clients are common, and responses get lost.
        pause: waits for a number of seconds.
        rng: spreads the pauses, so that hosts that collided once do not collide again.
    """

    client: ReportClient
    driver: Driver
    _: KW_ONLY
    attempts_max: int = 5
    # As a default, the documentation would show it as a method.
    pause: Callable[[float], None] = field(default_factory=lambda: time.sleep)
    rng: Random = field(default_factory=Random)
    #: Consumers that were logged because they use something but have no allocation.
    _logged: set[str] = field(default_factory=set, init=False)
    #: The nodes whose driver asked for a reshape that has not happened yet.
    _pending: set[Node] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        assert self.attempts_max >= 1

    def is_reshape_pending(self, node: Node) -> bool:
        """Whether the node's tree needs a reshape that has not happened yet."""
        return node in self._pending

    def report(self, node: Node, *, startup: bool) -> Plan:
        """Update the service's tree of a node to what the driver says.

        Args:
            startup: inventory that is in use may move. In any pass, allocations may grow to the
                actual
                usage that a driver reports.

        Returns:
            What was sent.

        Raises:
            ReshapeNeeded: inventory would have to move, and this is not the start.
            ReshapeFailed, BadProviderTree, Refused: the update is impossible; the tree is
                unchanged.
            Conflict, NotThere, Unreachable: the update failed `attempts_max` times.
        """
        for attempt in range(self.attempts_max - 1):
            try:
                return self._pass(node, startup=startup)
            except (Conflict, NotThere, Unreachable) as error:
                pause = self._pause_after(attempt)
                LOG.info("%s failed and will be retried in %.1f s: %s", node.name, pause, error)
                self.pause(pause)
        return self._pass(node, startup=startup)

    def rehearse(self, node: Node) -> Rehearsal:
        """Find out what a report at the start would change; nothing is written.

        Raises:
            NameTaken: another provider has the node's name.
            ReshapeFailed, BadProviderTree: the update is impossible.
            Refused, Unreachable: a request failed.
        """
        if not self.client.get_providers_in_tree(None, node.uuid):
            return self._rehearse_new(node)
        tree = self.client.get_provider_tree_and_ensure_root(None, node.uuid, node.name)
        before = copy.deepcopy(tree)
        plan = self.client.plan_update(tree, self._edit(node, tree, startup=True))
        return Rehearsal(before, tree, self.client.allocations_in(tree), plan)

    def _rehearse_new(self, node: Node) -> Rehearsal:
        self.client.refuse_taken_name(node.name)
        before = ProviderTree()
        tree = tree_of_new(self.driver, node)
        return Rehearsal(before, tree, {}, make_plan(before, tree, node.uuid))

    def _pass(self, node: Node, *, startup: bool) -> Plan:
        tree = self.client.get_provider_tree_and_ensure_root(None, node.uuid, node.name)
        plan = self.client.update(tree, self._edit(node, tree, startup=startup))
        self._pending.discard(node)
        return plan

    def _edit(self, node: Node, tree: ProviderTree, *, startup: bool) -> Moves:
        """Let the driver edit a tree, and the allocations of its consumers if those change."""
        if tree.exists(node.uuid) and tree.data(node.uuid).name != node.name:
            tree.rename(node.uuid, node.name)
        try:
            self.driver.update_provider_tree(tree, node.name)
            return Moves()
        except ReshapeNeeded as needed:
            if not isinstance(needed, HealingNeeded):
                self._pending.add(node)
                if not startup:
                    raise
            LOG.info("Reading the allocations of %s, to change them with its tree", node.name)
            allocations = self.client.get_allocations_for_provider_tree(None, node.uuid)
            holders = frozenset(allocations)
            self.driver.update_provider_tree(tree, node.name, allocations)
            return Moves(
                allocations,
                # The driver removes what does not fit from it once it has the allocations.
                self._holders_of(needed.actual_usage, holders),
                may_move=startup,
                may_shrink=isinstance(needed, RestoreNeeded),
            )

    def _holders_of(self, actual_usage: ActualUsage, holders: Set[str]) -> ActualUsage:
        """The actual usage of those consumers that have an allocation in this tree.

        The project of the others is unknown: their allocations were lost, or are about to move.
        """
        unplaced = actual_usage.keys() - holders
        for consumer in sorted(unplaced - self._logged):
            LOG.warning(
                "Consumer %s uses %s but has no allocation in this tree; none is created",
                consumer,
                ", ".join(
                    f"{amount} {name}" for name, amount in sorted(actual_usage[consumer].items())
                ),
            )
        self._logged |= unplaced
        return {
            consumer: actual_usage[consumer] for consumer in actual_usage if consumer in holders
        }

    def _pause_after(self, attempt: int) -> float:
        """A random time in the upper half of an interval that doubles with each attempt."""
        longest = min(_FIRST_PAUSE_S * 2.0**attempt, _PAUSE_S_MAX)
        return longest * self.rng.uniform(0.5, 1.0)


#: Seconds before a usage is read again.
_PAUSE_S: Final = 50.0


@dataclass(slots=True)
class _Remembered:
    usages: Mapping[str, int]
    generation: int | None
    at: float
    #: When a driver last asked for it.
    wanted_at: float


class KnownUsages:
    """Remembers usages for the drivers, which ask in every pass.

    A claim increases a provider's generation, so its usage is read again. Releasing an
    allocation does not, so in each pass one of the other usages is read again, in turn.
    """

    def __init__(self, client: ReportClient, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._remembered: dict[str, _Remembered] = {}
        #: When a usage was last read again.
        self._turn_at = clock()

    def used(self, uuid: str) -> Mapping[str, int]:
        """The usage of a provider, by resource class; a `drivers.Used`."""
        last, now = self._remembered.get(uuid), self._clock()
        generation = self._client.last_known_generation(uuid)
        if last is not None and last.generation == generation:
            last.wanted_at = now
            if not self._has_turn(last, now):
                return last.usages
            self._turn_at = now
        usages = self._client.get_usages(uuid)
        self._remembered[uuid] = _Remembered(usages, generation, now, now)
        return usages

    def _has_turn(self, last: _Remembered, now: float) -> bool:
        """Whether this usage is the oldest of those that drivers still ask for."""
        still = self._turn_at - _PAUSE_S
        oldest = min(other.at for other in self._remembered.values() if other.wanted_at >= still)
        return now - self._turn_at >= _PAUSE_S and last.at <= oldest
