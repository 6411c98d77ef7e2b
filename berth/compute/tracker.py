# SPDX-License-Identifier: Apache-2.0
"""A host's report to the service: at start-up, when the tree may change its shape, and later.

One pass reads the tree, lets the driver edit it, and writes the difference. Somebody else may have
changed the tree or its consumers meanwhile, which is how things are and not an error: the pass is
made again, from a fresh look, with growing pauses.
Source: spec/compute-side.md 3.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

from berth.compute.errors import Conflict, NotThere, ReshapeNeeded, Unreachable
from berth.compute.plan import Allocations, Plan
from berth.compute.provider_tree import ProviderTree
from berth.compute.report_client import ReportClient

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
            ReshapeFailed: what the host knows and what the consumers hold do not agree.
        """


@dataclass(frozen=True, slots=True)
class Node:
    """A host as the service knows it: its root provider."""

    uuid: str
    name: str


class Tracker:
    """Reports nodes that one driver knows.

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

    def report(self, node: Node, *, startup: bool) -> Plan:
        """Make the service's tree of a node what the driver says.

        Args:
            startup: inventory that is in use may move.

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

    def _pass(self, node: Node, *, startup: bool) -> Plan:
        tree = self._client.get_provider_tree_and_ensure_root(None, node.uuid, node.name)
        allocations: Allocations | None = None
        try:
            self._driver.update_provider_tree(tree, node.name)
        except ReshapeNeeded:
            if not startup:
                raise
            LOG.info("%s takes a new shape, with what its consumers hold", node.name)
            allocations = self._client.get_allocations_for_provider_tree(None, node.name)
            self._driver.update_provider_tree(tree, node.name, allocations)
        return self._client.update_from_provider_tree(None, tree, allocations)

    def _pause_after(self, attempt: int) -> float:
        """Twice as long after each attempt, and somewhere in the upper half of that."""
        longest = min(_FIRST_PAUSE_S * 2.0**attempt, _PAUSE_S_MAX)
        return longest * self._rng.uniform(0.5, 1.0)
