# SPDX-License-Identifier: Apache-2.0
"""Reshapes while clients claim, with the host or the service killed at random moments.

The tree is wholly of one shape or wholly of the other, everybody holds what he was given, and the
next start finishes the work. `BERTH_FIRE_ROUNDS=200` makes as many kills.
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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from berth.compute.consumers import ConsumerClient
from berth.compute.errors import Conflict, Refused, Unreachable
from berth.compute.service import Service as Placement
from berth.compute.service import provider_path
from tests.compute.stage import consumer_uuid
from tests.compute.under_fire import GPUS, VCPUS, over_http, start
from tests.e2e.serving import Service, serving

ROUNDS = int(os.environ.get("BERTH_FIRE_ROUNDS", "4"))

#: Of so many rounds one kills the service instead of the host.
SERVICE_EVERY = 4

CLIENTS = 6

#: What everybody claims.
WANTED = {"VCPU": 1, "VGPU": 1}

#: For how long a claim is held. A reshape needs the time between two claims on its host.
HELD_S = 0.2

#: A start takes about so long.
START_S = 0.3


class Fire:
    """A service, the host's process, and clients that claim and let go."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        self._home = home
        self._serving = stack.enter_context(ExitStack())
        self.service: Service = self._serving.enter_context(serving(home))
        self.url = self.service.url
        self.placement = Placement(over_http(self.url))
        self.host = stack.enter_context(host_process(self.url))
        self.claims = Counter[str]()
        self._is_over = threading.Event()

    def kill_service(self) -> None:
        """End it as a power cut would, and start it again at its address."""
        os.killpg(self.service.process.pid, signal.SIGKILL)
        self.service.process.wait()
        self._serving.close()
        self.service = self._serving.enter_context(
            serving(self._home, "--bind", f"127.0.0.1:{self.service.port}")
        )

    @contextmanager
    def clients(self) -> Iterator[None]:
        """Clients that do not stop until the end of the block."""
        threads = [
            threading.Thread(target=self._claim_and_let_go, args=(f"guest{number}",))
            for number in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            for thread in threads:
                thread.join()

    def _claim_and_let_go(self, name: str) -> None:
        client = ConsumerClient(Placement(over_http(self.url)), pause=lambda seconds: None)
        consumer = consumer_uuid(name)
        query = ",".join(f"{name}:{amount}" for name, amount in WANTED.items())
        while not self._is_over.is_set():
            try:
                client.delete_allocation_for_instance(None, consumer, force=True)
                found = client.get_allocation_candidates(None, resources=query)
                for candidate in found["allocation_requests"][:1]:
                    client.claim_resources(None, consumer, candidate, "web", name)
                    self.claims["done"] += 1
            except (Conflict, Refused):
                self.claims["refused"] += 1
            except Unreachable:
                self.claims["unreachable"] += 1
            self._is_over.wait(HELD_S)

    def check(self) -> str:
        """The shape that all of the tree has; everybody holds what he claimed, or nothing."""
        for number in range(CLIENTS):
            path = f"/allocations/{consumer_uuid(f'guest{number}')}"
            held = self.placement.get(path)["allocations"]
            amounts: Counter[str] = Counter()
            for part in held.values():
                amounts.update(part["resources"])
            assert not held or amounts == WANTED, held
        children = {name: {"VGPU": count} for name, count in GPUS.items()}
        shapes = {
            "split": {"cn1": {"VCPU": VCPUS}, **children},
            "merge": {"cn1": {"VCPU": VCPUS, "VGPU": sum(GPUS.values())}},
        }
        offered = self._offered()
        (shape,) = (name for name, all_of_it in shapes.items() if offered == all_of_it)
        return shape

    def _offered(self) -> dict[str, dict[str, int]]:
        """What the providers offer, read until it stands still: a killed host's last request may
        still be under way."""
        last: dict[str, dict[str, int]] = {}
        while (offered := self._offered_once()) != last:
            last = offered
        return offered

    def _offered_once(self) -> dict[str, dict[str, int]]:
        offered = {}
        for provider in self.placement.get("/resource_providers")["resource_providers"]:
            path = provider_path(provider["uuid"], "inventories")
            inventories = self.placement.get(path)["inventories"]
            if inventories:
                totals = {name: record["total"] for name, record in inventories.items()}
                offered[provider["name"]] = totals
        return offered


@contextmanager
def host_process(url: str) -> Iterator[subprocess.Popen[str]]:
    """The process of `tests/compute/under_fire.py`."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.compute.under_fire", url],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str]) -> int:
    """The next number that the host's process prints."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the host's process has ended"
    return int(line)


def test_reshapes_under_fire(tmp_path: Path) -> None:
    """Kill after kill."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    killed = Counter[str]()
    with ExitStack() as stack:
        fire = Fire(tmp_path, stack)
        start(fire.url, "merge")
        with fire.clients():
            for number in range(ROUNDS):
                shape = ("split", "merge")[number % 2]
                killed[strike(fire, shape, rng, at_service=number % SERVICE_EVERY == 3)] += 1
                fire.check()
                start(fire.url, shape)
                assert fire.check() == shape
    print(f"{dict(killed)}; {dict(fire.claims)}")
    assert fire.claims["done"] > ROUNDS


def strike(fire: Fire, shape: str, rng: random.Random, *, at_service: bool) -> str:
    """Let the host start, and kill it or the service at some moment; what has become of it."""
    assert fire.host.stdin is not None
    fire.host.stdin.write(f"{shape}\n")
    fire.host.stdin.flush()
    pid = told(fire.host)
    time.sleep(rng.uniform(0, START_S))
    if at_service:
        fire.kill_service()
    else:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    ended = told(fire.host)
    return f"{shape} {'killed' if ended else 'finished'}"
