# SPDX-License-Identifier: Apache-2.0
"""Writes that are sure to wait for the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any, Final

import pytest

from berth.store.database import Database
from berth.store.transaction import Tx
from tests.e2e.serving import wait_until

_TIMEOUT_S: Final = 30


@contextmanager
def together(db: Database) -> Iterator[Callable[..., Future[Any]]]:
    """Gives a function that asks for a write in a thread of its own; all that are asked for in the
    block wait for the same transaction."""
    entered, may_go = Event(), Event()

    def holds_the_others_up(tx: Tx) -> None:
        entered.set()
        assert may_go.wait(_TIMEOUT_S)
        raise KeyError  # so that the first COMMIT is that of the others

    with ThreadPoolExecutor(20) as pool:
        first = pool.submit(db.write, holds_the_others_up)
        assert entered.wait(_TIMEOUT_S)
        asked = []

        def ask(act: Callable[..., Any], *args: Any) -> Future[Any]:
            asked.append(pool.submit(act, *args))
            wait_until(lambda: len(db._writes._waiting) >= len(asked), f"{act} to wait")
            return asked[-1]

        try:
            yield ask
        finally:
            may_go.set()
        with pytest.raises(KeyError):
            first.result(_TIMEOUT_S)
