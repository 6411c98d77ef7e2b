# SPDX-License-Identifier: Apache-2.0
"""Reshapes while clients claim, with the host or the service killed at random moments.

The tree is always completely of one structure or the other, every client has what was acknowledged,
and the next start completes the work. `BERTH_FIRE_ROUNDS=200` sets the number of kills, and
`BERTH_FIRE_ENGINES=postgresql,galera` the engines.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from berth.hosts.consumers import ConsumerClient
from berth.hosts.errors import Conflict, NotThere, Refused, Unreachable
from berth.hosts.service import Service as Placement
from berth.hosts.service import provider_path
from tests.e2e.serving import Service, configured, serving
from tests.effort import scaled
from tests.hosts.stage import consumer_uuid
from tests.hosts.under_fire import GPUS, VCPUS, WRITES, over_http, start
from tests.servers.ports import free_port

ROUNDS = int(os.environ.get("BERTH_FIRE_ROUNDS", scaled(4)))
ENGINES = os.environ.get("BERTH_FIRE_ENGINES", "sqlite").split(",")

#: Of so many rounds one kills the service instead of the host.
SERVICE_EVERY = 4

CLIENTS = 6

#: What everybody claims.
WANTED = {"VCPU": 1, "VGPU": 1}

#: For how long a claim is held. A reshape needs the time between two claims on its host.
HELD_S = 0.2

#: A start takes about so long; some are killed at any time of it.
START_S = 0.3

#: A start makes about so many writes, each of about so long; others are killed amid one of them.
WRITES_MAX = 4
WRITE_S = 0.01


class Guest:
    """A client that claims and releases."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.consumer = consumer_uuid(name)
        #: What was acknowledged to him; two where an answer was lost.
        self.may_hold: tuple[Mapping[str, int], ...] = ({},)
        #: Held while he is at it.
        self.lock = threading.Lock()


class Fire:
    """A service, the host's process, and clients that claim and release."""

    def __init__(self, home: Path, database: str, stack: ExitStack) -> None:
        self._home = home
        conf = configured(home, database)
        self._options = ("--config-file", str(conf), "--bind", f"127.0.0.1:{free_port()}")
        self._serving = stack.enter_context(ExitStack())
        self.service: Service = self._serving.enter_context(serving(home, *self._options))
        self.url = self.service.url
        self.placement = Placement(over_http(self.url))
        self.host = stack.enter_context(host_process(self.url))
        self.guests = [Guest(f"guest{number}") for number in range(CLIENTS)]
        self.claims = Counter[str]()
        self._is_over = threading.Event()

    def kill_service(self) -> None:
        """Kill it, and start it again at its address."""
        os.killpg(self.service.process.pid, signal.SIGKILL)
        self.service.process.wait()
        self._serving.close()
        self.service = self._serving.enter_context(serving(self._home, *self._options))

    @contextmanager
    def clients(self) -> Iterator[None]:
        """Clients that run until the end of the block."""
        threads = [
            threading.Thread(target=self._claim_and_let_go, args=(guest,)) for guest in self.guests
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            for thread in threads:
                thread.join()

    def _claim_and_let_go(self, guest: Guest) -> None:
        client = ConsumerClient(Placement(over_http(self.url)), pause=lambda seconds: None)
        while not self._is_over.is_set():
            with guest.lock:
                self._claim_once(client, guest)
            self._is_over.wait(HELD_S)

    def _claim_once(self, client: ConsumerClient, guest: Guest) -> None:
        query = ",".join(f"{name}:{amount}" for name, amount in WANTED.items())
        try:
            guest.may_hold = ({}, *guest.may_hold)
            client.delete_allocation_for_instance(None, guest.consumer, force=True)
            guest.may_hold = ({},)
            candidates = client.get_allocation_candidates(None, resources=query)
            for candidate in candidates["allocation_requests"][:1]:
                guest.may_hold = ({}, WANTED)
                client.claim_resources(None, guest.consumer, candidate, "web", guest.name)
                guest.may_hold = (WANTED,)
                self.claims["done"] += 1
        except (Conflict, Refused):
            self.claims["refused"] += 1
        except Unreachable:
            self.claims["unreachable"] += 1

    def check(self) -> str:
        """Return the structure of the tree, and check that every client has what was
        acknowledged."""
        for guest in self.guests:
            with guest.lock:
                allocations = self.placement.get(f"/allocations/{guest.consumer}")["allocations"]
                amounts: Counter[str] = Counter()
                for part in allocations.values():
                    amounts.update(part["resources"])
                assert amounts in guest.may_hold, (guest.name, allocations)
        children = {name: {"VGPU": count} for name, count in GPUS.items()}
        shapes = {
            "split": {"cn1": {"VCPU": VCPUS}, **children},
            "merge": {"cn1": {"VCPU": VCPUS, "VGPU": sum(GPUS.values())}},
        }
        offered = {name: totals for name, totals in self._tree().items() if totals}
        (shape,) = (name for name, all_of_it in shapes.items() if offered == all_of_it)
        return shape

    def stage(self) -> str:
        """How far a reshape has come."""
        children = [totals for name, totals in self._tree().items() if name in GPUS]
        offering = sum(bool(totals) for totals in children)
        return f"{len(children)} children, {offering} offer something"

    def _tree(self) -> dict[str, dict[str, int]]:
        """The inventory of each provider, read until it stays the same: the last request of a
        killed host may still be running."""
        last: dict[str, dict[str, int]] = {}
        while True:
            with suppress(NotThere):  # that request has just taken a provider away
                if (now := self._tree_once()) == last:
                    return now
                last = now

    def _tree_once(self) -> dict[str, dict[str, int]]:
        tree = {}
        for provider in self.placement.get("/resource_providers")["resource_providers"]:
            path = provider_path(provider["uuid"], "inventories")
            inventories = self.placement.get(path)["inventories"]
            tree[provider["name"]] = {
                name: inventory["total"] for name, inventory in inventories.items()
            }
        return tree


@contextmanager
def host_process(url: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.hosts.under_fire", url],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str]) -> str:
    """The next line that the host's process prints."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the host's process has ended"
    return line.strip()


@pytest.mark.engines(*ENGINES)
def test_reshapes_under_fire(tmp_path: Path, database_url: str) -> None:
    """One kill after another."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    stages = Counter[str]()
    with ExitStack() as stack:
        fire = Fire(tmp_path, database_url, stack)
        start(over_http(fire.url), "merge")
        with fire.clients():
            for number in range(ROUNDS):
                shape = ("split", "merge")[number % 2]
                ended = strike(fire, shape, rng, at_service=number % SERVICE_EVERY == 3)
                fire.check()
                stages[f"{shape} {ended}: {fire.stage()}"] += 1
                start(over_http(fire.url), shape)
                assert fire.check() == shape
    print("\n".join(f"{count:4} {stage}" for stage, count in sorted(stages.items())))
    print(dict(fire.claims))
    assert fire.claims["done"] > ROUNDS


def strike(fire: Fire, shape: str, rng: random.Random, *, at_service: bool) -> str:
    """Start the host, and kill it or the service at some moment; return what happened to it."""
    assert fire.host.stdin is not None
    fire.host.stdin.write(f"{shape}\n")
    fire.host.stdin.flush()
    pid = int(told(fire.host))
    status = ""
    if rng.random() < 0.5:
        time.sleep(rng.uniform(0, START_S))
    else:
        for _ in range(rng.randint(1, WRITES_MAX)):
            status = status or ended(fire.host)
        time.sleep(rng.uniform(0, WRITE_S))
    if at_service:
        fire.kill_service()
    elif not status:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while not status:
        status = ended(fire.host)
    return "finished" if status == "0" else "killed"


def ended(process: subprocess.Popen[str]) -> str:
    """The exit status of the host's start; empty while it continues with a write."""
    line = told(process)
    return "" if line == WRITES else line
