# SPDX-License-Identifier: Apache-2.0
"""The worker processes of `berth serve`, with Granian.

The parent watches over the workers; each worker reads the configuration again and builds its own
application, so nothing of the database is carried over a fork. Workers listen on one address
together (SO_REUSEPORT), and the kernel spreads connections over them. On SIGTERM a worker stops
listening, finishes what it has begun, and ends.
"""

import functools
import gc
import logging
import multiprocessing
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, MutableSequence
from typing import Any
from wsgiref.types import WSGIApplication

from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer

from berth import deploy
from berth.cli import affinity, service_manager
from berth.cli.address import Address
from berth.cli.connections import listens
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.granian_environ import for_granian
from berth.cli.lifeline import STOP_S_MAX, end_with_parent
from berth.cli.options import ConfigurationSource
from berth.cli.revival import Revival
from berth.cli.slow_clients import SlowClients
from berth.cli.tls import Tls
from berth.cli.wakeup import Wakeup
from berth.config import AdmissionSettings, ConfigurationError, ReceivingSettings, read_settings
from berth.model.errors import BerthError

LOG = logging.getLogger(__name__)

#: Threads of a worker beyond those that run requests or wait for their turn (`api/admission.py`):
#: they tell the others to come back, which takes half a second each.
THREADS_REFUSING = 64

#: Connections that a worker accepts; more wait in the kernel. One takes 11 KB. Granian closes those
#: that have been idle for `client_seconds_max`, and `SlowClients` some of them before. Each has one
#: request at most under way, so this also bounds what can wait unseen in Granian's queue, for a
#: thread to come free.
CONNECTIONS_MAX = 2048

#: From as many bytes of headers on Granian refuses a request, with 431 and no body; it may take up
#: to twice as many before it does, as it looks only when it has filled what it reads into.
HEADER_BYTES_MAX = 128 * 1024

#: Files that a worker may need besides its connections.
FILES_BESIDES = 256

#: Objects made and not gone again, after which the collector of cycles looks at the youngest.
COLLECTION_THRESHOLD = 20_000

#: Seconds between two looks whether the workers answer yet.
READY_POLL = 0.02

#: Seconds that a worker has to stop in before it is asked again.
STOP_REPEATED = 0.5

#: Granian's own messages, errors only, go where all others go.
GRANIAN_LOGGING: dict[str, Any] = {
    "incremental": True,
    "formatters": {},
    "handlers": {},
    "loggers": {"_granian": {"propagate": True}},
}


def threads_for(admission: AdmissionSettings, receiving: ReceivingSettings) -> int:
    """Threads enough for each request to be awaited, to reach the admission and be judged there.

    Granian starts them as requests queue up, and ends those that were idle for 30 s. A worker with
    604 of them started was seen to take some 130 MB more than without.
    """
    running = 2 * admission.reads_running_max + admission.writes_running_max
    waiting = 3 * admission.requests_waiting_max + receiving.bodies_waiting_max
    return running + waiting + THREADS_REFUSING


def connections_for_files() -> int:
    """How many connections the limit of open files leaves room for; raises it where it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_MAX + FILES_BESIDES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(soft - FILES_BESIDES, soft // 2)
    return CONNECTIONS_MAX


def run(
    address: Address,
    source: ConfigurationSource,
    *,
    workers: int,
    threads: int,
    client_seconds_max: float,
    pinned: bool,
    tls: Tls | None,
    announce: Callable[[], None],
) -> None:
    """Serve until told to stop, starting workers again that end.

    Args:
        threads: of each worker, for requests.
        client_seconds_max: for the headers of a request, and between two requests.
        pinned: each worker stays on one processor.
        tls: with what to serve HTTPS; None: serve HTTP.

    Raises:
        CommandFailed: no worker can start (WORKERS).
    """
    server = Server(
        "berth",
        announce=announce,
        address=address.host,
        port=address.port,
        interface=Interfaces.WSGI,
        http=HTTPModes.http1,
        websockets=False,
        workers=workers,
        blocking_threads=threads,
        backpressure=connections_for_files(),
        http1_settings=HTTP1Settings(
            header_read_timeout=round(client_seconds_max * 1000), max_buffer_size=HEADER_BYTES_MAX
        ),
        # Granian's own choices stand for the rest. Of a do-nothing application, one worker gave 39
        # thousand answers a second to 16 and to 64 clients; with the "mt" runtime, 17 to 38.
        ssl_cert=tls and tls.cert,
        ssl_key=tls and tls.key,
        ssl_protocol_min=SSLProtocols.tls12,
        log_level=LogLevels.error,
        log_dictconfig=GRANIAN_LOGGING,
        process_name=None,
    )
    os.register_at_fork(after_in_child=leave_signals_to_the_parent)
    try:
        server.serve(
            target_loader=functools.partial(
                load_worker, source, os.getpid(), workers if pinned else None, address.port
            ),
            wrap_loader=False,
        )
    except SystemExit as error:
        if server.interrupt_signal:
            return
        raise CommandFailed(
            "no worker can start; the log above says why", ExitCode.WORKERS
        ) from error


def leave_signals_to_the_parent() -> None:
    """In a worker just forked: SIGTERM ends it, and nothing else is its business.

    Granian sets a handler for SIGTERM once the application is loaded. Until then a worker would run
    its parent's, live on, and the parent would wait for it for ever. Ctrl-C reaches the workers
    too; together with the parent's SIGTERM it can leave Granian's shutdown hanging, so it is
    blocked.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def load_worker(
    source: ConfigurationSource, parent: int, pinned: int | None, port: int, worker: int
) -> WSGIApplication:
    """In a worker: read the configuration and build its application, or end saying why.

    Args:
        pinned: how many workers there are to be spread over the processors; None: leave that to
            the kernel.
        port: at which it serves.
        worker: its number, from 0.
    """
    if pinned is not None:
        affinity.pin(worker, pinned, parent)
    end_with_parent(parent)
    try:
        conf = source.load()
        deploy.set_up_logging(conf)
        # The parent has compared the sums of usage, for all workers and those that replace them.
        application = deploy.load_application(conf, recount=False)
        slow_clients = SlowClients(read_settings(conf).receiving.client_seconds_max)
    except (BerthError, ConfigurationError) as error:
        LOG.error("A worker cannot start: %s", error)
        sys.exit(ExitCode.WORKERS)
    slow_clients.watch(port, connections_for_files())
    spare_collections()
    return for_granian(application, slow_clients)


def load_and_note(
    load: Callable[[int], WSGIApplication], has_served: MutableSequence[int], worker: int
) -> WSGIApplication:
    """In a worker: load its application, and let the parent know that it could."""
    application = load(worker)
    has_served[worker] = 1
    return application


def spare_collections() -> None:
    """Let the collector of cycles look less often, and never at what stands by now.

    A request leaves no cycles, and makes some hundred objects: with Python's own threshold of 700
    each third of them paid for a look. PERF bench, flat: a tenth of a small answer's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTION_THRESHOLD)


class Server(MPServer):
    """Granian's server, which says that it serves once it does, and does not give up on workers.

    Granian itself ends the service, workers that serve with it, when one ends twice within 5.5 s.
    """

    def __init__(self, target: str, *, announce: Callable[[], None], **options: Any) -> None:
        super().__init__(target, **options)
        self._announce = announce
        self._is_announced = False
        self._revival = Revival(self.workers, now=time.monotonic())
        #: For each worker 1 from when it has all that it needs to serve; written by the worker.
        self._has_served = multiprocessing.Array("b", self.workers, lock=False)
        # Granian clears its event after it has looked what there is to do: what comes in between
        # is still to be done.
        self.main_loop_interrupt = Wakeup(
            lambda: self.interrupt_signal or bool(self.interrupt_children)
        )

    def _serve_loop(self, spawn_target: Any, target_loader: Any) -> None:
        """Announce the service when the first worker answers, and start again those that end."""
        while True:
            pause = self._revival.pause(now=time.monotonic())
            self.main_loop_interrupt.wait(pause if self._is_announced else READY_POLL)
            if self.interrupt_signal:
                return
            self.main_loop_interrupt.clear()
            if self.reload_signal:
                self._reload(spawn_target, target_loader)  # type: ignore[no-untyped-call]
            while self.interrupt_children:
                self._note_end(self.interrupt_children.pop())
            if due := self._revival.due(now=time.monotonic()):
                self._respawn_workers(due, spawn_target, target_loader)
            if not self._is_announced and self._answers():
                self._is_announced = True
                self._announce()

    def _note_end(self, number: int) -> None:
        """Take note of a worker that has ended by itself; end the service if none can start."""
        worker: Any = self.wrks[number]  # without types in Granian
        code: int = worker.inner.exitcode
        pause = self._revival.ended(
            number,
            had_served=bool(self._has_served[number]),
            for_good=code == ExitCode.WORKERS,
            now=time.monotonic(),
        )
        serving = {one for one, has_served in enumerate(self._has_served) if has_served}
        if self._revival.is_hopeless(serving):
            self.shutdown(ExitCode.WORKERS)
        LOG.warning(
            "Worker %d has ended (%s); it is started again %s",
            number + 1,
            f"signal {-code}" if code < 0 else f"exit code {code}",
            f"in {pause:g} s" if pause else "at once",
        )

    def _answers(self) -> bool:
        try:
            socket.create_connection((self.bind_addr, self.bind_port)).close()
        except ConnectionRefusedError:
            return False
        return True

    def shutdown(self, exit_code: int = 0) -> None:
        """Stop the workers, and say so first."""
        service_manager.tell_stopping()
        super().shutdown(exit_code)  # type: ignore[no-untyped-call]

    # As MPServer has it, which is not as its own base class says.
    def _spawn_worker(self, idx: int, target: Any, callback_loader: Any) -> Any:  # type: ignore[override]
        """Start a worker, which is told its number."""
        self._has_served[idx] = 0
        self._revival.begun(idx, now=time.monotonic())
        loader = functools.partial(load_and_note, callback_loader, self._has_served, idx)
        return super()._spawn_worker(idx, target, loader)

    def _stop_workers(self) -> None:
        """Ask the workers to stop, again and again until they begin to; end those that never would.

        RACE tests/e2e/test_serve.py: a worker that is just about to serve can lose the first
        request, and its parent would wait for ever. One that drains has let go of its address; it
        is not asked again, because Granian would hold the interpreter up until it has stopped, and
        what is under way with it.
        """
        workers: list[Any] = self.wrks  # without types in Granian
        asked: set[int] = set()
        deadline = time.monotonic() + STOP_S_MAX
        while left := [worker for worker in workers if worker.is_alive()]:
            is_late = time.monotonic() >= deadline
            for worker in left:
                if is_late:
                    LOG.warning("A worker is ended that has not stopped in %d s.", STOP_S_MAX)
                    worker.kill()
                elif worker.idx not in asked or listens(worker.inner.pid, self.bind_port):
                    asked.add(worker.idx)
                    worker.terminate()
            left[0].join(STOP_REPEATED)
        super()._stop_workers()  # type: ignore[no-untyped-call]
