# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.attacks`: what one client can do to a worker, and to the requests of others.

Each attack is made on a service with one worker. Meanwhile another client reads one provider again
and again: the longest of these reads is what others suffer.
"""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from itertools import combinations, islice
from pathlib import Path
from typing import Final

import click
import os_traits
from rich.console import Console
from rich.table import Table

from bench.fleet import Fleet, Provider, child_uuid, flat, host_uuid
from bench.processor import worker_ids
from bench.results import BEFORE, BERTH
from bench.server import RunningServer
from bench.services import serve, write_for

#: Trees of which no two have the same traits, so that each is a shape of its own.
SHAPES: Final = 20_000
CHILDREN: Final = 6
#: What all children have.
COMMON: Final = "HW_CPU_HYPERTHREADING"
PROVIDERS: Final = 140_000

_ANSWER_S_MAX: Final = 300.0
_HEADERS: Final = {
    "X-Auth-Token": "admin",
    "OpenStack-API-Version": "placement latest",
    "Content-Type": "application/json",
}
_HOST: Final = f"/resource_providers/{host_uuid(0)}"
_TRAITS: Final = tuple(name for name in os_traits.get_traits() if name.startswith("HW_CPU_X86_"))


def shapes(size: int) -> Fleet:
    """Trees of a host with children; the set bits of the host's number select their traits."""

    def providers() -> Iterator[Provider]:
        for number in range(size):
            host = host_uuid(number)
            yield Provider(host, f"h{number}", None, {"VCPU": {"total": 8}}, (), ())
            traits = [name for place, name in enumerate(_TRAITS) if number >> place & 1]
            for child in range(CHILDREN):
                name, theirs = f"h{number}_{child}", (COMMON, *traits[child::CHILDREN])
                yield Provider(child_uuid(number, child), name, host, {}, (), theirs)

    return Fleet("shapes", size, providers)


@dataclass(frozen=True, slots=True)
class Found:
    """What one attack did.

    Attributes:
        status: of its answer; 0 where none came in time.
        seconds: until it was answered.
        other_seconds: the longest that the other client waited for one read.
        refused: how many of its reads were not answered 200.
        peak_mib: the most memory that the worker has had since it started.
    """

    status: int
    seconds: float
    other_seconds: float
    refused: int
    peak_mib: float


@dataclass(frozen=True, slots=True)
class Attack:
    """Requests that clients send at once; they disconnect after `gone_after` seconds."""

    name: str
    method: str
    path: str
    body: bytes | None = None
    clients: int = 1
    gone_after: float | None = None


def search(groups: int) -> str:
    """Groups without resources that are all in one subtree, of any of four traits each."""
    suffixes = [f"_{number}" for number in range(groups)]
    wanted = islice(combinations(_TRAITS[:15], 3), groups)
    required = "".join(
        f"&required{suffix}=in:{COMMON},{','.join(names)}"
        for suffix, names in zip(suffixes, wanted, strict=True)
    )
    return (
        f"/allocation_candidates?resources=VCPU:9&limit=1&group_policy=none"
        f"&same_subtree={','.join(suffixes)}{required}"
    )


def empty_lists(mib: int) -> bytes:
    """`[[],[],...]` of `mib` MiB."""
    return b"[" + b"[]," * (mib * 2**20 // 3) + b"[]]"


def one_fault(mib: int) -> bytes:
    """A body of the right shape, with a fault at its end."""
    entry = (
        b'"%08x-0000-4000-8000-000000000000":{"allocations":{"%s":{"resources":{"VCPU":%d}}},'
        b'"project_id":"p","user_id":"u","consumer_generation":null,"consumer_type":"X"}'
    )
    count = mib * 2**20 // (len(entry) + 37)
    host = host_uuid(0).encode()
    return b"{" + b",".join(entry % (n, host, n < count) for n in range(count + 1)) + b"}"


ON_SHAPES: Final = (
    Attack("a search of 40 groups", "GET", search(40)),
    Attack("a search of 63 groups", "GET", search(63)),
    Attack("16 searches of 63 groups, clients gone", "GET", search(63), clients=16, gone_after=0.5),
)
ON_FLAT: Final = (
    Attack("a body of 7 MiB of empty lists", "POST", "/allocations", empty_lists(7)),
    Attack("a body of 63 MiB of empty lists", "POST", "/allocations", empty_lists(63)),
    Attack("a body of 4 MiB with one fault", "POST", "/allocations", one_fault(4)),
    Attack(f"a list of {PROVIDERS:,} providers", "GET", "/resource_providers"),
    Attack(f"8 lists of {PROVIDERS:,} providers", "GET", "/resource_providers", clients=8),
)


def make(server: RunningServer, attack: Attack) -> Found:
    """Run an attack, and observe the service."""
    with onlooker(server) as seen, ThreadPoolExecutor(attack.clients) as pool:
        begin = time.monotonic()
        statuses = list(pool.map(lambda _: send(server, attack), range(attack.clients)))
        seconds = time.monotonic() - begin
        if attack.gone_after is not None:
            # What they have left behind is still there.
            time.sleep(10)
    return Found(
        statuses[0],
        seconds,
        max(waited for waited, _ in seen),
        sum(1 for _, status in seen if status != 200),
        sum(peak_mib(worker) for worker in worker_ids(server.process_id)),
    )


def send(server: RunningServer, attack: Attack) -> int:
    """Send the request, read the whole response, and return its status."""
    timeout = attack.gone_after or _ANSWER_S_MAX
    connection = HTTPConnection("127.0.0.1", server.port, timeout=timeout)
    try:
        connection.request(attack.method, attack.path, attack.body, _HEADERS)
        answer = connection.getresponse()
        while answer.read(2**20):
            pass
        return answer.status
    except (OSError, HTTPException):
        return 0
    finally:
        connection.close()


@contextmanager
def onlooker(server: RunningServer) -> Iterator[list[tuple[float, int]]]:
    """Reads one provider a hundred times a second for the length of the block: seconds and status
    of each read."""
    seen: list[tuple[float, int]] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            begin = time.monotonic()
            status = send(server, Attack("", "GET", _HOST))
            seen.append((time.monotonic() - begin, status))
            time.sleep(0.01)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def peak_mib(process: int) -> float:
    """The peak memory of a process in MiB."""
    match = re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{process}/status").read_text(), re.M)
    assert match is not None, "Linux tells it of every process"
    return int(match[1]) / 1024


def measure(fleet: Fleet, attack: Attack, service: str, before: Path | None, home: Path) -> Found:
    """Attack a service that has just started."""
    url = f"sqlite:///{home}/{service}-{fleet.kind}.sqlite"
    with serve(service, [url], home / service, workers=1, before=before) as server:
        send(server, Attack("", "GET", _HOST))
        return make(server, attack)


@click.command()
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Attack the berth of this checkout too, which has a .venv of its own.",
)
def main(before: Path | None) -> None:
    """Attack berth, and print the effect on it and on other clients."""
    services = [BERTH] if before is None else [BEFORE, BERTH]
    table = Table(
        "attack", "service", "status", "s", "others wait, s", "others refused", "peak, MiB"
    )
    stages: list[tuple[Callable[[int], Fleet], int, tuple[Attack, ...]]] = [
        (shapes, SHAPES, ON_SHAPES),
        (flat, PROVIDERS, ON_FLAT),
    ]
    for make_fleet, size, attacks in stages:
        fleet = make_fleet(size)
        with tempfile.TemporaryDirectory(prefix="berth-attacks-") as name:
            home = Path(name)
            for service in services:
                (home / service).mkdir()
                url = f"sqlite:///{home}/{service}-{fleet.kind}.sqlite"
                write_for(service, url, fleet, home / service, before=before)
            for attack in attacks:
                for service in services:
                    effect = measure(fleet, attack, service, before, home)
                    table.add_row(
                        attack.name,
                        service,
                        str(effect.status or "none"),
                        f"{effect.seconds:.2f}",
                        f"{effect.other_seconds:.3f}",
                        str(effect.refused),
                        f"{effect.peak_mib:.0f}",
                    )
                    Console().print(f"{attack.name}, {service}: {effect}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
