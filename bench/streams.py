# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.streams`: many streams of changes on one worker, and what a change costs.

A client claims at a steady rate. Every stream must get each claim exactly once; the time of a
change is from the acknowledgement of the claim until the last byte of the event has been read.
Meanwhile another client reads one provider again and again.
"""

from __future__ import annotations

import random
import re
import resource
import select
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from threading import Event, Thread
from typing import Final

import click
import msgspec
from rich.console import Console
from rich.table import Table

from bench.claims import claim_on, new_consumer
from bench.client import Client, UnexpectedStatus
from bench.fleet import CLAIM, flat, host_uuid
from bench.memory import memory_mib
from bench.processor import processor_s, worker_ids
from bench.results import BEFORE, BERTH
from bench.server import RunningServer, serve_berth
from bench.services import write_for

_HOSTS: Final = 1000
_READ: Final = f"/resource_providers/{host_uuid(0)}"
_FLEET: Final = "/berth/v1/fleet?include="
#: Connections are opened so many at a time, so that the worker's queue is never full.
_AT_ONCE: Final = 16
#: Open files beside the streams' sockets.
_FILES_BESIDES: Final = 256
_BUFFER_BYTES: Final = 1 << 18
#: Seconds for which the last changes may be under way.
_LAST_S_MAX: Final = 30.0
_PAUSE_S: Final = 0.02

_COMMITS: Final = re.compile(rb'"change":"usage"[^\n]*?"commits":(\d+)')


class _Header(msgspec.Struct):
    """The first line of a fleet."""

    revision: str


@dataclass(slots=True)
class _Streaming:
    """One stream, and how many claims it has told."""

    socket: socket.socket
    claims: int = 0
    rest: bytes = b""


@dataclass(slots=True)
class Measured:
    """What was measured while claims came at a rate, and while none came."""

    idle_processor: float
    busy_processor: float
    mib_per_stream: float
    #: From the acknowledgement of a claim until a stream had it, for each claim and stream.
    told_s: list[float] = field(default_factory=list)
    #: How long the claims and the reads of others took.
    claims_s: list[float] = field(default_factory=list)
    reads_s: list[float] = field(default_factory=list)
    #: Pieces that came while nothing changed, and claims that a stream missed or got twice.
    idle_pieces: int = 0
    wrong: int = 0


class Streams:
    """The client's end of all streams, read by one thread."""

    def __init__(self, server: RunningServer, count: int) -> None:
        self._server = server
        self._poll = select.epoll()
        self._all: dict[int, _Streaming] = {}
        self.pieces = 0
        #: When the claim of each number was acknowledged, and the delays until it was told.
        self.acknowledged: list[float] = []
        self.told_s: list[float] = []
        with Client(server) as client:
            fleet = client.exchange(client.requests.get(_FLEET))
            revision = msgspec.json.decode(fleet.body.split(b"\n", 1)[0], type=_Header).revision
            self._request = client.requests.get(f"/berth/v1/changes?after={revision}").replace(
                b"Accept: application/json", b"Accept: text/event-stream"
            )
        for number in range(count):
            self._open()
            if number % _AT_ONCE == 0:
                self.read(0.05)

    def _open(self) -> None:
        stream = socket.create_connection(("127.0.0.1", self._server.port))
        stream.sendall(self._request)
        self._all[stream.fileno()] = _Streaming(stream)
        self._poll.register(stream, select.EPOLLIN)

    def read(self, seconds: float) -> None:
        """Read what comes within some seconds."""
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            for descriptor, _ in self._poll.poll(min(left, _PAUSE_S)):
                self._take(self._all[descriptor])

    def _take(self, stream: _Streaming) -> None:
        data = stream.socket.recv(_BUFFER_BYTES)
        if not data:
            raise ConnectionError("a stream has ended")
        now = time.perf_counter()
        self.pieces += 1
        whole, _, stream.rest = (stream.rest + data).rpartition(b"\n\n")
        for commits in _COMMITS.findall(whole):
            for _ in range(int(commits)):
                if stream.claims < len(self.acknowledged):
                    self.told_s.append(max(0.0, now - self.acknowledged[stream.claims]))
                stream.claims += 1

    def wrong(self, claims: int) -> int:
        """How many claims were missed or told twice."""
        return sum(abs(stream.claims - claims) for stream in self._all.values())

    def close(self) -> None:
        """Disconnect all."""
        self._poll.close()
        for stream in self._all.values():
            stream.socket.close()


@contextmanager
def _beside(work: Callable[[Event], None]) -> Iterator[None]:
    """Do some work in a thread until the block ends."""
    is_over = Event()
    thread = Thread(target=work, args=(is_over,))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def measure(server: RunningServer, count: int, rate: float, seconds: float) -> Measured:
    """Open streams on a server, let them rest, and then let claims come."""
    (worker,) = worker_ids(server.process_id)
    before = memory_mib(worker, "Pss")
    streams = Streams(server, count)
    with ExitStack() as stack:
        stack.callback(streams.close)
        streams.read(2.0)
        result = Measured(0.0, 0.0, (memory_mib(worker, "Pss") - before) / count)
        pieces, processor = streams.pieces, processor_s(server)
        streams.read(seconds)
        result.idle_processor = (processor_s(server) - processor) / seconds
        result.idle_pieces = streams.pieces - pieces
        processor = processor_s(server)
        with (
            _beside(lambda is_over: _claim(server, streams, result, rate, is_over)),
            _beside(lambda is_over: _read(server, result, is_over)),
        ):
            streams.read(seconds)
        result.busy_processor = (processor_s(server) - processor) / seconds
        give_up_at = time.perf_counter() + _LAST_S_MAX
        while streams.wrong(len(streams.acknowledged)) and time.perf_counter() < give_up_at:
            streams.read(0.2)
        result.wrong = streams.wrong(len(streams.acknowledged))
        result.told_s = streams.told_s
    return result


def _claim(
    server: RunningServer, streams: Streams, result: Measured, rate: float, is_over: Event
) -> None:
    """Claim at a rate."""
    rng = random.Random("streams")
    with Client(server) as client:
        due = time.perf_counter()
        while not is_over.wait(max(0.0, due - time.perf_counter())):
            due += 1 / rate
            host = host_uuid(rng.randrange(_HOSTS))
            claim = claim_on(client.requests, host, CLAIM, new_consumer(rng), "bench-streams")
            begun = time.perf_counter()
            answer = client.exchange(claim)
            now = time.perf_counter()
            if answer.status != 204:
                raise UnexpectedStatus("PUT", "/allocations", answer.status, answer.body)
            streams.acknowledged.append(now)
            result.claims_s.append(now - begun)


def _read(server: RunningServer, result: Measured, is_over: Event) -> None:
    """Read one provider again and again."""
    with Client(server) as client:
        request = client.requests.get(_READ)
        while not is_over.wait(_PAUSE_S):
            begun = time.perf_counter()
            client.exchange(request)
            result.reads_s.append(time.perf_counter() - begun)


@click.command()
@click.option("--streams", "count", default=1000, show_default=True, help="Number of streams.")
@click.option("--rate", default=10.0, show_default=True, help="Claims a second.")
@click.option("--seconds", default=30.0, show_default=True, help="Seconds of each measurement.")
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Also measure the berth of this checkout, which needs its own .venv.",
)
def main(count: int, rate: float, seconds: float, before: Path | None) -> None:
    """Measure many streams of changes on a service with one worker."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + _FILES_BESIDES), hard))
    table = Table(title=f"{count:,} streams, {rate:g} claims a second")
    for title in (
        *("berth", "idle CPU", "idle pieces", "CPU", "told p50 ms", "told p99 ms", "told max ms"),
        *("claim p50 ms", "claim p99 ms", "read p50 ms", "read p99 ms", "MiB a stream", "wrong"),
    ):
        table.add_column(title)
    for service in (BERTH, *([BEFORE] if before else [])):
        with tempfile.TemporaryDirectory(prefix="berth-bench-") as name:
            directory = Path(name)
            url = f"sqlite:///{directory / 'fleet.db'}"
            (directory / "tables").mkdir()
            write_for(service, url, flat(_HOSTS), directory / "tables", before=before)
            with serve_berth(
                directory,
                workers=1,
                database_url=url,
                extra_configuration=f"[berth]\nwatchers_max = {count}",
                checkout=before if service == BEFORE else None,
            ) as server:
                found = measure(server, count, rate, seconds)
        table.add_row(service, *_cells(found))
    Console(width=None if Console().is_terminal else 200).print(table)


def _cells(found: Measured) -> Iterator[str]:
    yield f"{found.idle_processor:.1%}"
    yield f"{found.idle_pieces}"
    yield f"{found.busy_processor:.1%}"
    for times, places in (
        (found.told_s, (49, 98)),
        (found.claims_s, (49, 98)),
        (found.reads_s, (49, 98)),
    ):
        cuts = quantiles(times, n=100)
        yield from (f"{cuts[place] * 1000:.1f}" for place in places)
        if times is found.told_s:
            yield f"{max(times) * 1000:.1f}"
    yield f"{found.mib_per_stream:.3f}"
    yield f"{found.wrong}"


if __name__ == "__main__":
    main()
