# SPDX-License-Identifier: Apache-2.0
"""Several workers on one database, and dozens of clients with requests of all kinds."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.e2e.serving import serving, wait_until
from tests.e2e.test_serve import listeners
from tests.proof import audit, fleet
from tests.proof.checker import check
from tests.proof.history import History
from tests.proof.load import under_load
from tests.proof.reach import connections_to_all_workers
from tests.proof.summary import never_happened, summary
from tests.proof.wire import Connection

if TYPE_CHECKING:
    from tests.proof.bounds import Bounds
    from tests.proof.conftest import Ground

#: Operations after which everything that clients may do has been done.
ENOUGH_OPERATIONS: Final = 15_000


def test_nothing_is_lost_or_doubled_by_several_workers(ground: Ground, bounds: Bounds) -> None:
    """Claims, moves, deletes, inventories, traits, aggregates, trees and reshapes at the same time:
    every response was right at some moment, the database is consistent, and every index matches
    it."""
    print(f"seed {bounds.seed}")
    with ExitStack() as stack:
        services = [
            stack.enter_context(
                serving(
                    own_folder(conf),
                    *("--config-file", str(conf), "--workers", str(bounds.workers)),
                )
            )
            for conf in ground.confs
        ]
        # A service answers once its first worker does: only then do the clients share all of them.
        wait_until(
            lambda: all(listeners(service.port) == bounds.workers for service in services),
            "all workers to serve",
        )
        first, *others = [(service.host, service.port) for service in services]
        begin = fleet.build(Connection(*first))
        with under_load(
            *first,
            ground.home,
            seed=bounds.seed,
            late_s=ground.late_s,
            clients=bounds.clients,
            others=others,
        ) as load:
            time.sleep(bounds.seconds)
            # The kernel deals the connections out, and now and then it leaves one worker with none.
            most = max(bounds.workers - 1, 1) * len(services)
            wait_until(lambda: took_part(ground.database_url) >= most, "writes by most workers")
        with audit.fresh_client(ground.conf) as client:
            end = audit.last_sight(client, load.operations)
            for service in services:
                for connection in connections_to_all_workers(service):
                    assert audit.index_differences(connection, client) == [], bounds.seed
        history = History.ended(begin, load.operations, end)
    history.keep(ground.home / "history.pickle")
    print(summary(load.operations))
    assert not load.surprises, "\n".join([f"seed {bounds.seed}", *load.surprises[:5]])
    assert not never_happened(load.operations) or len(load.operations) < ENOUGH_OPERATIONS
    wrong = audit.database_faults(ground.database_url, history)
    assert not wrong, "\n".join([f"seed {bounds.seed}", *wrong[:5]])
    before = time.monotonic()
    verdict = check(history)
    print(f"checked in {time.monotonic() - before:.1f} s, undecided: {verdict.undecided}")
    assert not verdict.faults, f"seed {bounds.seed}, {ground.home}/history.pickle\n{verdict}"
    assert not verdict.undecided


def own_folder(conf: Path) -> Path:
    """The home directory of a configuration's service."""
    folder = conf.with_suffix("")
    folder.mkdir()
    return folder


def took_part(url: str) -> int:
    """The number of processes with more commits than those of a start."""
    return sum(count > 1 for count in audit.commits_by_writer(url))
