# SPDX-License-Identifier: Apache-2.0
"""Makes writes share one transaction, and lets others race."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Barrier, Event, Thread
from typing import Any, Final

import pytest

from berth.model.errors import BerthError
from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from tests.e2e.serving import wait_until

_TIMEOUT_S: Final = 30


def in_background(act: Callable[..., Any], *args: Any) -> Future[Any]:
    """Call something in a thread of its own. If a write is never settled, the test that waits for
    it fails at a time limit, where an executor would wait for its thread for ever."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(act(*args))
        except BaseException as error:  # noqa: BLE001 - told to whoever asks for the result
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future


@contextmanager
def together(db: Database) -> Iterator[Callable[..., Future[Any]]]:
    """Returns a function that starts a write in a thread of its own; all writes that are started in
    the block wait for the same transaction."""
    entered, may_go = Event(), Event()

    def holds_the_others_up(tx: Tx) -> None:
        entered.set()
        assert may_go.wait(_TIMEOUT_S)
        raise KeyError  # so that the first COMMIT is that of the others

    first = in_background(db.write, holds_the_others_up)
    assert entered.wait(_TIMEOUT_S)
    asked: list[Future[Any]] = []

    def ask(act: Callable[..., Any], *args: Any) -> Future[Any]:
        asked.append(in_background(act, *args))
        wait_until(lambda: len(db._writes._waiting) >= len(asked), f"{act} to wait")
        return asked[-1]

    try:
        yield ask
    finally:
        may_go.set()
        wait(asked, _TIMEOUT_S)
    with pytest.raises(KeyError):
        first.result(_TIMEOUT_S)


def race(*calls: Callable[[], object]) -> list[type[BerthError] | None]:
    """Run the calls at the same time; return the error of each, or None."""
    start = Barrier(len(calls))

    def run(call: Callable[[], object]) -> type[BerthError] | None:
        start.wait(_TIMEOUT_S)
        try:
            call()
        except BerthError as error:
            return type(error)
        return None

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
