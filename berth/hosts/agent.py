# SPDX-License-Identifier: Apache-2.0
"""An agent: reports its nodes when it starts, and then again and again until it is told to stop.

At the start a tree may take a new shape, and what cannot be ends the agent: a host whose tree could
not be brought up to date must not look as if it had been. What may pass by itself (a service that
is starting too, others who are quicker) is tried again after growing pauses, up to a time. Once it
has started nothing ends it: what goes wrong is told, and tried again; a reshape that is needed
waits for the next start. Of several nodes, what goes wrong with one is that one's alone, and its
start goes on for as long as it takes.
Source: spec/compute-side.md 3; the first document of spec/origin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random
from typing import Final, Protocol

from berth.hosts.errors import (
    ComputeError,
    Conflict,
    HostUnreadable,
    NameTaken,
    NotThere,
    ReshapeNeeded,
    Unreachable,
    is_mistake,
)
from berth.hosts.plan import Plan
from berth.hosts.tracker import Node
from berth.hosts.tree_watch import TreeView

LOG = logging.getLogger(__name__)

#: By how much of itself the time between two passes is shortened or drawn out.
_JITTER: Final = 0.1

#: How often the pause is doubled at most while passes fail.
_DOUBLINGS_MAX: Final = 4

#: Seconds before the second attempt of a start; each later pause is twice as long.
_START_PAUSE_S: Final = 1.0
_START_PAUSE_S_MAX: Final = 60.0

#: What may pass by itself.
_PASSING: Final = (Conflict, NotThere, Unreachable, HostUnreadable)


class Woken(Enum):
    """Why a wait has ended."""

    BY_TIME = "the time is up"
    TO_RELOAD = "the configuration is to be read again"
    TO_STOP = "the agent is to stop"


@dataclass(slots=True)
class NodeState:
    """How a node's reports have gone."""

    #: When the last one was done, in Unix time; None: never yet, and its start goes on.
    done_at: float | None = None
    #: How many have failed since.
    failures: int = 0
    #: In all.
    done_total: int = 0
    failed_total: int = 0
    #: Things that were sent, as `Plan` counts them.
    changes_total: int = 0
    reshapes_total: int = 0
    #: Whether its tree needs another shape, which it has not taken yet.
    needs_reshape: bool = False
    #: What went wrong last, empty after a report that was done.
    error: str = ""
    view: TreeView = field(default_factory=TreeView)


@dataclass(slots=True)
class AgentState:
    """What an agent knows of itself, for those who watch over it."""

    nodes: dict[str, NodeState] = field(default_factory=dict)
    passes: int = 0
    #: Seconds that all of them took, and that the last one did.
    passes_s: float = 0.0
    pass_s: float = 0.0


class Reporter(Protocol):
    """Reports nodes; `tracker.Tracker` is one."""

    def report(self, node: Node, *, startup: bool) -> Plan:
        """Bring the service up to date with a node."""

    def is_reshape_pending(self, node: Node) -> bool:
        """Whether its tree needs a shape that it has not taken yet."""


class Watch(Protocol):
    """Looks at nodes that were reported; `tree_watch.TreeWatch` is one."""

    def look(self, node: Node, plan: Plan) -> TreeView:
        """How the tree of a node is."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What an agent is to do, as its configuration says."""

    reporter: Reporter
    nodes: Sequence[Node]
    #: Between two passes.
    interval_s: float
    #: How long a start is tried again where what is wrong may pass by itself.
    start_patience_s: float
    #: What the reporter goes by, for people.
    driver: str = ""
    #: None: nobody wants to know.
    watch: Watch | None = None
    #: Says under which uuid a node goes on whose name is taken, or raises what is wrong; None: that
    #: it is taken is what is wrong.
    take_over: Callable[[Node, NameTaken], Node] | None = None
    #: Closes the connections to the service, before a pause: a service has room for some thousand,
    #: and those of a fleet that has nothing to say would take it.
    let_go: Callable[[], None] = lambda: None


class Agent:
    """Reports some nodes, one after another: everything happens in the caller's thread.

    Args:
        read_orders: reads the configuration.
        wait: waits so many seconds, or until it is woken.
        clock: in seconds, which never goes back.
        now: in seconds of Unix time.
        tell: is told what is waited for, and for how many seconds, while the agent starts.
    """

    def __init__(
        self,
        read_orders: Callable[[], Orders],
        *,
        wait: Callable[[float], Woken],
        clock: Callable[[], float],
        now: Callable[[], float],
        rng: Random,
        tell: Callable[[str, float], None] = lambda words, seconds: None,
    ) -> None:
        self._read_orders = read_orders
        self._wait = wait
        self._clock = clock
        self._now = now
        self._rng = rng
        self._tell = tell
        self._orders = read_orders()
        #: In the order in which they are reported in the next pass.
        self._turns = list(self._orders.nodes)
        self.state = AgentState({node.name: NodeState() for node in self._turns})

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the configuration as it was last read."""
        return tuple(self._orders.nodes)

    @property
    def interval_s(self) -> float:
        """The time between two passes."""
        return self._orders.interval_s

    @property
    def driver(self) -> str:
        """What it reports by, as the configuration calls it."""
        return self._orders.driver

    def start(self) -> Mapping[str, Exception]:
        """Report every node for the first time, in the shape that it is to have.

        Returns:
            By their names, what is wrong with nodes that could not be reported while others were.

        Raises:
            ComputeError: no node could be; of several nodes, the first one's error.
            KeyboardInterrupt: the agent is to stop.
        """
        began = self._clock()
        failed: dict[str, Exception] = {}
        pause = _START_PAUSE_S
        while True:
            ahead = [
                node
                for node in self._turns
                if not self._is_done(node) and isinstance(failed.get(node.name, _NOT_YET), _PASSING)
            ]
            failed |= self._pass(ahead)
            failed = {
                node.name: failed[node.name] for node in self._turns if not self._is_done(node)
            }
            waiting = [error for error in failed.values() if isinstance(error, _PASSING)]
            asked = max((getattr(error, "retry_after_s", 0) for error in waiting), default=0)
            jittered = max(pause, asked) * self._rng.uniform(0.5, 1.0)
            if not waiting or self._clock() + jittered > began + self._orders.start_patience_s:
                break
            self._sleep(f"{_words(waiting[0])}; tried again in {jittered:.0f} s", jittered)
            pause = min(2 * pause, _START_PAUSE_S_MAX)
        if len(failed) == len(self._turns):
            name, error = next(iter(failed.items()))
            if is_mistake(error):
                self._log(name, error)
            raise error
        for name, error in failed.items():
            self._log(name, error)
        return failed

    def run(self) -> None:
        """Report every node from time to time until told to stop."""
        while (woken := self._rest(self._pause())) is not Woken.TO_STOP:
            if woken is Woken.TO_RELOAD:
                self._reload()
            before = {name: state.error for name, state in self.state.nodes.items()}
            for name, error in self._pass(list(self._turns)).items():
                if self.state.nodes[name].error != before[name]:
                    self._log(name, error)

    # --- A pass -----------------------------------------------------------------------------------

    def _pass(self, nodes: Sequence[Node]) -> dict[str, Exception]:
        """Report some nodes; by their names, what went wrong.

        Where the service does not answer, the other nodes would only wait for it too. They come
        first in the next pass: it may be that it does not answer for one of them alone.
        """
        began = self._clock()
        failed: dict[str, Exception] = {}
        for place, node in enumerate(nodes):
            try:
                self._report(node)
            except Unreachable as error:
                for other in nodes[place:]:
                    failed[other.name] = error
                # By name: a node that was just taken over has another uuid among the turns.
                left_out = {one.name for one in nodes[place + 1 :]}
                self._turns.sort(key=lambda one: (one.name not in left_out, one.name == node.name))
                break
            except Exception as error:  # noqa: BLE001 - the agent's loop
                # A driver's own mistake is that of this node, and not the end of the others.
                failed[node.name] = error
        for name, wrong in failed.items():
            state = self.state.nodes[name]
            state.failures += 1
            state.failed_total += 1
            state.error = _words(wrong)
        self.state.passes += 1
        self.state.pass_s = self._clock() - began
        self.state.passes_s += self.state.pass_s
        return failed

    def _report(self, node: Node) -> None:
        """Report a node, as at a start until it was done once."""
        state = self.state.nodes[node.name]
        startup = not self._is_done(node)
        try:
            try:
                plan = self._orders.reporter.report(node, startup=startup)
            except NameTaken as taken:
                node = self._take_over(node, taken)
                plan = self._orders.reporter.report(node, startup=startup)
        finally:
            state.needs_reshape = self._orders.reporter.is_reshape_pending(node)
        if startup:
            LOG.info("%s is reported%s", node.name, ", in a new shape" if plan.is_reshape else "")
        elif state.error:
            LOG.info("%s is reported again", node.name)
        state.done_at = self._now()
        state.done_total += 1
        state.changes_total += len(plan)
        state.reshapes_total += plan.is_reshape
        state.failures = 0
        state.error = ""
        if self._orders.watch is not None:
            state.view = self._orders.watch.look(node, plan)

    def _take_over(self, node: Node, taken: NameTaken) -> Node:
        if self._orders.take_over is None:
            raise taken
        adopted = self._orders.take_over(node, taken)

        def with_adopted(nodes: Sequence[Node]) -> list[Node]:
            return [adopted if one == node else one for one in nodes]

        self._orders = replace(self._orders, nodes=with_adopted(self._orders.nodes))
        self._turns = with_adopted(self._turns)
        return adopted

    def _is_done(self, node: Node) -> bool:
        return self.state.nodes[node.name].done_at is not None

    def _log(self, name: str, error: Exception) -> None:
        LOG.error(
            "%s could not be reported: %s",
            name,
            _words(error),
            exc_info=error if is_mistake(error) else None,
        )

    # --- Between passes ---------------------------------------------------------------------------

    def _pause(self) -> float:
        """The time between two passes, longer while they all fail, never the same on two hosts."""
        failures = min(state.failures for state in self.state.nodes.values())
        pause = self._orders.interval_s * (1 << min(failures, _DOUBLINGS_MAX))
        return pause * self._rng.uniform(1 - _JITTER, 1 + _JITTER)

    def _rest(self, seconds: float) -> Woken:
        self._orders.let_go()
        return self._wait(seconds)

    def _sleep(self, why: str, seconds: float) -> None:
        """Wait between two attempts of a start."""
        LOG.warning("Not everything could be reported yet: %s", why)
        self._tell(why, seconds)
        woken = self._rest(seconds)
        if woken is Woken.TO_STOP:
            raise KeyboardInterrupt
        if woken is Woken.TO_RELOAD:
            self._reload()

    def _reload(self) -> None:
        """Take the configuration as it is now, or go on with the old one where it is wrong."""
        try:
            self._orders = self._read_orders()
        except Exception as error:  # noqa: BLE001 - the agent's loop
            # Making a driver anew may fail in the driver's own ways.
            LOG.error("The configuration is left as it was: %s", _words(error))
            return
        LOG.info("The configuration was read again")
        known = self.state.nodes
        self._turns = list(self._orders.nodes)
        self.state.nodes = {node.name: known.get(node.name, NodeState()) for node in self._turns}


#: Stands for what is wrong with a node that was not tried yet.
_NOT_YET: Final = Unreachable("it was not tried yet")


def _words(error: Exception) -> str:
    if isinstance(error, ReshapeNeeded):
        return (
            "its tree needs another shape, and what is held of it has to move: start the agent "
            "again, which does that at its start"
        )
    return str(error) if isinstance(error, ComputeError) else f"{type(error).__name__}: {error}"
