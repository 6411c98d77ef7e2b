# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at random: acknowledged writes stay, none is half done, and the service continues."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from tests.client import Client
from tests.e2e.serving import Service, run_berth, serving, wait_until
from tests.proof import audit, fleet
from tests.proof.checker import check
from tests.proof.history import History, Operation, Outcome
from tests.proof.load import under_load
from tests.proof.reach import connections_to_all_workers
from tests.proof.summary import never_happened, summary
from tests.proof.wire import Connection, Lost, NotSent

if TYPE_CHECKING:
    from tests.proof.bounds import Bounds
    from tests.proof.conftest import Ground

#: Workers of the service that is killed, and clients that do not stop meanwhile.
WORKERS = 3
CLIENTS = 12

#: Of so many kills one is of the whole service.
SERVICE_EVERY = 12

#: For no longer than this, in seconds, is nothing acknowledged: a service needs one or two to start
#: again, and the machine may be busy.
SILENCE_S_MAX = 60

#: Kills after which everything that clients may do has been done, and some answers were lost.
ENOUGH_KILLS = 50


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    """After a kill no process listens at its address, and the service can be started there
    again."""
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
    """Workers, and sometimes the whole service, are killed while clients run: the history is that
    of a service without kills, except for lost responses."""
    print(f"seed {bounds.seed}")
    with ExitStack() as stack:
        killer = Killer(ground, random.Random(bounds.seed), stack, bounds.kill_each_s)
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
            killer.strike_often(bounds.rounds)
            killer.settle()
        with audit.fresh_client(ground.conf) as client:
            for connection in connections_to_all_workers(killer.service):
                assert audit.index_differences(connection, client) == [], f"seed {bounds.seed}"
        assert killer.service.terminate() == 0, killer.service.log.read_text()[-4000:]
    print(summary(load.operations))
    lost = sum(1 for operation in load.operations if operation.outcome is Outcome.UNKNOWN)
    silence = longest_silence(load.operations)
    print(f"{lost} writes without an answer, none acknowledged for {silence:.2f} s at most")
    assert silence < SILENCE_S_MAX
    if bounds.rounds >= ENOUGH_KILLS:
        assert lost, "no kill has struck a write under way"
        assert not never_happened(load.operations)
    checked = run_berth(ground.home, "db", "check", "--config-file", str(ground.conf))
    assert checked.returncode == 0, f"seed {bounds.seed}\n{checked.stdout}{checked.stderr}"
    with audit.fresh_client(ground.conf) as client:
        end = audit.last_sight(client, load.operations)
    history = History.ended(begin, load.operations, end)
    history.keep(ground.home / "history.pickle")
    wrong = audit.database_faults(ground.database_url, history)
    assert not wrong, "\n".join([f"seed {bounds.seed}", *wrong[:5]])
    assert not load.surprises, "\n".join([f"seed {bounds.seed}", *load.surprises[:5]])
    verdict = check(history)
    print(f"undecided: {verdict.undecided}")
    assert not verdict.faults, f"seed {bounds.seed}, {ground.home}/history.pickle\n{verdict}"
    assert not verdict.undecided


class Killer:
    """Starts a service, kills parts of it, and starts it again, as a supervisor would."""

    def __init__(
        self, ground: Ground, rng: random.Random, stack: ExitStack, kill_each_s: float
    ) -> None:
        self._kill_each_s = kill_each_s
        self._ground = ground
        self._rng = rng
        self._stack = stack
        self.service = self._started("127.0.0.1:0")

    def strike_often(self, rounds: int) -> None:
        """Kill several times, a worker or the whole service."""
        plan = [number % SERVICE_EVERY == 0 for number in range(rounds)]
        self._rng.shuffle(plan)
        for whole in plan:
            self.strike(whole=whole)

    def strike(self, *, whole: bool) -> None:
        """Kill a worker or the whole service after a random time, and check that it is replaced."""
        time.sleep(self._rng.uniform(0.05, self._kill_each_s))
        if whole:
            os.kill(self.service.process.pid, signal.SIGKILL)
            self.service.process.wait()
            self._start_again()
            return
        wait_until(lambda: len(self.service.workers()) > 0, "a worker")
        before = self.service.workers()
        os.kill(self._rng.choice(sorted(before)), signal.SIGKILL)
        wait_until(lambda: len(self.service.workers() - before) > 0, "a new worker")

    def settle(self) -> None:
        """Wait until the service acknowledges a write again."""
        connection = Connection(self.service.host, self.service.port)

        def is_back() -> bool:
            try:
                return connection.ask("PUT", "/traits/CUSTOM_BACK").status in (201, 204)
            except (NotSent, Lost):
                return False

        wait_until(is_back, "a write to be acknowledged")

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


def longest_silence(operations: Sequence[Operation]) -> float:
    """The longest time in seconds without an acknowledged write."""
    acknowledged = sorted(
        operation.end
        for operation in operations
        if operation.writes and operation.outcome is Outcome.ACCEPTED
    )
    end = max(operation.begin for operation in operations)
    return max(later - one for one, later in pairwise([*acknowledged, end])) / 1e9


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(") ")[2][0] != "Z"
