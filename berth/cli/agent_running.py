# SPDX-License-Identifier: Apache-2.0
"""The agent as a process: its signals, its logs, and its endpoint."""

import logging
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from random import Random
from types import FrameType
from typing import Final

import click

from berth.cli import service_manager
from berth.cli.agent_endpoint import metrics_served_at
from berth.cli.agent_log import set_up_logging
from berth.cli.agent_options import AgentSource
from berth.cli.output import say
from berth.edge.server.wakeup import SLEEP_S_MAX
from berth.hosts.adoption import take_over
from berth.hosts.agent import Agent, Orders, Woken
from berth.hosts.agent_config import AgentConfig
from berth.hosts.agent_report import AgentReport
from berth.hosts.known_usages import KnownUsages
from berth.hosts.report_client import ReportClient
from berth.hosts.state_lock import StateLock
from berth.hosts.tracker import Node, Tracker
from berth.hosts.transports import let_go, of_service
from berth.hosts.tree_watch import TreeWatch
from berth.hosts.undo import UndoNotes, new_undo_path

LOG = logging.getLogger(__name__)

#: Attempts for one report: conflicts with other clients are common, and responses get lost.
_ATTEMPTS_MAX: Final = 5


def run_agent(agent_source: AgentSource, *, once: bool, adopt: bool, debug: bool) -> None:
    """Report until a signal stops the agent, or once.

    Raises:
        KeyboardInterrupt: the agent was stopped before it had reported once.
        ComputeError, CommandFailed: the start failed permanently.
    """
    set_up_logging(debug=debug)
    alarm = Alarm()
    first = _read(agent_source, adopt=adopt)
    requests: Counter[str] = Counter()
    lock = StateLock()
    click.get_current_context().call_on_close(lock.close)
    made = Agent(
        lambda: _orders(_read(agent_source, adopt=adopt), alarm, requests, lock, is_once=once),
        wait=alarm.wait,
        clock=time.monotonic,
        now=time.time,
        rng=Random(),
        tell=service_manager.tell_starting,
    )
    alarm.set()
    try:
        with ExitStack() as stack:
            if first.metrics_bind is not None and not once:
                report = AgentReport(made, requests)
                url = stack.enter_context(metrics_served_at(*first.metrics_bind, report))
                LOG.info("Serving metrics at %s/metrics, and health at %s/healthz", url, url)
            failed = made.start()
            if once:
                _tell_reported(made.nodes, failed)
                return
            service_manager.tell_ready(f"reports {_named(made.nodes)}")
            made.run()
    except KeyboardInterrupt:
        # Being stopped is the normal end of an agent, but not of a single report.
        if once:
            say("berth: interrupted before everything was reported; run it again", err=True)
            raise
    service_manager.tell_stopping("the agent ends")


def _tell_reported(nodes: Sequence[Node], failed: Mapping[str, Exception]) -> None:
    for node in nodes:
        if node.name not in failed:
            say(f"reported {node.name} ({node.uuid})")
    for error in failed.values():
        raise error


def _named(nodes: Sequence[Node]) -> str:
    """The nodes by name, if they are few."""
    few = ", ".join(node.name for node in nodes[:3])
    return few if len(nodes) <= 3 else f"{few} and {len(nodes) - 3} more"


class Alarm:
    """Wakes the agent on signals.

    A signal handler runs between any two steps of the code that it interrupts, and would deadlock
    on a
    lock that this code holds. An Event has such a lock; a SimpleQueue does not.
    """

    def __init__(self) -> None:
        #: Every signal puts an item here.
        self._knocks: SimpleQueue[None] = SimpleQueue()
        self._stops = False
        self._reloads = False

    def set(self) -> None:
        """Stop on SIGTERM and Ctrl-C; read the configuration again on SIGHUP."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(signal.SIGHUP, self._reload)

    def wait(self, seconds: float) -> Woken:
        """Wait, unless woken, and keep telling the service manager that the agent is alive."""
        self._sleep(seconds, lambda: self._stops or self._reloads)
        if self._stops:
            return Woken.TO_STOP
        if self._reloads:
            self._reloads = False
            return Woken.TO_RELOAD
        return Woken.BY_TIME

    def pause(self, seconds: float) -> None:
        """Wait between two attempts, less if the agent is stopped.

        Raises:
            KeyboardInterrupt: it was stopped.
        """
        self._sleep(seconds, lambda: self._stops)
        if self._stops:
            raise KeyboardInterrupt

    def _sleep(self, seconds: float, is_over: Callable[[], bool]) -> None:
        ends = time.monotonic() + seconds
        while not is_over() and (left := ends - time.monotonic()) > 0:
            service_manager.tell_alive()
            with suppress(Empty):
                self._knocks.get(
                    timeout=min(left, SLEEP_S_MAX, service_manager.alive_every_s() or left)
                )

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stops = True
        self._knocks.put(None)

    def _reload(self, number: int, frame: FrameType | None) -> None:
        self._reloads = True
        self._knocks.put(None)


def _read(agent_source: AgentSource, *, adopt: bool) -> AgentConfig:
    config = agent_source.read()
    return replace(config, adopt=adopt or config.adopt)


def _orders(
    agent_config: AgentConfig,
    alarm: Alarm,
    requests: Counter[str],
    lock: StateLock,
    *,
    is_once: bool,
) -> Orders:
    undo = UndoNotes(lambda: new_undo_path(agent_config.state_dir))
    transport = of_service(agent_config.access())
    client = ReportClient(transport, note=undo.note, pause=alarm.pause)
    # The counts continue when the configuration is read again.
    client.service.requests = requests
    driver = agent_config.make_driver(KnownUsages(client, time.monotonic).used, client.drains_of)
    lock.hold(agent_config.state_dir)
    return Orders(
        Tracker(client, driver, attempts_max=_ATTEMPTS_MAX, pause=alarm.pause, rng=Random()),
        agent_config.nodes(),
        interval_s=agent_config.interval_s,
        start_patience_s=0 if is_once else agent_config.start_patience_s,
        driver=agent_config.driver,
        watch=None if is_once else TreeWatch(client, time.monotonic),
        let_go=partial(let_go, transport),
        take_over=partial(
            take_over, client.service, keep=agent_config.keep if agent_config.adopt else None
        ),
    )
