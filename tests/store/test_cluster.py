# SPDX-License-Identifier: Apache-2.0
"""Three nodes of a Galera cluster, all of which write."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING

import pytest

from berth.model.errors import CapacityExceeded, ConsumerGenerationConflict
from berth.model.shown import UNSET
from berth.store.aggregates import aggregate_ids, ensure_aggregates, replace_aggregates
from berth.store.allocations import consumer_allocations, delete_allocations
from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from berth.upkeep import schema
from tests.fresh import opened_at
from tests.sql_reads import get_aggregates, provider_usages
from tests.store.fleet import (
    add_provider,
    aggregate,
    claim,
    consumer,
    generation,
    holding,
    provider,
)
from tests.store.statements import counted_statements
from tests.store.together import together

if TYPE_CHECKING:
    from tests.servers.galera import Galera

pytestmark = pytest.mark.engines("galera")

PROVIDERS = 60
THREADS = 24
TURNS = 40


@pytest.fixture
def nodes(fresh_url: str, galera: Galera) -> Iterator[list[Database]]:
    """The test's database, opened through each node."""
    databases = [opened_at(url) for url in galera.urls(fresh_url)]
    yield databases
    for db in databases:
        db.dispose()


def test_nodes_that_refuse_each_other_lose_nothing(nodes: list[Database]) -> None:
    """Groups of claims and releases on a few providers run through all nodes. A transaction that
    the cluster rolls back is run again as a whole, and no client notices."""
    for number in range(PROVIDERS):
        add_provider(nodes[0], number, VCPU=1000, MEMORY_MB=1000, DISK_GB=1000)

    def claims(thread: int) -> list[int]:
        db, rng, mine = nodes[thread % 3], random.Random(thread), list[int]()
        for turn in range(TURNS):
            number = thread * TURNS + turn
            amounts = {"VCPU": 1, "MEMORY_MB": 2, "DISK_GB": 3}
            claim(db, holding(number, {rng.randrange(PROVIDERS): amounts}))
            mine.append(number)
            if len(mine) > 2:
                delete_allocations(db, consumer(mine.pop(0)))
        return mine

    with ThreadPoolExecutor(THREADS) as pool:
        claimed = [number for mine in pool.map(claims, range(THREADS)) for number in mine]
    assert sum(db.retries["busy"] for db in nodes), "no node has refused another"
    for number in range(THREADS * TURNS):
        allocations = consumer_allocations(nodes[number % 3], consumer(number))
        assert (allocations is not None) == (number in claimed)
    assert schema.check(nodes[1]) == []


def test_a_refusal_leaves_nothing_on_any_node(nodes: list[Database]) -> None:
    """The refused write shares its transaction with another, on a new connection.

    MariaDB 10.11.19 replicates what such a connection has rolled back to a savepoint.
    """
    for number in (1, 2):
        add_provider(nodes[0], number, VCPU=8)
    claim(nodes[0], holding(1, {1: {"VCPU": 5}}))
    claim(nodes[1], holding(2, {2: {"VCPU": 5}}))
    nodes[1].dispose()
    with together(nodes[1]) as ask:
        moves = ask(claim, nodes[1], holding(1, {2: {"VCPU": 5}}))
        shrinks = ask(claim, nodes[1], holding(2, {2: {"VCPU": 4}}))
    with pytest.raises(CapacityExceeded):
        moves.result()
    shrinks.result()
    for db in nodes:
        used = [provider_usages(db, provider(number)).usages["VCPU"] for number in (1, 2)]
        assert used == [5, 4]
        assert generation(db, 1) == 2
        assert schema.check(db) == []


def test_who_is_refused_before_anything_is_written_disturbs_nobody(nodes: list[Database]) -> None:
    """The other writes still share one transaction."""
    add_provider(nodes[0], 1, VCPU=8)
    for number in range(3):
        claim(nodes[0], holding(number, {1: {"VCPU": 2}}))
    with counted_statements(nodes[0]) as sent, together(nodes[0]) as ask:
        late = ask(claim, nodes[0], holding(0, {1: {"VCPU": 1}}, seen=7))
        shrinks = [ask(claim, nodes[0], holding(n, {1: {"VCPU": 1}}, seen=1)) for n in (1, 2)]
    with pytest.raises(ConsumerGenerationConflict):
        late.result()
    for shrink in shrinks:
        shrink.result()
    assert provider_usages(nodes[1], provider(1)).usages == {"VCPU": 4}
    assert sum("UPDATE berth_writer" in statement for statement in sent) == 1


def test_what_one_node_has_acknowledged_another_shows(nodes: list[Database]) -> None:
    """A read waits until every earlier commit on any node is applied."""
    add_provider(nodes[0], 1, VCPU=1000)
    for number in range(30):
        claim(nodes[number % 3], holding(number, {1: {"VCPU": 1}}))
        assert consumer_allocations(nodes[(number + 1) % 3], consumer(number)) is not None


def test_an_aggregate_made_through_two_nodes_is_one_row(nodes: list[Database]) -> None:
    """In two spellings. Nodes do not wait for each other's locks: the second to commit starts
    again."""
    # The first write of a process is run twice, and would look as if it had begun again.
    add_provider(nodes[0], 2)
    add_provider(nodes[1], 1)
    spellings = [str(aggregate(1)), aggregate(1).replace("-", "")]
    begun, may_go = Event(), Event()

    def make_slowly(tx: Tx) -> None:
        ensure_aggregates(tx, {aggregate(1): spellings[0]})
        begun.set()
        assert may_go.wait(30)

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(nodes[0].write, make_slowly)
        assert begun.wait(30)
        replace_aggregates(nodes[1], provider(1), spellings[1:], UNSET)
        may_go.set()
        slow.result(30)
    assert get_aggregates(nodes[0], provider(1)).spellings == spellings[1:]
    with nodes[0].read() as tx:
        assert [len(ids) for ids in aggregate_ids(tx, [aggregate(1)]).values()] == [1]
