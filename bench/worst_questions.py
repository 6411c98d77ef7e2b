# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.worst_questions`: the costliest questions of each route, 16 at once.

Beside them, other clients read a provider, claim, and ask for a few candidates: what they wait is
what the questions do to others. The questions are asked on hosts of which no two are alike, and on
like hosts. A second part asks all of them again and again, and observes the worker's memory.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException
from itertools import count, cycle
from pathlib import Path
from typing import Any, Final

import click
import os_traits
from rich.console import Console
from rich.table import Table

from bench.bulk import write_fleet
from bench.fleet import Fleet, Provider, aggregate_uuid, child_uuid, consumer_uuid, host_uuid
from bench.processor import worker_ids
from bench.results import quantile
from bench.server import RunningServer, berth_url, serve_berth

Json = dict[str, Any]

DIFFERENT: Final = 1_000
LIKE: Final = 10_000
#: Clients that ask one question at the same time.
CLIENTS: Final = 16
#: Questions that a worker can answer in an hour, if each takes its five seconds.
HOUR: Final = 720
RACKS: Final = 200
ZONES: Final = 8
FLAVORS: Final = 100

_SEARCH_S: Final = 5.0
_EXPLAIN_S: Final = 1.0
_ANSWER_S_MAX: Final = 120.0
_HEADERS: Final = {
    "X-Auth-Token": "admin",
    "OpenStack-API-Version": "placement latest",
    "Content-Type": "application/json",
}
_TRAITS: Final = tuple(name for name in os_traits.get_traits() if name.startswith("HW_CPU_X86_"))
_DEVICES: Final = 4


def hosts(size: int, *, alike: bool) -> Fleet:
    """Trees of seven: a host with disk, two NUMA nodes, and two devices below each of these.

    Args:
        alike: whether all have the same traits; else the set bits of a host's number select them,
            so that each is a shape of its own.
    """

    def providers() -> Iterator[Provider]:
        for number in range(size):
            host = host_uuid(number)
            bits = 1 if alike else number + 1
            traits = [name for place, name in enumerate(_TRAITS) if bits >> place & 1]
            aggregates = aggregate_uuid(number % RACKS), aggregate_uuid(RACKS + number % ZONES)
            disk = {"DISK_GB": {"total": 2000 + number % 100}}
            yield Provider(host, f"h{number}", None, disk, aggregates, tuple(traits))
            for node in range(2):
                amounts = {
                    "VCPU": {"total": 48 + number % 16},
                    "MEMORY_MB": {"total": 262_144 + 1024 * (number % 64)},
                }
                theirs = ("HW_NUMA_ROOT", *traits[node::2])
                numa = child_uuid(number, node)
                yield Provider(numa, f"h{number}_numa{node}", host, amounts, (), theirs)
            for device in range(_DEVICES):
                amounts = {"VGPU": {"total": 8}, "SRIOV_NET_VF": {"total": 16}}
                name, numa = f"h{number}_device{device}", child_uuid(number, device % 2)
                theirs = tuple(traits[device::_DEVICES])
                yield Provider(child_uuid(number, 2 + device), name, numa, amounts, (), theirs)

    return Fleet("like" if alike else "different", size, providers)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the seconds that it may work."""

    name: str
    method: str
    path: str
    body: Json
    seconds: float = _SEARCH_S


def _whole(number: int) -> Json:
    resources = {"VCPU": 1 + number % 16, "MEMORY_MB": 1024 * (1 + number % 8), "DISK_GB": 10}
    return {"groups": {"": {"resources": resources}}}


def _devices(number: int) -> Json:
    """Cores, memory and two kinds of devices below one NUMA node."""
    return {
        "groups": {
            "_C": {"resources": {"VCPU": 1 + number % 8, "MEMORY_MB": 2048}},
            "_G": {"resources": {"VGPU": 1 + number % 3}},
            "_N": {"resources": {"SRIOV_NET_VF": 1}},
        },
        "together": [{"groups": ["_C", "_G", "_N"], "at": "subtree"}],
    }


def _splits(number: int) -> Json:
    resources = {"VCPU": 30 + number % 40, "MEMORY_MB": 4096, "VGPU": 9 + number % 8}
    split = {"VCPU": {"parts": 2}, "VGPU": {"parts": _DEVICES}}
    return {"groups": {"": {"resources": resources, "split": split}}}


def _packed(number: int, groups: int, resource_class: str = "SRIOV_NET_VF") -> Json:
    """Groups of several amounts, any of which may share a provider."""
    return {
        "groups": {
            f"_{group}": {"resources": {resource_class: 1 + (group + number) % 5}}
            for group in range(groups)
        }
    }


def _apart(groups: int) -> Json:
    """More groups that are apart than there are providers for them, with alternatives of traits,
    all in one subtree."""
    several = {
        f"_{group}": {
            "resources": {"VGPU": 1},
            "required": [[_TRAITS[group % 10], _TRAITS[(group + 3) % 10], "HW_NUMA_ROOT"]],
        }
        for group in range(groups)
    }
    names = [*several]
    return {
        "groups": several,
        "apart": [{"groups": names, "at": "provider"}],
        "together": [{"groups": names, "at": "subtree"}],
    }


def _consumers(number: int) -> list[Json]:
    return [
        {
            "uuid": consumer_uuid(1_000_000 + each),
            "project_id": "bench",
            "user_id": "bench",
            "consumer_type": "INSTANCE",
        }
        for each in range(number)
    ]


def _requests(request: Callable[[int], Json], number: int) -> Json:
    return {f"r{each}": request(each) for each in range(number)}


def _place(name: str, request: Json, consumers: int, **more: Any) -> Question:
    body = {"request": request, "consumers": _consumers(consumers), **more}
    return Question(f"place: {name}", "POST", "/berth/v1/place?dry_run=true", body)


def _capacity(name: str, requests: Json, **more: Any) -> Question:
    body = {"requests": requests, **more}
    return Question(f"capacity: {name}", "POST", "/berth/v1/capacity", body)


def _candidates(name: str, request: Json, **more: Any) -> Question:
    body = {"request": request, **more}
    return Question(f"candidates: {name}", "POST", "/berth/v1/candidates", body)


def _explain(name: str, request: Json, **more: Any) -> Question:
    body = {"request": request, **more}
    return Question(f"explain: {name}", "POST", "/berth/v1/explain", body, _EXPLAIN_S)


_PRESERVE: Final = {
    "by": "preserve",
    "preserve": {f"f{number}": 1 for number in range(16)},
    "among": 4096,
}

QUESTIONS: Final = (
    _explain("16 groups apart", _apart(16)),
    _explain("64 groups apart, painted", _apart(64), paint=True, nearest_max=50),
    _candidates("64 groups apart, explained", _apart(64), explain=True),
    _candidates("preserve 16 flavors", _devices(1), order=_PRESERVE),
    _candidates(
        "pack, 10,000 with summaries",
        _packed(0, 3),
        order={"by": "pack"},
        limit=10_000,
        summaries=True,
    ),
    _candidates(
        "10,000 more hosts", _devices(1), what_if={"add_hosts": [{"like": "h1", "count": 10_000}]}
    ),
    _capacity("100 splits", _requests(_splits, 100)),
    _capacity("100 of 12 groups", _requests(partial(_packed, groups=12), 100)),
    _capacity(
        "60 by zone and rack, nothing used",
        _requests(_devices, 60),
        by=["zone", "rack"],
        what_if={"nothing_used": True},
    ),
    _capacity("100, the 1,000 best hosts", _requests(_devices, 100), hosts_max=1_000),
    _capacity(
        "20, 64 other ratios, 10,000 more hosts",
        _requests(_devices, 20),
        what_if={
            "add_hosts": [{"like": f"h{number}", "count": 200} for number in range(50)],
            "allocation_ratio": [
                {"resource_class": "VCPU", "ratio": 1 + number / 100} for number in range(64)
            ],
        },
    ),
    _place("256", _devices(0), 256),
    _place("256 that are split", _splits(0), 256),
    _place("256 within a rack", _devices(7), 256, within="rack"),
    _place("a refusal with its explanation", _packed(0, 16, "VCPU"), 2, within="rack"),
    Question(
        "drains: all hosts",
        "PUT",
        "/berth/v1/drains/all?dry_run=true",
        {"providers": [f"h{number}" for number in range(DIFFERENT)], "reason": "bench"},
    ),
)


class Client:
    """A client that keeps its connection."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S_MAX)

    def ask(self, method: str, path: str, body: Json | None = None) -> tuple[int, bytes, float]:
        """The status and the body of an answer, and how long it took; status 0 without one."""
        begin = time.monotonic()
        try:
            sent = None if body is None else json.dumps(body)
            self._connection.request(method, path, sent, _HEADERS)
            answer = self._connection.getresponse()
            status, read = answer.status, answer.read()
        except (OSError, HTTPException):
            self._connection.close()
            status, read = 0, b""
        return status, read, time.monotonic() - begin


@dataclass(slots=True)
class Small:
    """What other clients waited, by what they asked, and how many answers were no success."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    failed: int = 0

    def quantile_ms(self, kind: str, fraction: float) -> str:
        """A quantile of what was waited for one kind."""
        waited = quantile(sorted(self.seconds.get(kind, ())), fraction)
        return "" if waited is None else f"{1000 * waited:.0f}"


KINDS: Final = ("read", "claim", "candidates")


@contextmanager
def beside(port: int, size: int) -> Iterator[Small]:
    """Small requests for the length of the block, 20 of each kind a second at most."""
    small, ended = Small(), threading.Event()
    consumers = count(int(time.monotonic() * 1e6))

    def claim(number: int) -> tuple[str, str, Json]:
        allocations = {host_uuid(number % size): {"resources": {"DISK_GB": 1}}}
        body = {
            "allocations": allocations,
            "project_id": "bench",
            "user_id": "bench",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        return "PUT", f"/allocations/{consumer_uuid(next(consumers))}", body

    asked: dict[str, Callable[[int], tuple[str, str, Json | None]]] = {
        "read": lambda number: ("GET", f"/resource_providers/{host_uuid(number % size)}", None),
        "claim": claim,
        "candidates": lambda number: (
            "GET",
            f"/allocation_candidates?resources=DISK_GB:{1 + number % 9}&limit=10",
            None,
        ),
    }

    def run(kind: str) -> None:
        client = Client(port)
        for number in count():
            if ended.is_set():
                return
            status, _, seconds = client.ask(*asked[kind](number))
            small.seconds.setdefault(kind, []).append(seconds)
            small.failed += status not in (200, 204)
            time.sleep(0.05)

    threads = [threading.Thread(target=run, args=(kind,)) for kind in KINDS]
    for thread in threads:
        thread.start()
    try:
        yield small
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of a question that was asked by all clients at once."""

    slowest: float
    outcomes: Counter[str]
    small: Small


def ask_at_once(server: RunningServer, question: Question, size: int) -> Asked:
    """Ask a question as many times as there are clients."""

    def ask(_: int) -> tuple[str, float]:
        client = Client(server.port)
        status, body, seconds = client.ask(question.method, question.path, question.body)
        return outcome(status, body), seconds

    with beside(server.port, size) as small, ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(ask, range(CLIENTS)))
    return Asked(
        max(seconds for _, seconds in answers), Counter(each for each, _ in answers), small
    )


def outcome(status: int, body: bytes) -> str:
    """Whether a question was answered as a whole or in part, refused, or something else."""
    if status in (200, 409):
        return "cut" if b'"complete": false' in body or b'"complete":false' in body else "answered"
    return "refused" if status == 503 else f"{status or 'none'}"


def memory_mib(server: RunningServer) -> float:
    """The memory that the workers have now."""
    return sum(_resident_mib(worker) for worker in worker_ids(server.process_id))


def _resident_mib(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    match = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.M)
    assert match is not None, "Linux tells it of every process"
    return int(match[1]) / 1024


def prepare(server: RunningServer) -> None:
    """Give labels to racks and zones, and store the flavors."""
    client = Client(server.port)
    for number in range(RACKS + ZONES):
        key, value = ("rack", number) if number < RACKS else ("zone", number - RACKS)
        path = f"/berth/v1/aggregates/{aggregate_uuid(number)}"
        client.ask("PUT", path, {"labels": {key: f"{key[0]}{value}"}})
    for number in range(FLAVORS):
        request = _devices(number) if number % 2 else _whole(number)
        client.ask("PUT", f"/berth/v1/flavors/f{number}", {"request": request, "expose": True})


def measure(server: RunningServer, fleet: Fleet, questions: Sequence[Question]) -> Table:
    """Ask each question once, by all clients."""
    table = Table(
        "question", "budget, s", "slowest, s", "answered", "cut", "refused", "other",
        "reads p50, p99, ms", "claims", "candidates", "memory, MiB", title=fleet.name,
    )  # fmt: skip
    for question in questions:
        asked = ask_at_once(server, question, fleet.size)
        outcomes = asked.outcomes
        others = outcomes.keys() - {"answered", "cut", "refused"}
        small = asked.small
        table.add_row(
            question.name,
            f"{question.seconds:g}",
            f"{asked.slowest:.1f}",
            *(str(outcomes[name]) for name in ("answered", "cut", "refused")),
            ", ".join(f"{name}: {outcomes[name]}" for name in sorted(others))
            + (f"; small: {small.failed}" if small.failed else ""),
            *(f"{small.quantile_ms(kind, 0.5)}, {small.quantile_ms(kind, 0.99)}" for kind in KINDS),
            f"{memory_mib(server):.0f}",
        )
        Console().print(f"{fleet.name}, {question.name}: {asked.slowest:.1f} s, {dict(outcomes)}")
    return table


def rounds_of(server: RunningServer, questions: Sequence[Question], number: int) -> list[float]:
    """Ask so many questions, two at a time; the memory after each tenth of them."""
    asked = cycle(questions)
    seen = [memory_mib(server)]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(10):
            some = [next(asked) for _ in range(number // 10)]
            clients = [Client(server.port) for _ in some]
            list(
                pool.map(
                    lambda client, each: client.ask(each.method, each.path, each.body)[0],
                    clients,
                    some,
                )
            )
            seen.append(memory_mib(server))
    return seen


@click.command()
@click.option("--only", default="", help="Only questions with this in their name.")
@click.option("--rounds", default=HOUR, help="Questions that are asked to observe the memory.")
@click.option(
    "--rounds-budget", default=0.5, help="The budget of those, in seconds; 5 takes an hour."
)
@click.option("--kind", type=click.Choice(["different", "like", "both"]), default="both")
def main(only: str, rounds: int, rounds_budget: float, kind: str) -> None:
    """Ask the costliest questions, and print what they do to the service and to others."""
    questions = [question for question in QUESTIONS if only in question.name]
    fleets = {"different": hosts(DIFFERENT, alike=False), "like": hosts(LIKE, alike=True)}
    console = Console(width=180)
    for name, fleet in fleets.items():
        if kind not in (name, "both"):
            continue
        with tempfile.TemporaryDirectory(prefix="berth-worst-") as path:
            home = Path(path)
            write_fleet(berth_url(home), fleet)
            with serve_berth(home, workers=1) as server:
                prepare(server)
                console.print(measure(server, fleet, questions))
            budget = f"[berth]\ncandidates_time_budget = {rounds_budget}\n"
            with serve_berth(home, workers=1, extra_configuration=budget) as server:
                Client(server.port).ask("GET", "/berth/v1/fleet")
                seen = rounds_of(server, questions, rounds)
            console.print(
                f"{fleet.name}: memory in MiB before, and after each tenth of {rounds} questions of"
                f" {rounds_budget:g} s: {', '.join(f'{each:.0f}' for each in seen)}"
            )


if __name__ == "__main__":
    main()
