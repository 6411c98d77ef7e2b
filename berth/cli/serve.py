# SPDX-License-Identifier: Apache-2.0
"""`berth serve`: the service on a socket, with Granian.

The parent process prepares the database, keeps the address and watches over the workers; each
worker reads the configuration again and builds its own application, so nothing of the database is
carried over a fork. Workers listen on one address together (SO_REUSEPORT), and the kernel spreads
connections over them. On SIGTERM a worker stops listening, finishes what it has begun, and ends.
"""

import functools
import gc
import ipaddress
import logging
import os
import resource
import shlex
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from wsgiref.types import WSGIApplication

import click
from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer

import berth
from berth import deploy
from berth.api.auth.keystone import KeystoneUnavailable
from berth.cli import affinity, service_manager
from berth.cli.connections import listens
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed, naming_the_database
from berth.cli.granian_environ import for_granian
from berth.cli.lifeline import STOP_S_MAX, end_with_parent
from berth.cli.metrics_folder import metrics_folder
from berth.cli.options import ConfigurationSource, configured
from berth.cli.slow_clients import SlowClients
from berth.cli.tls import Tls, read_tls
from berth.config import (
    AdmissionSettings,
    ConfigurationError,
    ReceivingSettings,
    Settings,
    read_settings,
)
from berth.model.errors import BerthError

LOG = logging.getLogger(__name__)

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8778

#: Threads of a worker beyond those that run requests or wait for their turn (`api/admission.py`):
#: they tell the others to come back, which takes half a second each.
THREADS_REFUSING = 64

#: Connections that a worker accepts; more wait in the kernel. One takes 11 KB, and Granian closes
#: those that have been idle for `client_seconds_max`. Each has one request at most under way, so
#: this also bounds what can wait unseen in Granian's queue, for a thread to come free.
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


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on, resolved: `host` is numeric."""

    host: str
    port: int
    family: socket.AddressFamily
    scheme: Literal["http", "https"] = "http"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def url(self) -> str:
        """The URL that clients of this address use."""
        host = f"[{self.host}]" if self.family == socket.AF_INET6 else self.host
        return f"{self.scheme}://{host}:{self.port}"


@click.command()
@configured
@click.option(
    "--bind",
    default=f"{DEFAULT_HOST}:{DEFAULT_PORT}",
    show_default=True,
    metavar="HOST:PORT",
    help="Address to listen on; port 0 takes a free one and says which.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Worker processes; all serve the same address and database.",
)
@click.option(
    "--insecure-noauth",
    is_flag=True,
    help="Listen on other than loopback addresses although nobody has to authenticate: everybody "
    "who reaches the address may read and change everything.",
)
@click.option(
    "--tls-cert",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Serve HTTPS with this certificate, in PEM, the whole chain in one file.  [default: "
    "[berth]tls_cert]",
)
@click.option(
    "--tls-key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The certificate's private key, in PEM.  [default: [berth]tls_key]",
)
def serve(
    source: ConfigurationSource,
    bind: str,
    workers: int,
    insecure_noauth: bool,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Serve the placement API.

    With no configuration at all, the database is an SQLite file of this user's, and only this
    machine may connect.
    """
    conf = source.load()
    deploy.set_up_logging(conf)
    settings = read_settings(conf)
    deploy.check_supported(settings)
    deploy.check_policy(conf)
    deploy.check_health(settings)
    # Keystone may start later than we do; callers are told until then.
    with suppress(KeystoneUnavailable):
        deploy.check_keystone(settings)
    deploy.check_credentials(settings)
    tls = read_tls(tls_cert or settings.tls_cert, tls_key or settings.tls_key)
    address = replace(parse_bind(bind), scheme="https" if tls else "http")
    refuse_strangers(address, settings, insecure_noauth=insecure_noauth)
    warn_of_clear_text(address, settings)
    with reserved(address) as held:
        with naming_the_database(settings):
            deploy.open_prepared(settings).dispose()
        banner = describe(held, settings, workers=workers)

        def announce() -> None:
            click.echo(banner)
            service_manager.tell_ready(banner.partition("\n")[0])

        try:
            with metrics_folder():
                run(
                    held,
                    source,
                    workers=workers,
                    threads=threads_for(settings.admission, settings.receiving),
                    client_seconds_max=settings.receiving.client_seconds_max,
                    pinned=settings.pin_workers,
                    tls=tls,
                    announce=announce,
                )
        finally:
            deploy.settle(settings)


def parse_bind(text: str) -> Address:
    """Read `HOST:PORT`, `HOST`, `:PORT` or `[IPV6]:PORT`, and resolve the host.

    Raises:
        CommandFailed: it is none of these (USAGE), or there is no such host (ADDRESS).
    """
    host, port = split_bind(text)
    try:
        family, _, _, _, resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise CommandFailed(
            f"cannot listen on {text}: {host} is not a known host", ExitCode.ADDRESS
        ) from error
    return Address(str(resolved[0]), port, family)


def split_bind(text: str) -> tuple[str, int]:
    """The host and port of a `--bind`, each with its default.

    Raises:
        CommandFailed: it is not HOST:PORT (USAGE).
    """
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        well_formed = bool(bracket) and colon in ("", ":")
    else:
        host, colon, port = text.partition(":")
        well_formed = ":" not in port
    number = port if colon else str(DEFAULT_PORT)
    if not well_formed or not (number.isascii() and number.isdigit()) or int(number) > 65535:
        raise CommandFailed(
            f"--bind {shlex.quote(text)} is not HOST:PORT, as in 127.0.0.1:8778 or [::1]:8778",
            ExitCode.USAGE,
        )
    return host or DEFAULT_HOST, int(number)


def refuse_strangers(address: Address, settings: Settings, *, insecure_noauth: bool) -> None:
    """Refuse to listen to other machines when nobody has to authenticate, unless told to.

    Raises:
        CommandFailed: with the ways out (UNSAFE).
    """
    if settings.auth_strategy == "noauth2" and not address.is_loopback and not insecure_noauth:
        raise CommandFailed(
            f"will not listen on {address.host} with [api]auth_strategy = noauth2, which lets "
            f"everybody do everything: bind to 127.0.0.1 or ::1, or accept that with "
            f"--insecure-noauth",
            ExitCode.UNSAFE,
        )


def warn_of_clear_text(address: Address, settings: Settings) -> None:
    """Say so where passwords or tokens of berth's own would cross a network as they are."""
    secrets = {"http_basic": "passwords", "token": "tokens"}.get(settings.auth_strategy)
    if secrets is not None and not address.is_loopback and address.scheme == "http":
        LOG.warning(
            "Clients send their %s to %s in the clear, for everybody on the way to read: serve "
            "with --tls-cert and --tls-key, or bind to 127.0.0.1 behind a proxy that has TLS",
            secrets,
            address.url,
        )


@contextmanager
def reserved(address: Address) -> Iterator[Address]:
    """Own an address for this process and its workers, choosing a port where it is 0.

    The socket is bound and never listens. It is bound exclusively and opened to sharing only then,
    so a second service, which could otherwise join the address and take half the connections, is
    refused.

    Raises:
        CommandFailed: the address is taken or not this machine's (ADDRESS).
    """
    with socket.socket(address.family, socket.SOCK_STREAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind((address.host, address.port))
        except OSError as error:
            raise CommandFailed(
                f"cannot listen on {address.url}: {(error.strerror or str(error)).lower()}; "
                f"choose another with --bind HOST:PORT (port 0 takes a free one)",
                ExitCode.ADDRESS,
            ) from error
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        yield replace(address, port=holder.getsockname()[1])


def describe(address: Address, settings: Settings, *, workers: int) -> str:
    """What is said at start: where, on what, for whom, and what to try next."""
    read = [*(settings.conf.config_file or ()), *(settings.conf.config_dir or ())]
    who = {
        "noauth2": "noauth2: callers are whoever they say they are"
        + ("" if address.is_loopback else ", FROM ANYWHERE"),
        "keystone": "keystone",
        "http_basic": f"http_basic: the users of {settings.user_file}",
        "token": f"token: the tokens of {settings.token_file}",
    }
    header = {
        "noauth2": "-H 'X-Auth-Token: admin'",
        "keystone": '-H "X-Auth-Token: $TOKEN"',
        "http_basic": "-u USER",
        "token": '-H "Authorization: Bearer $TOKEN"',
    }
    return "\n".join(
        [
            f"berth {berth.__version__} serves {address.url}, "
            f"{workers} worker{'s' if workers > 1 else ''}",
            f"  database        {settings.database.masked_url}",
            f"  authentication  {who[settings.auth_strategy]}",
            f"  configuration   {', '.join(read) or 'no placement.conf; environment and defaults'}",
            f"  try             curl {header[settings.auth_strategy]} "
            f"{address.url}/resource_providers",
        ]
    )


def threads_for(admission: AdmissionSettings, receiving: ReceivingSettings) -> int:
    """Threads enough for each request to be awaited, to reach the admission and be judged there.

    Granian starts them as requests queue up, and ends those that were idle for 30 s. A worker with
    604 of them started was seen to take some 130 MB more than without.
    """
    running = admission.reads_running_max + admission.writes_running_max
    waiting = 2 * admission.requests_waiting_max + receiving.bodies_waiting_max
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
    """Serve until told to stop, replacing workers that die.

    Args:
        threads: of each worker, for requests.
        client_seconds_max: for the headers of a request, and between two requests.
        pinned: each worker stays on one processor.
        tls: with what to serve HTTPS; None: serve HTTP.

    Raises:
        CommandFailed: the workers cannot start, or keep dying (WORKERS).
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
        respawn_failed_workers=True,
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
            "a worker could not start, or kept dying; the log above says why", ExitCode.WORKERS
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
    slow_clients.watch(port)
    spare_collections()
    return for_granian(application, slow_clients)


def spare_collections() -> None:
    """Let the collector of cycles look less often, and never at what stands by now.

    A request leaves no cycles, and makes some hundred objects: with Python's own threshold of 700
    each third of them paid for a look. PERF bench, flat: a tenth of a small answer's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTION_THRESHOLD)


class Server(MPServer):
    """Granian's server, which says that it serves once it does."""

    def __init__(self, target: str, *, announce: Callable[[], None], **options: Any) -> None:
        super().__init__(target, **options)
        self._announce = announce

    def startup(self, spawn_target: Any, target_loader: Any) -> None:
        """Start the workers, and announce the service when the first of them answers."""
        super().startup(spawn_target, target_loader)  # type: ignore[no-untyped-call]
        while not self.main_loop_interrupt.wait(READY_POLL):
            try:
                socket.create_connection((self.bind_addr, self.bind_port)).close()
            except ConnectionRefusedError:
                continue
            self._announce()
            return

    def shutdown(self, exit_code: int = 0) -> None:
        """Stop the workers, and say so first."""
        service_manager.tell_stopping()
        super().shutdown(exit_code)  # type: ignore[no-untyped-call]

    # As MPServer has it, which is not as its own base class says.
    def _spawn_worker(self, idx: int, target: Any, callback_loader: Any) -> Any:  # type: ignore[override]
        """Start a worker, which is told its number."""
        loader = functools.partial(callback_loader, idx)
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
