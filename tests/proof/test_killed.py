# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at random: what was acknowledged stays, nothing is half done, and service goes on."""

from __future__ import annotations

import os
import random
import signal
import time
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tests.client import Client
from tests.e2e.serving import Service, run_berth, serving, wait_until
from tests.proof import audit, fleet
from tests.proof.checker import check
from tests.proof.history import History, Operation, Outcome
from tests.proof.load import under_load
from tests.proof.summary import summary
from tests.proof.wire import Connection

if TYPE_CHECKING:
    from tests.proof.bounds import Bounds
    from tests.proof.conftest import Ground

#: Workers of the service that is killed, and clients that do not stop meanwhile.
WORKERS = 3
CLIENTS = 12

#: Of so many kills one is of the whole service.
SERVICE_EVERY = 12


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    """A killed service leaves nobody at its address, and can be started there again."""
    with serving(tmp_path, "--workers", "2") as service:
        workers = service.workers()
        client = Client.at(service.url)
        assert client.get("/").status == 200
        os.kill(service.process.pid, signal.SIGKILL)
        service.process.wait()
        wait_until(lambda: not any(is_alive(pid) for pid in workers), "the workers to end")
        with serving(tmp_path, "--bind", f"127.0.0.1:{service.port}") as again:
            assert Client.at(again.url).get("/").status == 200


def test_nothing_acknowledged_is_lost_and_nothing_is_half_done(
    ground: Ground, bounds: Bounds
) -> None:
    """Workers and now and then the whole service are killed while clients go on: the history is
    one of a service that was never killed, but for answers that did not arrive."""
    print(f"seed {bounds.seed}")
    with ExitStack() as stack:
        killer = Killer(ground, random.Random(bounds.seed), stack)
        service = killer.service
        begin = fleet.build(Connection(service.host, service.port))
        with under_load(
            service.host,
            service.port,
            ground.home,
            seed=bounds.seed,
            late_s=ground.late_s,
            clients=CLIENTS,
            pause_s=0.02,
        ) as load:
            for _ in range(bounds.rounds):
                killer.strike()
            killer.settle()
        assert killer.service.terminate() == 0
    print(summary(load.operations))
    print(recovery(killer.kills, load.operations))
    checked = run_berth(ground.home, "db", "check", "--config-file", str(ground.conf))
    assert checked.returncode == 0, f"seed {bounds.seed}\n{checked.stdout}{checked.stderr}"
    with audit.fresh_client(ground.conf) as client:
        end = audit.last_sight(client, load.operations)
    history = History.ended(begin, load.operations, end)
    history.keep(ground.home / "history.pickle")
    assert audit.database_faults(ground.database_url, history) == [], f"seed {bounds.seed}"
    assert not load.surprises, "\n".join([f"seed {bounds.seed}", *load.surprises[:5]])
    verdict = check(history)
    print(f"undecided: {verdict.undecided}")
    assert not verdict.faults, f"seed {bounds.seed}, {ground.home}/history.pickle\n{verdict}"


class Killer:
    """Starts a service, kills parts of it, and starts it again, as a supervisor would."""

    def __init__(self, ground: Ground, rng: random.Random, stack: ExitStack) -> None:
        #: When each kill was, on the clock of the histories.
        self.kills: list[int] = []
        self._ground = ground
        self._rng = rng
        self._stack = stack
        #: The worker that came last: Granian gives up on one that dies twice in five seconds.
        self._youngest: set[int] = set()
        self.service = self._started("127.0.0.1:0")

    def strike(self) -> None:
        """Kill a worker or the whole service after a random while, and see that it is replaced."""
        time.sleep(self._rng.uniform(0.1, 0.5))
        if self._rng.randrange(SERVICE_EVERY) == 0:
            self._kill(self.service.process.pid)
            self.service.process.wait()
            self._start_again()
            return
        before = self.service.workers()
        self._kill(self._rng.choice(sorted(before - self._youngest or before)))
        wait_until(lambda: self._has_ended() or len(self._newer(before)) > 0, "a new worker")
        self._youngest = self._newer(before)
        if self._has_ended():
            self._start_again()

    def settle(self) -> None:
        """Wait until the service answers again."""
        client = Connection(self.service.host, self.service.port)
        assert client.ask("GET", "/").status == 200

    def _kill(self, pid: int) -> None:
        self.kills.append(time.monotonic_ns())
        os.kill(pid, signal.SIGKILL)

    def _newer(self, before: set[int]) -> set[int]:
        return set() if self._has_ended() else self.service.workers() - before

    def _has_ended(self) -> bool:
        return self.service.process.poll() is not None

    def _start_again(self) -> None:
        address = f"{self.service.host}:{self.service.port}"
        deadline = time.monotonic() + 60
        while True:
            try:
                self.service = self._started(address)
                return
            except AssertionError:
                # Its workers have not let the address go yet.
                if time.monotonic() > deadline:
                    raise

    def _started(self, address: str) -> Service:
        self._youngest = set()
        return self._stack.enter_context(
            serving(
                self._ground.home,
                "--config-file",
                str(self._ground.conf),
                "--workers",
                str(WORKERS),
                "--bind",
                address,
            )
        )


def recovery(kills: Sequence[int], operations: Sequence[Operation]) -> str:
    """How long it took from each kill to the next write that was begun and acknowledged after."""
    accepted = sorted(
        (one.begin, one.end) for one in operations if one.writes and one.outcome is Outcome.ACCEPTED
    )
    waits = []
    for kill in kills:
        later = accepted[bisect_left(accepted, (kill, 0)) :]
        waits.append(min((end for _, end in later), default=kill) - kill)
    ms = sorted(wait / 1e6 for wait in waits)
    lost = sum(1 for one in operations if one.outcome is Outcome.UNKNOWN)
    return (
        f"{len(kills)} kills, {lost} writes without an answer; from a kill to the next "
        f"acknowledged write: median {median(ms):.0f} ms, longest {ms[-1]:.0f} ms"
    )


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked about does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(") ")[2][0] != "Z"
