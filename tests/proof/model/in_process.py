# SPDX-License-Identifier: Apache-2.0
"""Workers in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, Final, cast

from berth.config import Settings
from berth.edge.app import create_app
from berth.index import Index
from berth.index.block import ROWS_MAX
from berth.index.snapshot import Snapshot
from berth.store.engine.database import Database
from berth.upkeep import schema
from compare.script.step import Step
from tests.client import Client, Response
from tests.effort import SEED
from tests.fresh import opened_at, wipe
from tests.index.checking import checked, trees_of
from tests.proof.model.judge import Judge, Send
from tests.proof.model.plain_model import PlainModel

#: Of so many looks at the database one is `berth db check`.
_CHECK_EVERY: Final = 8

#: Of so many looks at an index one keeps what it has seen, to see that it never changes.
_KEEP_EVERY: Final = 12


class _NewIndex:
    """An index that can be made anew under an application."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.begin()

    def begin(self) -> None:
        self._index = Index(self._database)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)


def worker(settings: Settings, database: Database, index: Index) -> Send:
    """One on a database."""
    transport = Client.of(create_app(settings, database, index)).transport

    def send(step: Step) -> Response:
        headers = list(step.headers.items())
        if step.body is not None:
            headers.append(("content-length", str(len(step.body))))
        return transport.send(step.method, step.path, headers, step.body)

    return send


def always_new(settings: Settings, database: Database) -> Send:
    """One that has just started whenever it is asked."""
    index = _NewIndex(database)
    ask = worker(settings, database, cast("Index", index))

    def send(step: Step) -> Response:
        index.begin()
        return ask(step)

    return send


class Workers:
    """Two workers on one database.

    Args:
        is_tight: two values in a list, three providers in a part, two trees in a block.
    """

    def __init__(self, urls: Sequence[str], settings: Settings, *, is_tight: bool = False) -> None:
        in_list_max = 2 if is_tight else None
        self.databases = [opened_at(url, in_list_max=in_list_max) for url in urls]
        self._settings = settings
        self._is_tight = is_tight
        self._rng = Random(SEED)
        self._fresh = always_new(settings, self.databases[0])
        self.kept: list[tuple[Snapshot, list[object]]] = []

    def judge(self, model: type[PlainModel] = PlainModel) -> Judge:
        """Both workers beside an empty model."""
        return Judge(self.begin(), self._fresh, self.check, model())

    def begin(self) -> Sequence[Send]:
        """Both workers as if just started on an empty database.

        PERF a tenth of the cost of copying a prepared file: its statements stay compiled.
        """
        self.check_kept()
        wipe(self.databases[0])
        self._indexes = [self._index(database) for database in self.databases]
        each = zip(self.databases, self._indexes, strict=True)
        return [worker(self._settings, *one) for one in each]

    def check_kept(self) -> None:
        """A snapshot shows at the end what it showed before."""
        for snapshot, shown in self.kept:
            assert trees_of(snapshot) == shown
        self.kept.clear()

    def _index(self, database: Database) -> Index:
        if not self._is_tight:
            return Index(database, rows_max=ROWS_MAX)
        return Index(database, part_providers=3, rows_max=2)

    def check(self, worker: int) -> Sequence[str]:
        """The faults of a worker's index, and now and then of the database."""
        index = self._indexes[worker]
        if self._rng.randrange(_KEEP_EVERY) == 0:
            snapshot = index.snapshot()
            self.kept.append((snapshot, trees_of(snapshot)))
        faults = checked(index)
        if self._rng.randrange(_CHECK_EVERY) == 0:
            faults += schema.check(self.databases[worker])
        return faults


@contextmanager
def workers_at(
    urls: Sequence[str], settings: Settings, *, is_tight: bool = False
) -> Iterator[Workers]:
    """Two workers, and their end."""
    workers = Workers(urls, settings, is_tight=is_tight)
    yield workers
    workers.check_kept()
    for database in workers.databases:
        database.dispose()
