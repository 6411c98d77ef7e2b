# SPDX-License-Identifier: Apache-2.0
"""Nodes of a cluster fail while clients write through all of them, with a service at each node."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from tests.engines import need
from tests.faults.conftest import Keep
from tests.faults.stage import Stage, reads, staged, wait_until_answered, wait_until_refused, writes
from tests.servers.galera import Galera, GaleraNode


class Loss(NamedTuple):
    """A way to lose a node, and how it comes back."""

    begin: Callable[[GaleraNode], None]
    end: Callable[[GaleraNode], None]


LOSSES = {
    "killed": Loss(GaleraNode.kill, GaleraNode.start),
    "cut off": Loss(GaleraNode.isolate, GaleraNode.rejoin),
    "paused": Loss(GaleraNode.pause, GaleraNode.resume),
}

# The servers of this module are started once, by one of the processes that share the tests.
pytestmark = [pytest.mark.xdist_group("cluster with services"), pytest.mark.thorough]

#: Seconds after which a service gives up a node that does not answer.
SILENCE_S = 3

#: Seconds for which a node that was lost may still do what it had been asked for.
LATE_S = 20.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Galera]:
    """Three nodes."""
    need("galera")
    with Galera(durable=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def stage(cluster: Galera, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A service at each node, all on one database, shared by the tests."""
    home = tmp_path_factory.mktemp("galera")
    url = cluster.create_database()
    ways = [f"{way}?read_timeout={SILENCE_S}" for way in cluster.urls(url)]
    with staged(home, url, *ways, workers=1) as stage:
        yield stage


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_two_nodes_go_on_without_the_third(
    cluster: Galera, stage: Stage, keep: Keep, loss: Loss
) -> None:
    """Its own service answers 503, and serves again when the node is back."""
    node = cluster.nodes[2]
    with stage.load(late_s=LATE_S):
        time.sleep(1)
        loss.begin(node)
        stage.strike()
        *left, lost = stage.workers
        wait_until_answered(writes, left)
        wait_until_refused(reads, [lost])
        wait_until_refused(writes, [lost])
        loss.end(node)
        cluster.wait_until_whole()
        stage.wait_until_back()
        time.sleep(1)
    keep(stage.seconds_to_recover())
    stage.judge()


def test_without_a_majority_nothing_is_written(cluster: Galera, stage: Stage, keep: Keep) -> None:
    """All services answer 503 until the nodes are back."""
    with stage.load(late_s=LATE_S):
        time.sleep(1)
        for node in cluster.nodes[1:]:
            node.kill()
        stage.strike()
        wait_until_refused(writes, stage.workers)
        wait_until_refused(reads, stage.workers)
        cluster.start()
        stage.wait_until_back()
        time.sleep(1)
    keep(stage.seconds_to_recover())
    stage.judge()
