# SPDX-License-Identifier: Apache-2.0
"""Three nodes of a cluster that all write."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from berth.store import schema
from berth.store.allocations import consumer_allocations, delete_allocations
from berth.store.database import Database
from tests.fresh import opened_at
from tests.store.fleet import add_provider, claim, consumer, holding

if TYPE_CHECKING:
    from tests.servers.galera import Galera

pytestmark = pytest.mark.engines("galera")

PROVIDERS = 60
THREADS = 24
TURNS = 40


@pytest.fixture
def nodes(fresh_url: str, galera: Galera) -> Iterator[list[Database]]:
    """The test's database, through each node."""
    databases = [opened_at(url) for url in galera.urls(fresh_url)]
    yield databases
    for db in databases:
        db.dispose()


def test_nodes_that_refuse_each_other_lose_nothing(nodes: list[Database]) -> None:
    """Groups of claims and releases on a few providers through all nodes: what one node takes back
    for another's sake is run again, wholly, and nobody sees it."""
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
        held = [number for mine in pool.map(claims, range(THREADS)) for number in mine]
    assert sum(db.retries["busy"] for db in nodes), "no node has refused another"
    for number in range(THREADS * TURNS):
        found = consumer_allocations(nodes[number % 3], consumer(number))
        assert (found is not None) == (number in held)
    assert schema.check(nodes[1]) == []


def test_what_one_node_has_acknowledged_another_shows(nodes: list[Database]) -> None:
    """Reads wait for what any node has committed before."""
    add_provider(nodes[0], 1, VCPU=1000)
    for number in range(30):
        claim(nodes[number % 3], holding(number, {1: {"VCPU": 1}}))
        assert consumer_allocations(nodes[(number + 1) % 3], consumer(number)) is not None
