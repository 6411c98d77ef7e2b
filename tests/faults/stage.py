# SPDX-License-Identifier: Apache-2.0
"""Services on a real database, clients that write continuously, and checks at the end.

The checks are the same for every fault: the history of the clients must be that of a service that
handles one request at a time, the database must be consistent and match the end of the history, and
every worker's index must equal that of a new process.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

from tests.e2e.serving import Service, configured, serving, wait_until
from tests.proof import audit, fleet
from tests.proof.answers import is_told_to_come_back
from tests.proof.checker import check
from tests.proof.history import Begin, History, Operation, Outcome
from tests.proof.load import Load, under_load
from tests.proof.reach import connections_to_all_workers
from tests.proof.summary import summary
from tests.proof.wire import Connection

#: Few enough for the machine to do something else besides.
_CLIENTS: Final = 8
_PAUSE_S: Final = 0.02

#: What is asked of an index, to see whether it answers.
_READ: Final = "/allocation_candidates?resources=VCPU:1&limit=1"

_numbers = count(1)


def _seed() -> int:
    return int(os.environ.get("BERTH_PROOF_SEED", random.SystemRandom().randrange(1_000_000)))


@dataclass(slots=True)
class Stage:
    """Services with their clients, from before the first fault until the checks.

    Args:
        home: a directory of its own.
        url: the database, over a connection that no fault affects.
    """

    home: Path
    url: str
    services: list[Service]
    #: A connection to each worker of each service, in their order.
    workers: list[Connection]
    begin: dict[str, Begin]
    #: What clients ask at random follows from it; `BERTH_PROOF_SEED` chooses it.
    seed: int = field(default_factory=_seed)
    #: What clients have done so far.
    done: Load = field(default_factory=Load)
    #: When faults began, by the clock of the histories.
    struck: list[int] = field(default_factory=list)

    @contextmanager
    def load(self, *, may_be_away: bool = True, late_s: float = 0.0) -> Iterator[None]:
        """Clients of all services for the duration of the block; can be called again.

        Args:
            may_be_away: whether requests may be answered 503.
            late_s: seconds for which a write with an unknown outcome may still take effect.
        """
        first, *others = [(service.host, service.port) for service in self.services]
        with under_load(
            *first,
            self.home,
            seed=self.seed + len(self.done.operations),
            clients=_CLIENTS,
            late_s=late_s,
            pause_s=_PAUSE_S,
            others=others,
            may_be_away=may_be_away,
        ) as load:
            yield
        self.done.operations += load.operations
        self.done.surprises += load.surprises
        self.done.away += load.away

    def strike(self) -> None:
        """Record that a fault begins now."""
        self.struck.append(time.monotonic_ns())

    def wait_until_back(self) -> None:
        """Wait until every worker acknowledges a write, and answers from its index."""
        wait_until_answered(reads, self.workers)
        wait_until_answered(writes, self.workers)

    def judge(self) -> None:
        """Compare acknowledged writes with the database, when all faults are over."""
        done = self.done
        print(f"seed {self.seed}, told to come back {len(done.away)} times")
        print(summary(done.operations))
        with audit.fresh_client(configured(self.home, self.url)) as client:
            end = audit.last_sight(client, done.operations)
            for worker in self.workers:
                assert audit.index_differences(worker, client) == [], self._name()
        history = History.ended(self.begin, done.operations, end)
        history.keep(self.home / "history.pickle")
        assert not done.surprises, "\n".join([self._name(), *done.surprises[:5]])
        wrong = audit.database_faults(self.url, history)
        assert not wrong, "\n".join([self._name(), *wrong[:5]])
        verdict = check(history)
        assert not verdict.faults, f"{self._name()}\n{verdict}"
        assert not verdict.undecided, self._name()

    def seconds_to_recover(self) -> list[float]:
        """From each fault to the end of the first acknowledged write that was sent after it."""
        return [_first_acknowledged(self.done.operations, at) / 1e9 for at in self.struck]

    def _name(self) -> str:
        return f"seed {self.seed}, {self.home}/history.pickle"


@contextmanager
def staged(home: Path, url: str, *ways: str, workers: int = 2) -> Iterator[Stage]:
    """A new fleet in an empty database, and a service for each URL.

    Args:
        url: the database, over a connection that no fault affects.
        ways: the URLs of the services; by default the same.
    """
    with ExitStack() as stack:
        services = []
        for place, way in enumerate(ways or (url,)):
            folder = home / f"service{place}"
            folder.mkdir()
            conf = configured(folder, way)
            arguments = ("--config-file", str(conf), "--workers", str(workers))
            services.append(stack.enter_context(serving(folder, *arguments)))
        reached = [worker for service in services for worker in connections_to_all_workers(service)]
        yield Stage(home, url, services, reached, fleet.build(reached[0]))


def wait_until_answered(ask: Callable[[Connection], bool], workers: Iterable[Connection]) -> None:
    """Wait until each of some workers has answered."""
    for worker in workers:
        wait_until(partial(ask, worker), f"{ask.__name__} to be answered")


def wait_until_refused(ask: Callable[[Connection], bool], workers: Iterable[Connection]) -> None:
    """Wait until each of some workers has answered 503."""
    for worker in workers:
        wait_until(lambda: not ask(worker), f"{ask.__name__} to be refused")  # noqa: B023 - at once


def reads(worker: Connection) -> bool:
    """Whether a worker answers from its index; otherwise it must answer 503 with a time to
    retry."""
    answer = worker.ask("GET", _READ)
    assert answer.status == 200 or is_told_to_come_back(answer), answer
    return answer.status == 200


def writes(worker: Connection) -> bool:
    """Whether a worker acknowledges a write; otherwise it must answer 503 with a time to retry."""
    answer = worker.ask("PUT", f"/traits/CUSTOM_PROBE_{next(_numbers)}")
    assert answer.status == 201 or is_told_to_come_back(answer), answer
    return answer.status == 201


def _first_acknowledged(operations: Sequence[Operation], since: int) -> int:
    return (
        min(
            operation.end
            for operation in operations
            if operation.writes
            and operation.outcome is Outcome.ACCEPTED
            and operation.begin >= since
        )
        - since
    )
