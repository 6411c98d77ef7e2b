# SPDX-License-Identifier: Apache-2.0
"""The tests' cluster: three nodes with one state, which fail and come back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy.exc import OperationalError

from tests.e2e.serving import wait_until
from tests.engines import need
from tests.servers.galera import Galera
from tests.servers.server import name_in
from tests.servers.statements import run

# The servers of this module are started once, by one of the processes that share the tests.
pytestmark = pytest.mark.xdist_group("cluster of its own")

#: A read that sees every commit that any node has acknowledged before.
_CAUSAL = "SET SESSION wsrep_sync_wait = 1"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Galera]:
    """A cluster that the tests of this module damage, and repair at their end."""
    need("galera")
    with Galera() as cluster:
        yield cluster


@pytest.fixture
def urls(cluster: Galera) -> Iterator[list[str]]:
    """One database through each node, with a table of one row."""
    cluster.wait_until_whole()
    url = cluster.create_database()
    run(url, "CREATE TABLE kept (number INTEGER PRIMARY KEY)", "INSERT INTO kept VALUES (1)")
    for node in cluster.nodes:
        node.administer(_CAUSAL, f"SELECT number FROM `{name_in(url)}`.kept")
    yield cluster.urls(url)
    cluster.drop_database(url)


def numbers(url: str) -> list[int]:
    """The rows of the table, read through a node."""
    rows = run(url, _CAUSAL, "SELECT number FROM kept ORDER BY number")
    return [number for (number,) in rows]


def test_a_write_through_one_node_is_read_through_the_others(
    cluster: Galera, urls: list[str]
) -> None:
    """Through each of the three nodes."""
    assert [node.cluster_size() for node in cluster.nodes] == [3, 3, 3]
    for number, url in enumerate(urls, start=2):
        run(url, f"INSERT INTO kept VALUES ({number})")
    assert [numbers(url) for url in urls] == [[1, 2, 3, 4]] * 3


def test_a_node_that_is_cut_off_refuses_and_catches_up(cluster: Galera, urls: list[str]) -> None:
    """The others continue without it; it has all rows when it is back."""
    alone = cluster.nodes[2]
    alone.isolate()
    run(urls[0], "INSERT INTO kept VALUES (2)")
    wait_until(lambda: not alone.is_primary(), "the node to notice that it is alone")
    with pytest.raises(OperationalError, match="not yet prepared node"):
        run(urls[2], "INSERT INTO kept VALUES (3)")
    assert cluster.nodes[0].cluster_size() == 2
    alone.rejoin()
    cluster.wait_until_whole()
    assert numbers(urls[2]) == [1, 2]


def test_a_lost_majority_comes_back_by_itself(cluster: Galera, urls: list[str]) -> None:
    """The remaining node refuses queries until the killed ones are started again."""
    left, *lost = cluster.nodes
    run(urls[1], "INSERT INTO kept VALUES (2)")
    for node in lost:
        node.kill()
    wait_until(lambda: not left.is_primary(), "the node to notice that it is alone")
    with pytest.raises(OperationalError, match="not yet prepared node"):
        run(urls[0], "INSERT INTO kept VALUES (3)")
    cluster.start()
    assert [numbers(url) for url in urls] == [[1, 2]] * 3


def test_a_lost_cluster_is_bootstrapped_from_who_has_most(cluster: Galera, urls: list[str]) -> None:
    """A node that missed writes is not the one whose state the others get."""
    behind = cluster.nodes[0]
    behind.kill()
    run(urls[1], "INSERT INTO kept VALUES (2)")
    cluster.kill()
    assert cluster.bootstrap() is not behind
    assert [numbers(url) for url in urls] == [[1, 2]] * 3
