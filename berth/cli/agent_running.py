# SPDX-License-Identifier: Apache-2.0
"""The agent as a process: its signals, its logs, and its endpoint (`/metrics` and `/healthz`, over
plain HTTP)."""

import json
import logging
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, SimpleQueue
from random import Random
from socket import AF_INET6, gaierror
from types import FrameType
from typing import Any, Final

import click

from berth.cli import service_manager
from berth.cli.failure import CommandFailed, ExitCode
from berth.cli.output import say
from berth.cli.sources import AgentSource
from berth.edge.server.stopping import SLEEP_S_MAX
from berth.hosts.adoption import take_over
from berth.hosts.agent import Agent, Orders, Woken
from berth.hosts.agent_config import AgentConfig
from berth.hosts.agent_report import AgentReport
from berth.hosts.errors import some_of
from berth.hosts.report_client import ReportClient
from berth.hosts.state_dir import StateLock
from berth.hosts.tracker import KnownUsages, Node, Tracker
from berth.hosts.transports import let_go, of_service
from berth.hosts.tree_watch import TreeWatch
from berth.hosts.undo import UndoNotes, new_undo_path
from berth.model.printable import printable

LOG = logging.getLogger(__name__)


def run_agent(debug: bool, *, agent_source: AgentSource, once: bool, adopt: bool) -> None:
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
                _tell_reported(made.orders.nodes, failed)
                return
            names = (node.name for node in made.orders.nodes)
            service_manager.tell_ready(f"reports {some_of(names, 3)}")
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
    return config.replace(adopt=adopt or config.adopt)


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
        Tracker(client, driver, pause=alarm.pause),
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


# --- The endpoint ---------------------------------------------------------------------------------

#: Seconds that a client may take to send its request.
_REQUEST_S_MAX: Final = 10.0


@contextmanager
def metrics_served_at(host: str, port: int, report: AgentReport) -> Iterator[str]:
    """Serve both paths meanwhile, in separate threads; returns the URL.

    Raises:
        CommandFailed: the address is in use, or is not this machine's (ADDRESS).
    """

    class Handler(_Handler):
        agent_report = report

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        if ":" in host:
            address_family = AF_INET6

    try:
        server = Server((host, port), Handler)
    except (OSError, gaierror, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CommandFailed(
            f"cannot serve metrics at {host}:{port}: {reason}; set another metrics.bind",
            ExitCode.ADDRESS,
        ) from error
    url_host = f"[{host}]" if ":" in host else host
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    try:
        yield f"http://{url_host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers the two paths."""

    agent_report: AgentReport
    timeout = _REQUEST_S_MAX

    def do_GET(self) -> None:
        """Answer with metrics, or health: 503 if some node was not reported recently."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            content_type, body = self.agent_report.metrics(self.headers.get("Accept", ""))
            self._answer(HTTPStatus.OK, content_type, body)
        elif path == "/healthz":
            is_well, health = self.agent_report.health()
            status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(status, "application/json", json.dumps(health, indent=1).encode() + b"\n")
        else:
            self._answer(
                HTTPStatus.NOT_FOUND, "text/plain", b"The paths are /metrics and /healthz\n"
            )

    do_HEAD = do_GET

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        """Do not name Python."""
        return "berth"

    def log_message(self, format: str, *args: object) -> None:
        """Log requests at DEBUG only."""
        LOG.debug(format, *args)


# --- The log --------------------------------------------------------------------------------------

#: As oslo.log writes a line that belongs to no request.
_LINE: Final = "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s [-] %(message)s"
_TIME: Final = "%Y-%m-%d %H:%M:%S"

#: Libraries of which only warnings are logged, with `--debug` too: they log every request.
_QUIET: Final = ("keystoneauth", "requests", "stevedore", "urllib3")


class _OneLine(logging.Formatter):
    """Shows a message in one line, whatever names the service sent; a traceback follows it."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Format a record without its traceback."""
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        """Format a traceback."""
        return "\n".join(map(printable, super().formatException(ei).splitlines()))


def set_up_logging(*, debug: bool) -> None:
    """Start logging for the whole process; what was set up before is replaced."""
    level = logging.DEBUG if debug else logging.INFO
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine(_LINE, _TIME))
    logging.basicConfig(handlers=[handler], level=level, force=True)
    logging.captureWarnings(True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
