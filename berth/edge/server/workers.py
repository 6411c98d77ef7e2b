# SPDX-License-Identifier: Apache-2.0
"""The worker processes of `berth serve`, with Granian.

The parent supervises the workers; each worker builds its own application, so no database
connection crosses a fork. All workers listen on the same address (SO_REUSEPORT), and the kernel
distributes connections among them. On SIGTERM a worker stops listening, finishes its requests, and
exits.
"""

from __future__ import annotations

import functools
import gc
import logging
import multiprocessing
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from wsgiref.types import WSGIApplication

from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer

from berth.config import ConfigurationError, Settings
from berth.edge.server.connections import listens
from berth.edge.server.granian_environ import for_granian
from berth.edge.server.revival import Revival
from berth.edge.server.slow_clients import SlowClients
from berth.edge.server.stopping import STOP_S_MAX, Wakeup, end_with_parent
from berth.model.errors import BerthError

LOG = logging.getLogger(__name__)

#: Threads of a worker beyond those that run requests or wait for their turn (`admission.py`):
#: they refuse further requests, which takes half a second each.
THREADS_REFUSING = 64

#: Connections that a worker accepts beside its watchers; more wait in the kernel. One takes
#: 11 KB. Granian closes those that have been idle for `client_seconds_max`; `SlowClients` closes
#: some of them earlier. Each has at most one request in progress, so this also limits how many
#: requests can wait in Granian's queue, where we do not see them, for a free thread.
CONNECTIONS_MAX = 2048

#: Bytes of headers from which Granian refuses a request, with 431 and no body. It checks only when
#: its read buffer is full, so it may accept up to twice as many.
HEADER_BYTES_MAX = 128 * 1024

#: Open files that a worker may need besides its connections.
FILES_BESIDES = 256

#: Net allocations of objects that trigger a garbage collection of the youngest generation.
COLLECTION_THRESHOLD = 20_000

#: The allocator may keep twice as many free bytes.
RELEASED_BYTES = 8 << 20

#: Seconds between two checks whether the workers answer yet.
READY_POLL = 0.02

#: Seconds after which a worker that has not stopped gets another SIGTERM.
STOP_REPEATED = 0.5

#: Granian's own messages, errors only, go to the same log as ours.
GRANIAN_LOGGING: dict[str, Any] = {
    "incremental": True,
    "formatters": {},
    "handlers": {},
    "loggers": {"_granian": {"propagate": True}},
}


#: The exit code of a worker that cannot start, so that its parent does not restart it.
CANNOT_START = 9

#: Builds a worker's application; also returns the seconds to wait for a client.
Load = Callable[[threading.Event], tuple[WSGIApplication, float]]


class NoWorkerStarts(Exception):
    """No worker can start; the log says why."""


def _threads_for(settings: Settings) -> int:
    """Enough threads for every request to reach admission control, its body read.

    Granian starts them as requests queue up, and ends those that were idle for 30 s. A worker with
    604 of them running took about 130 MB more than one without.
    """
    admission = settings.admission
    running = 2 * admission.reads_running_max + admission.writes_running_max
    waiting = 3 * admission.requests_waiting_max + settings.receiving.bodies_waiting_max
    return running + waiting + settings.watchers_max + THREADS_REFUSING


def connections_for_files(wanted: int) -> int:
    """How many connections, at most those wanted, fit within the limit of open files; raises the
    limit if it can, and logs if it stays too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = wanted + FILES_BESIDES
    if soft == resource.RLIM_INFINITY or soft >= files:
        return wanted
    soft = files if hard == resource.RLIM_INFINITY else min(files, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft >= files:
        return wanted
    fitting = max(soft - FILES_BESIDES, soft * 3 // 8)
    LOG.warning(
        "Each worker accepts only %d connections at a time instead of %d, because it may open only "
        "%d files: raise the hard limit of open files to %d (ulimit -Hn, or LimitNOFILE= in a unit "
        "of systemd)",
        *(fitting, wanted, soft, files),
    )
    return fitting


def run(
    load: Load,
    settings: Settings,
    *,
    host: str,
    port: int,
    workers: int,
    tls: tuple[Path, Path] | None,
    announce: Callable[[], None],
    stopping: Callable[[], None],
) -> None:
    """Serve until a signal stops it, restarting workers that exit.

    Args:
        load: called in each worker.
        host: a numeric address.
        tls: the certificate and the key with which to serve HTTPS; None: serve HTTP.
        announce: called once the service answers.
        stopping: called when it begins to stop.

    Raises:
        NoWorkerStarts: no worker can start.
    """
    # The workers, which are forked, read it.
    is_stopping = multiprocessing.Value("b", 0, lock=False)

    def stop() -> None:
        is_stopping.value = 1
        stopping()

    # A watcher keeps its connection.
    connections = connections_for_files(CONNECTIONS_MAX + settings.watchers_max)
    server = Server(
        "berth",
        announce=announce,
        stopping=stop,
        address=host,
        port=port,
        interface=Interfaces.WSGI,
        http=HTTPModes.http1,
        websockets=False,
        workers=workers,
        blocking_threads=_threads_for(settings),
        backpressure=connections,
        http1_settings=HTTP1Settings(
            # It also limits how long a connection is idle.
            header_read_timeout=round(settings.receiving.client_seconds_max * 1000),
            max_buffer_size=HEADER_BYTES_MAX,
        ),
        # Granian's defaults for the rest. With an application that does nothing, one worker gave 39
        # thousand answers a second to 16 and to 64 clients; with the "mt" runtime, 17 to 38.
        ssl_cert=tls and tls[0],
        ssl_key=tls and tls[1],
        ssl_protocol_min=SSLProtocols.tls12,
        log_level=LogLevels.error,
        log_dictconfig=GRANIAN_LOGGING,
        process_name=None,
    )
    os.register_at_fork(after_in_child=leave_signals_to_the_parent)
    try:
        server.serve(
            target_loader=functools.partial(
                load_worker,
                load,
                os.getpid(),
                workers if settings.pin_workers else None,
                port,
                connections,
                lambda: bool(is_stopping.value),
            ),
            wrap_loader=False,
        )
    except SystemExit as error:
        if server.interrupt_signal:
            return
        raise NoWorkerStarts from error


def leave_signals_to_the_parent() -> None:
    """In a worker just forked: let SIGTERM end it, and block SIGINT.

    Granian sets a handler for SIGTERM once the application is loaded. Until then a worker would run
    its parent's handler and survive, and the parent would wait for it for ever. Ctrl-C reaches the
    workers too; together with the parent's SIGTERM it can hang Granian's shutdown.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def load_worker(
    load: Load,
    parent: int,
    pinned: int | None,
    port: int,
    connections: int,
    is_stopping: Callable[[], bool],
    worker: int,
) -> WSGIApplication:
    """In a worker: build its application, or exit and log why.

    Args:
        pinned: the number of workers to distribute over the CPUs; None: do not pin this one.
        port: the port of the service.
        connections: how many a worker accepts.
        is_stopping: whether the service stops.
        worker: its number, from 0.
    """
    if pinned is not None:
        pin(worker, pinned, parent)
    stopping = threading.Event()
    end_with_parent(parent, is_stopping, stopping)
    try:
        application, client_seconds_max = load(stopping)
    except (BerthError, ConfigurationError) as error:
        LOG.error("Worker %d cannot start: %s", worker + 1, error)
        sys.exit(CANNOT_START)
    slow_clients = SlowClients(client_seconds_max)
    slow_clients.watch(port, connections)
    spare_collections()
    keep_freed_memory()
    return for_granian(application, slow_clients)


def spare_collections() -> None:
    """Run the garbage collector less often, and exempt all objects that exist now.

    A request leaves no cycles and makes some hundred objects: with Python's default threshold of
    700, every third one paid for a collection. PERF bench, flat: a tenth of a small answer's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTION_THRESHOLD)


def keep_freed_memory() -> None:
    """Let the allocator keep some megabytes that one piece of an answer leaves for the next one.

    glibc returns free memory to the kernel beyond twice the size of the largest block that it has
    released so far: so it releases one. PERF bench.unlimited: without it, a service with few
    providers gets new pages for each piece of a long answer, which takes longer than filling them.
    """
    bytes(RELEASED_BYTES)


class Server(MPServer):
    """Granian's server, which announces when it serves and keeps restarting workers.

    Granian itself stops the whole service when one worker exits twice within 5.5 s.
    """

    def __init__(
        self,
        target: str,
        *,
        announce: Callable[[], None],
        stopping: Callable[[], None],
        **options: Any,
    ) -> None:
        super().__init__(target, **options)
        self._announce = announce
        self._stopping = stopping
        self._is_announced = False
        self._revival = Revival(self.workers, now=time.monotonic())
        #: For each worker, 1 once it has loaded its application; written by the worker.
        self._has_served = multiprocessing.Array("b", self.workers, lock=False)
        # Granian clears its event after checking for work; work that arrives in between must still
        # wake it.
        self.main_loop_interrupt = Wakeup(
            lambda: self.interrupt_signal or bool(self.interrupt_children)
        )

    def _serve_loop(self, spawn_target: Any, target_loader: Any) -> None:
        """Announce the service when the first worker answers; restart workers that exit."""
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
        """Schedule the restart of a worker that exited; stop the service if none can start."""
        worker: Any = self.wrks[number]  # without types in Granian
        code: int = worker.inner.exitcode
        pause = self._revival.ended(
            number,
            had_served=bool(self._has_served[number]),
            for_good=code == CANNOT_START,
            now=time.monotonic(),
        )
        serving = {number for number, has_served in enumerate(self._has_served) if has_served}
        if self._revival.is_hopeless(serving):
            self.shutdown(CANNOT_START)
        LOG.warning(
            "Worker %d exited (%s); restarting it %s",
            number + 1,
            f"signal {-code}" if code < 0 else f"exit code {code}",
            f"in {pause:g} s" if pause else "now",
        )

    def _answers(self) -> bool:
        try:
            socket.create_connection((self.bind_addr, self.bind_port)).close()
        except ConnectionRefusedError:
            return False
        return True

    def shutdown(self, exit_code: int = 0) -> None:
        """Call `stopping`, then stop the workers."""
        self._stopping()
        super().shutdown(exit_code)  # type: ignore[no-untyped-call]

    # The signature is that of MPServer, which differs from its base class.
    def _spawn_worker(self, idx: int, target: Any, callback_loader: Any) -> Any:  # type: ignore[override]
        """Start a worker and pass it its number."""
        self._has_served[idx] = 0
        self._revival.begun(idx, now=time.monotonic())

        def load() -> WSGIApplication:
            application: WSGIApplication = callback_loader(idx)
            self._has_served[idx] = 1
            return application

        return super()._spawn_worker(idx, target, load)

    def _stop_workers(self) -> None:
        """Send SIGTERM to the workers until each begins to stop; kill those that never do.

        RACE tests/e2e/test_serve.py: a worker that is just about to serve can lose the first
        signal, and its parent would wait for ever. One that has closed its listening socket is
        finishing its requests and gets no second signal, which would block the interpreter, and
        with it those requests, until Granian has stopped.
        """
        workers: list[Any] = self.wrks  # without types in Granian
        asked: set[int] = set()
        deadline = time.monotonic() + STOP_S_MAX
        while left := [worker for worker in workers if worker.is_alive()]:
            is_late = time.monotonic() >= deadline
            for worker in left:
                if is_late:
                    LOG.warning("Killing a worker that has not stopped within %d s", STOP_S_MAX)
                    worker.kill()
                elif worker.idx not in asked or listens(worker.inner.pid, self.bind_port):
                    asked.add(worker.idx)
                    worker.terminate()
            left[0].join(STOP_REPEATED)
        super()._stop_workers()  # type: ignore[no-untyped-call]


def pin(worker: int, workers: int, parent: int) -> None:
    """Pin this process, and all threads that it will start, to one of the CPUs it may use.

    Python runs one thread of a process at a time and switches threads at each call that may block.
    A switch takes about 20 microseconds between two CPUs and 5 on one CPU; a request has ten of
    them. A pinned worker answered twice as many candidates queries of 16 clients.

    Does nothing if there are fewer CPUs than workers, or if the system does not support or allow
    it.

    Args:
        worker: its number, from 0.
        parent: the process id of the parent: services on one machine start at different CPUs.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    processors = sorted(os.sched_getaffinity(0))
    if workers <= len(processors):
        with suppress(OSError):
            os.sched_setaffinity(0, {processors[(parent + worker) % len(processors)]})
