# SPDX-License-Identifier: Apache-2.0
"""An agent: it reports its nodes when it starts, then periodically until it is stopped.

At the start, a tree may be reshaped, and a permanent error ends the agent: a host whose tree could
not be brought up to date must not look up to date. A transient error (a service that is still
starting, a conflict with another client) is retried after growing pauses, up to a time limit. Once
started, nothing ends the agent: it logs errors and retries, and a reshape waits for the next start.
With several nodes, an error affects only its own node, whose start is retried without a limit.
Source: spec/compute-side.md 3; the first document of spec/origin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
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

#: The fraction by which the time between two passes varies at random.
_JITTER: Final = 0.1

#: How often the pause is doubled at most while passes fail.
_DOUBLINGS_MAX: Final = 4

#: Seconds before the second attempt of a start; each later pause is twice as long.
_START_PAUSE_S: Final = 1.0
_START_PAUSE_S_MAX: Final = 60.0

#: Errors that may go away by themselves.
_PASSING: Final = (Conflict, NotThere, Unreachable, HostUnreadable)


class Woken(Enum):
    """Why a wait ended."""

    BY_TIME = "the time is up"
    TO_RELOAD = "the configuration should be read again"
    TO_STOP = "the agent should stop"


@dataclass(slots=True)
class NodeState:
    """The history of a node's reports."""

    #: The time of the last successful report, in Unix time; None if there was none, and the start
    #: continues.
    done_at: float | None = None
    #: The number of failures since.
    failures: int = 0
    #: The total number of failures.
    done_total: int = 0
    failed_total: int = 0
    #: The number of changes sent, as `Plan` counts them.
    changes_total: int = 0
    reshapes_total: int = 0
    #: Whether its tree needs a reshape that has not happened yet.
    needs_reshape: bool = False
    #: The last error, empty after a successful report.
    error: str = ""
    view: TreeView = field(default_factory=TreeView)


@dataclass(slots=True)
class AgentState:
    """The agent's state, for monitoring."""

    nodes: dict[str, NodeState] = field(default_factory=dict)
    passes: int = 0
    #: Seconds that all passes took, and that the last one took.
    passes_s: float = 0.0
    pass_s: float = 0.0


class Reporter(Protocol):
    """Reports nodes; `tracker.Tracker` is one."""

    def report(self, node: Node, *, startup: bool) -> Plan:
        """Bring the service up to date with a node."""

    def is_reshape_pending(self, node: Node) -> bool:
        """Whether the node's tree needs a reshape that has not happened yet."""


class Watch(Protocol):
    """Checks nodes after they were reported; `tree_watch.TreeWatch` is one."""

    def look(self, node: Node, plan: Plan) -> TreeView:
        """Check the tree of a node."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What the configuration tells an agent to do."""

    reporter: Reporter
    nodes: Sequence[Node]
    #: Between two passes.
    interval_s: float
    #: For how long a start is retried after transient errors.
    start_patience_s: float
    #: The name of the driver, for people.
    driver: str = ""
    #: None: nothing watches the trees.
    watch: Watch | None = None
    #: Decides under which UUID a node continues when its name is taken, or raises; None: a taken
    #: name is an error.
    take_over: Callable[[Node, NameTaken], Node] | None = None
    #: Closes the connections to the service before a pause: a service accepts some thousand
    #: connections, which an idle fleet would use up.
    let_go: Callable[[], None] = lambda: None


@dataclass(eq=False)
class Agent:
    """Reports some nodes, one after another, in the caller's thread.

    Attributes:
        read_orders: reads the configuration.
        wait: waits for a number of seconds, or until it is woken.
        clock: a monotonic clock, in seconds.
        now: the Unix time, in seconds.
        tell: called during the start with the reason for waiting, and the number of seconds.
    """

    read_orders: Callable[[], Orders]
    _: KW_ONLY
    wait: Callable[[float], Woken]
    clock: Callable[[], float]
    now: Callable[[], float]
    rng: Random
    tell: Callable[[str, float], None] = lambda words, seconds: None

    def __post_init__(self) -> None:
        #: What the last configuration that was read says.
        self.orders = self.read_orders()
        #: In the order of the next pass.
        self._turns = list(self.orders.nodes)
        self.state = AgentState({node.name: NodeState() for node in self._turns})

    def start(self) -> Mapping[str, Exception]:
        """Report every node for the first time, reshaping its tree if needed.

        Returns:
            By node name, the errors of the nodes that could not be reported while others were.

        Raises:
            ComputeError: no node could be reported; of several nodes, the error of the first.
            KeyboardInterrupt: the agent was stopped.
        """
        began = self.clock()
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
            jittered = max(pause, asked) * self.rng.uniform(0.5, 1.0)
            if not waiting or self.clock() + jittered > began + self.orders.start_patience_s:
                break
            self._sleep(f"{_words(waiting[0])}; retrying in {jittered:.0f} s", jittered)
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
        """Report every node periodically until the agent is stopped."""
        while (woken := self._rest(self._pause())) is not Woken.TO_STOP:
            if woken is Woken.TO_RELOAD:
                self._reload()
            before = {name: state.error for name, state in self.state.nodes.items()}
            for name, error in self._pass(list(self._turns)).items():
                if self.state.nodes[name].error != before[name]:
                    self._log(name, error)

    # --- A pass -----------------------------------------------------------------------------------

    def _pass(self, nodes: Sequence[Node]) -> dict[str, Exception]:
        """Report some nodes; return the errors by node name.

        If the service does not answer, the remaining nodes are skipped, since they would only wait
        for
        it too. They come first in the next pass, in case a single node is the problem.
        """
        began = self.clock()
        failed: dict[str, Exception] = {}
        for place, node in enumerate(nodes):
            try:
                self._report(node)
            except Unreachable as error:
                for other in nodes[place:]:
                    failed[other.name] = error
                # By name: a node that was just taken over has another UUID in this list.
                left_out = {waiting.name for waiting in nodes[place + 1 :]}
                self._turns.sort(
                    key=lambda waiting: (waiting.name not in left_out, waiting.name == node.name)
                )
                break
            except Exception as error:  # noqa: BLE001 - the agent's loop
                # A driver's bug affects this node, and not the others.
                failed[node.name] = error
        for name, wrong in failed.items():
            state = self.state.nodes[name]
            state.failures += 1
            state.failed_total += 1
            state.error = _words(wrong)
        self.state.passes += 1
        self.state.pass_s = self.clock() - began
        self.state.passes_s += self.state.pass_s
        return failed

    def _report(self, node: Node) -> None:
        """Report a node, as at a start until the first success."""
        state = self.state.nodes[node.name]
        startup = not self._is_done(node)
        try:
            try:
                plan = self.orders.reporter.report(node, startup=startup)
            except NameTaken as taken:
                node = self._take_over(node, taken)
                plan = self.orders.reporter.report(node, startup=startup)
        finally:
            state.needs_reshape = self.orders.reporter.is_reshape_pending(node)
        if startup:
            LOG.info("%s is reported%s", node.name, ", reshaped" if plan.is_reshape else "")
        elif state.error:
            LOG.info("%s is reported again", node.name)
        state.done_at = self.now()
        state.done_total += 1
        state.changes_total += len(plan)
        state.reshapes_total += plan.is_reshape
        state.failures = 0
        state.error = ""
        if self.orders.watch is not None:
            state.view = self.orders.watch.look(node, plan)

    def _take_over(self, node: Node, taken: NameTaken) -> Node:
        if self.orders.take_over is None:
            raise taken
        adopted = self.orders.take_over(node, taken)

        def with_adopted(nodes: Sequence[Node]) -> list[Node]:
            return [adopted if other == node else other for other in nodes]

        self.orders = replace(self.orders, nodes=with_adopted(self.orders.nodes))
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
        """The time between two passes: longer while all fail, and random, so that hosts do not
        synchronise.
        """
        failures = min(state.failures for state in self.state.nodes.values())
        pause = self.orders.interval_s * (1 << min(failures, _DOUBLINGS_MAX))
        return pause * self.rng.uniform(1 - _JITTER, 1 + _JITTER)

    def _rest(self, seconds: float) -> Woken:
        self.orders.let_go()
        return self.wait(seconds)

    def _sleep(self, why: str, seconds: float) -> None:
        """Wait between two attempts of a start."""
        LOG.warning("Some nodes are not reported yet: %s", why)
        self.tell(why, seconds)
        woken = self._rest(seconds)
        if woken is Woken.TO_STOP:
            raise KeyboardInterrupt
        if woken is Woken.TO_RELOAD:
            self._reload()

    def _reload(self) -> None:
        """Read the configuration again; keep the old one if the new one is invalid."""
        try:
            self.orders = self.read_orders()
        except Exception as error:  # noqa: BLE001 - the agent's loop
            # Creating a driver may raise anything.
            LOG.error("The configuration is unchanged: %s", _words(error))
            return
        LOG.info("The configuration was read again")
        nodes_before = self.state.nodes
        self._turns = list(self.orders.nodes)
        self.state.nodes = {
            node.name: nodes_before.get(node.name, NodeState()) for node in self._turns
        }


#: Stands for the error of a node that was not tried yet.
_NOT_YET: Final = Unreachable("it was not attempted yet")


def _words(error: Exception) -> str:
    if isinstance(error, ReshapeNeeded):
        return (
            "its tree needs a reshape that moves allocations: restart the agent, which does "
            "this at its start"
        )
    return str(error) if isinstance(error, ComputeError) else f"{type(error).__name__}: {error}"
