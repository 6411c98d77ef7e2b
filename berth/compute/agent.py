# SPDX-License-Identifier: Apache-2.0
"""An agent: reports its nodes when it starts, and then again and again until it is told to stop.

At the start a tree may take a new shape, and what goes wrong there ends the agent: a host whose
tree could not be brought up to date must not look as if it had been. Later nothing ends it: what
goes wrong is told, and tried again after growing pauses; a reshape that is needed waits for the
next start.
Source: spec/compute-side.md 3; the first document of spec/origin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final

from berth.compute.errors import ComputeError, ReshapeNeeded
from berth.compute.tracker import Node, Tracker

LOG = logging.getLogger(__name__)

#: By how much of itself the time between two passes is shortened or drawn out.
_JITTER: Final = 0.1

#: How often the pause is doubled at most while passes fail.
_DOUBLINGS_MAX: Final = 4


class Woken(Enum):
    """Why a wait has ended."""

    BY_TIME = "the time is up"
    TO_RELOAD = "the configuration is to be read again"
    TO_STOP = "the agent is to stop"


@dataclass(slots=True)
class NodeState:
    """How a node's reports have gone."""

    #: When the last one was done, by the agent's clock; None: never yet.
    done_at: float | None = None
    #: How many have failed since.
    failures: int = 0
    #: Whether its tree needs another shape, for which the agent has to be started again.
    needs_reshape: bool = False
    #: What went wrong last, empty after a report that was done.
    error: str = ""


@dataclass(slots=True)
class AgentState:
    """What an agent knows of itself, for those who watch over it."""

    nodes: dict[str, NodeState] = field(default_factory=dict)
    passes: int = 0


class Agent:
    """Reports some nodes.

    Args:
        make_tracker: reads the configuration anew and makes a tracker of it.
        interval_s: between two passes.
        wait: waits so many seconds, or until it is woken.
        clock: in seconds.
    """

    def __init__(
        self,
        make_tracker: Callable[[], Tracker],
        nodes: Sequence[Node],
        *,
        interval_s: float,
        wait: Callable[[float], Woken],
        clock: Callable[[], float],
        rng: Random,
    ) -> None:
        self._make_tracker = make_tracker
        self._tracker = make_tracker()
        self._nodes = tuple(nodes)
        self._interval_s = interval_s
        self._wait = wait
        self._clock = clock
        self._rng = rng
        self.state = AgentState({node.name: NodeState() for node in nodes})

    def start(self) -> None:
        """Report every node for the first time, in the shape that it is to have.

        Raises:
            ComputeError: one could not be; the message says which, and why.
        """
        for node in self._nodes:
            plan = self._tracker.report(node, startup=True)
            LOG.info("%s is reported%s", node.name, ", in a new shape" if plan.is_reshape else "")
            self._note_done(node)
        self.state.passes += 1

    def run(self) -> None:
        """Report every node from time to time until told to stop."""
        while (woken := self._wait(self._pause())) is not Woken.TO_STOP:
            if woken is Woken.TO_RELOAD:
                self._reload()
            for node in self._nodes:
                self._report(node)
            self.state.passes += 1

    def _report(self, node: Node) -> None:
        try:
            self._tracker.report(node, startup=False)
        except ReshapeNeeded:
            self._note_needs_reshape(node)
        except ComputeError as error:
            self._note_failure(node, str(error))
        except Exception as error:
            # A driver's own mistake is that of this pass, and not the end of the agent.
            LOG.exception("The driver failed over %s", node.name)
            self._note_failure(node, f"{type(error).__name__}: {error}")
        else:
            self._note_done(node)

    def _reload(self) -> None:
        """Take the configuration as it is now, or go on with the old one where it is wrong."""
        try:
            self._tracker = self._make_tracker()
        except ComputeError as error:
            LOG.error("The configuration is left as it was: %s", error)
        else:
            LOG.info("The configuration was read again")

    def _pause(self) -> float:
        """The time between two passes, longer while they fail, never the same on two hosts."""
        failures = max(state.failures for state in self.state.nodes.values())
        pause = self._interval_s * (1 << min(failures, _DOUBLINGS_MAX))
        return pause * self._rng.uniform(1 - _JITTER, 1 + _JITTER)

    def _note_done(self, node: Node) -> None:
        before = self.state.nodes[node.name]
        if before.error:
            LOG.info("%s is reported again", node.name)
        self.state.nodes[node.name] = NodeState(done_at=self._clock())

    def _note_failure(self, node: Node, error: str) -> None:
        state = self.state.nodes[node.name]
        if error != state.error:
            LOG.error("%s could not be reported: %s", node.name, error)
        state.failures += 1
        state.error = error

    def _note_needs_reshape(self, node: Node) -> None:
        state = self.state.nodes[node.name]
        if not state.needs_reshape:
            LOG.error(
                "The tree of %s needs another shape, and what is held of it has to move: start "
                "the agent again, which does that at its start",
                node.name,
            )
        state.needs_reshape = True
        state.error = "a reshape is needed"
