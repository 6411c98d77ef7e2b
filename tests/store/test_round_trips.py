# SPDX-License-Identifier: Apache-2.0
"""How often a claim and the read after it wait for a database server, and a transaction that begins
with its first statement."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from berth.index import Index
from berth.model.errors import LostRace
from berth.store.allocations import delete_allocations
from berth.store.confined import ConfinedDatabase
from berth.store.engine.database import Database
from berth.store.engine.prepared import insert_of
from berth.store.engine.tables import projects
from berth.store.engine.transaction import Tx
from tests.fresh import opened_at
from tests.index.checking import checked
from tests.servers.proxy import proxied
from tests.store.fleet import add_provider, claim, consumer, holding, provider

pytestmark = pytest.mark.engines("postgresql", "mariadb")


def test_a_claim_waits_for_the_server_three_times(fresh_url: str) -> None:
    """For the facts, with which its transaction begins; for its writes, which note it in the
    journal; and for its COMMIT. Whoever reads after it asks only how far the writers are."""
    sent: list[bytes] = []

    def note(piece: bytes) -> bool:
        sent.append(piece)
        return False

    def waits(act: Callable[[], object]) -> int:
        sent.clear()
        act()
        return len(sent)

    with proxied(fresh_url) as proxy:
        db = opened_at(proxy.url(fresh_url))
        add_provider(db, 1, VCPU=100)
        index = Index(db)
        for number in (1, 2):  # statements are prepared, and counters begin
            claim(db, holding(number, {1: {"VCPU": 1}}))
            index.snapshot()
        delete_allocations(db, consumer(1))
        index.snapshot()
        proxy.lose_request(note)
        assert waits(lambda: claim(db, holding(3, {1: {"VCPU": 1}}))) == 3
        assert waits(index.snapshot) == 1
        assert waits(lambda: delete_allocations(db, consumer(2))) == 3
        assert waits(index.snapshot) == 1
        db.dispose()


def test_many_open_files_are_in_no_claims_way(db: Database) -> None:
    """`select` would refuse the connections that are opened now."""
    add_provider(db, 1, VCPU=100)
    db.dispose()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    with ExitStack() as files:
        files.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1100):
            files.enter_context(Path("/dev/null").open())
        claim(db, holding(1, {1: {"VCPU": 1}}))
        claim(db, holding(2, {1: {"VCPU": 1}}))


def test_a_refused_first_statement_has_begun_its_transaction(db: Database) -> None:
    """What follows it is rolled back with it, whoever ignores the error."""
    add_provider(db, 1, VCPU=100)

    def unit(tx: Tx) -> None:
        with suppress(DBAPIError):
            tx.rows_once(select(func.nonsense(1)))
        with suppress(DBAPIError):
            tx.change(insert_of(projects, "external_id"), {"external_id": "lost"})
        raise LostRace("anything")

    with pytest.raises(LostRace):
        db.write(unit, attempts=1)
    with db.read() as tx:
        assert tx.rows(select(projects.c.external_id), {}) == []


@pytest.mark.engines("mariadb")
def test_a_confined_release_shows_the_time_that_its_locks_have_written(db: Database) -> None:
    """Two workers show the same of one revision."""
    add_provider(db, 1, VCPU=10)
    claim(db, holding(1, {1: {"VCPU": 1}}))
    index = Index(db)
    index.snapshot()
    time.sleep(1.1)  # a time has whole seconds
    delete_allocations(ConfinedDatabase(db, str(provider(1)), None), consumer(1))
    assert checked(index) == []
