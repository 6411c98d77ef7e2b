# SPDX-License-Identifier: Apache-2.0
"""Two workers on one database: one with a saboteur at its driver, and one that only reads."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy.util import LRUCache

from berth.config import Settings
from berth.index import Index
from berth.model.errors import BerthError
from berth.store.engine.database import Database
from berth.store.engine.opening import DatabaseOptions, open_database
from compare.script.step import Step, request
from tests.index.checking import check_snapshot, checked, used_amounts
from tests.proof.faults.contents import Contents, contents, wrong_sums
from tests.proof.faults.driver import Fault, Saboteur, sabotage
from tests.proof.faults.requests import World
from tests.proof.model.in_process import worker as asking
from tests.proof.model.judge import Send, comparable

#: What a worker writes first, where nothing else is said.
WARM_UP = request("PUT", "/traits/CUSTOM_WARM")


@dataclass(frozen=True, slots=True)
class Play:
    """The world as a file, the settings of its service, and what may be asked."""

    file: Path
    settings: Settings
    world: World


@dataclass(frozen=True)
class Worker:
    """A worker as in a process of its own, with a loaded index."""

    database: Database
    index: Index
    settings: Settings

    @cached_property
    def ask(self) -> Send:
        """Sends a request to its application."""
        return asking(self.settings, self.database, self.index)


@dataclass(frozen=True, slots=True)
class Stage:
    """A copy of the world, and the two workers, which have loaded their indexes."""

    path: Path
    saboteur: Saboteur
    sabotaged: Worker
    other: Worker

    def contents(self) -> Contents:
        """Everything in the database, except the counts of its commits."""
        return contents(self.path)

    def seal(self) -> Contents:
        """Everything in the database: the same until the next commit."""
        return contents(self.path, counters=True)

    def faults(self) -> list[str]:
        """Wrong usages, and differences of either worker's index.

        Each worker knows only the journal and its own writes.
        """
        try:
            seen, due = self.sabotaged.index.snapshot(), self.other.index.snapshot()
            with self.other.database.read() as tx:
                ours = check_snapshot(seen, due, used_amounts(tx))
            return [
                *wrong_sums(self.contents()),
                *(f"this worker's index: {fault}" for fault in ours),
                *(f"another worker's index: {fault}" for fault in checked(self.other.index)),
            ]
        except BerthError as error:
            return [f"an index cannot be read: {error}"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The part of a response that is the same in two runs of a request."""

    status: int
    body: object
    location: str | None

    @property
    def unavailable(self) -> bool:
        """Whether it says that the database is unavailable. Before 1.23 an error has no code."""
        return self.status == 503 and self.body in ("placement.undefined_code", None)

    def __str__(self) -> str:
        return f"{self.status} {str(self.body)[:1000]}"


def send(step: Step, worker: Worker) -> Answer:
    """Send a request to a worker; of an error only status and code are kept."""
    response = worker.ask(step)
    body = comparable(response.json)
    if response.status >= 400:
        body = body["errors"][0].get("code")
    return Answer(response.status, body, response.headers.get("location"))


def broken(stage: Stage, step: Step, nth: int, fault: Fault) -> tuple[Answer, str | None]:
    """The response to a request whose n-th call fails, and that call; None if there are fewer."""
    stage.saboteur.arm(nth, fault)
    answer = send(step, stage.sabotaged)
    stage.saboteur.disarm()
    return answer, stage.saboteur.struck


@contextmanager
def staged(play: Play, *, cold: bool = False) -> Iterator[Stage]:
    """A stage that is deleted afterwards.

    Args:
        cold: the sabotaged worker has not written yet, and has no row in the clock.
    """
    with TemporaryDirectory() as folder:
        path = Path(shutil.copy(play.file, Path(folder) / "berth.db"))
        database = _opened(path)
        saboteur = sabotage(database)
        sabotaged, other = _worker(database, play), _worker(_opened(path), play)
        try:
            if not cold:
                assert send(WARM_UP, sabotaged).status == 201
            yield Stage(path, saboteur, sabotaged, other)
        finally:
            saboteur.disarm()
            sabotaged.database.dispose()
            other.database.dispose()


def _opened(path: Path) -> Database:
    options = DatabaseOptions(synchronous=False)
    database = open_database(f"sqlite:///{path}", options=options, sleep=lambda _seconds: None)
    # PERF half of the time of a case would go into compiling the same statements again.
    database.engine._compiled_cache = _COMPILED
    return database


def _worker(database: Database, play: Play) -> Worker:
    index = Index(database)
    index.snapshot()
    return Worker(database, index, play.settings)


_COMPILED = LRUCache[Any, Any](1000)
