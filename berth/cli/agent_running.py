# SPDX-License-Identifier: Apache-2.0
"""The agent of a host as a process: its signals, its logs, and where it says how it is."""

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

from berth import config
from berth.api.log_setup import set_up_logging
from berth.cli import service_manager
from berth.cli.agent_endpoint import told_at
from berth.cli.agent_options import AgentSource
from berth.cli.wakeup import SLEEP_S_MAX
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

#: Attempts of one report: conflicts with others are usual, and answers get lost.
_ATTEMPTS_MAX: Final = 5


def run_agent(agent_source: AgentSource, *, once: bool, adopt: bool, debug: bool) -> None:
    """Report until a signal asks to stop, or once.

    Raises:
        KeyboardInterrupt: it was stopped before the one report was done.
        ComputeError, CommandFailed: the start failed for a reason that does not pass by itself.
    """
    set_up_logging(config.load(debug=debug))
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
                url = stack.enter_context(told_at(*first.metrics_bind, report))
                LOG.info("Metrics are told at %s/metrics, and health at %s/healthz", url, url)
            failed = made.start()
            if once:
                _tell_reported(made.nodes, failed)
                return
            service_manager.tell_ready(f"reports {_named(made.nodes)}")
            made.run()
    except KeyboardInterrupt:
        # To be stopped is how an agent ends, and not how a report is done.
        if once:
            click.echo("berth: broken off, not all is reported; run it again", err=True)
            raise
    service_manager.tell_stopping("the agent ends")


def _tell_reported(nodes: Sequence[Node], failed: Mapping[str, Exception]) -> None:
    for node in nodes:
        if node.name not in failed:
            click.echo(f"{node.name} ({node.uuid}) is reported")
    for error in failed.values():
        raise error


def _named(nodes: Sequence[Node]) -> str:
    """The nodes by name where they are few."""
    few = ", ".join(node.name for node in nodes[:3])
    return few if len(nodes) <= 3 else f"{few} and {len(nodes) - 3} more"


class Alarm:
    """Wakes the agent on signals.

    A handler runs between any two steps of what it interrupts, and would wait for ever for a lock
    that is held there, as an Event has one; a SimpleQueue has none.
    """

    def __init__(self) -> None:
        #: Something is put in by every signal.
        self._knocks: SimpleQueue[None] = SimpleQueue()
        self._stops = False
        self._reloads = False

    def set(self) -> None:
        """Wake on SIGTERM and Ctrl-C to stop, on SIGHUP to read the configuration again."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(signal.SIGHUP, self._reload)

    def wait(self, seconds: float) -> Woken:
        """Wait, unless woken, and tell the service manager meanwhile that the agent goes on."""
        self._sleep(seconds, lambda: self._stops or self._reloads)
        if self._stops:
            return Woken.TO_STOP
        if self._reloads:
            self._reloads = False
            return Woken.TO_RELOAD
        return Woken.BY_TIME

    def pause(self, seconds: float) -> None:
        """Wait between two attempts; shorter where the agent is to stop.

        Raises:
            KeyboardInterrupt: it is.
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
    found = agent_source.read()
    return replace(found, adopt=adopt or found.adopt)


def _orders(
    found: AgentConfig, alarm: Alarm, requests: Counter[str], lock: StateLock, *, is_once: bool
) -> Orders:
    undo = UndoNotes(lambda: new_undo_path(found.state_dir))
    transport = of_service(found.access())
    client = ReportClient(transport, note=undo.note, pause=alarm.pause)
    # Counted on where a configuration is read again.
    client.service.requests = requests
    driver = found.make_driver(KnownUsages(client, time.monotonic).used)
    lock.hold(found.state_dir)
    return Orders(
        Tracker(client, driver, attempts_max=_ATTEMPTS_MAX, pause=alarm.pause, rng=Random()),
        found.nodes(),
        interval_s=found.interval_s,
        start_patience_s=0 if is_once else found.start_patience_s,
        driver=found.driver,
        watch=None if is_once else TreeWatch(client, time.monotonic),
        let_go=partial(let_go, transport),
        take_over=partial(take_over, client.service, keep=found.keep if found.adopt else None),
    )
