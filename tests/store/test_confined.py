# SPDX-License-Identifier: Apache-2.0
"""Writes that are confined to a host, and providers that move between hosts at the same instant.

Two databases are open, as in two processes. Hosts are `p1` and `p2`, each with a child.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from threading import Event

import pytest

from berth.model.errors import ConcurrentUpdate
from berth.model.own_errors import OutsideHost
from berth.store.confined import ConfinedDatabase
from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from berth.store.leases import delete_lease, put_lease
from berth.store.providers import delete_provider, get_provider
from berth.upkeep import schema
from tests.store.fleet import add_provider, claim, consumer, held, holding, move, provider, restock
from tests.store.together import in_background, race

pytestmark = pytest.mark.engines("sqlite", "postgresql", "mariadb")


@pytest.fixture(autouse=True)
def hosts(db: Database) -> None:
    """Two hosts with a child each."""
    for host, child in ((1, 11), (2, 21)):
        add_provider(db, host, VCPU=8)
        add_provider(db, child, parent=host, PCPU=100)


def confined(db: Database, number: int) -> Database:
    """The database of an agent."""
    return ConfinedDatabase(db, f"p{number}", None)


def test_a_write_is_confined(db: Database) -> None:
    """What it is refused leaves nothing; the refusal names the host and the provider."""
    agent = confined(db, 1)
    claim(agent, holding(1, {11: {"PCPU": 1}}))
    refused = r"bound to the host p1, and provider p21 is in the tree of p2"
    with pytest.raises(OutsideHost, match=refused):
        claim(agent, holding(2, {11: {"PCPU": 1}, 21: {"PCPU": 1}}))
    with pytest.raises(OutsideHost, match=refused):
        restock(agent, 21, PCPU=5)
    claim(db, holding(3, {21: {"PCPU": 1}}))
    with pytest.raises(OutsideHost, match=refused):
        put_lease(agent, consumer(3), 60)
    with pytest.raises(OutsideHost, match=refused):
        delete_lease(agent, consumer(3))
    claim(db, holding(3, {}))
    assert put_lease(agent, consumer(1), 60) is not None
    with pytest.raises(OutsideHost, match=f"bound to the host p1, and provider {provider(21)} is"):
        delete_provider(agent, provider(21))
    with pytest.raises(OutsideHost, match=r"provider p22 is in the tree of p2"):
        add_provider(agent, 22, parent=2)
    with pytest.raises(OutsideHost, match=r"provider p11 is in the tree of p2"):
        move(agent, 11, 2)
    assert held(db, 21) == {}
    assert held(db, 11) == {consumer(1): {"PCPU": 1}}
    assert schema.check(db) == []


def test_a_provider_stays_in_the_tree_until_the_commit(db: Database, other: Database) -> None:
    """A move of it waits for a confined write that is under way, or fails."""
    moved = Event()
    seen: list[Future[None]] = []

    def away() -> None:
        with suppress(ConcurrentUpdate):
            move(other, 11, 2)
        moved.set()

    def unit(tx: Tx) -> None:
        if not seen:
            seen.append(in_background(away))
            assert not moved.wait(0.3)
        tx.usage_changed.add(get_provider(db, provider(11)).id)

    confined(db, 1).write(unit)
    assert moved.wait(30)
    seen[0].result(30)


@pytest.mark.parametrize("turn", range(2))
def test_a_provider_that_moves_counts_for_one_tree(
    db: Database, other: Database, turn: int
) -> None:
    """Of two agents that claim of it at once, the one that succeeds had it."""
    outcome = race(
        lambda: move(other, 11, 2),
        lambda: claim(confined(db, 1), holding(1, {11: {"PCPU": 1}})),
        lambda: claim(confined(other, 2), holding(2, {11: {"PCPU": 1}})),
    )
    root = get_provider(db, provider(11)).root_uuid
    assert root == provider(2 if outcome[0] is None else 1)
    by_second = outcome[2] is None
    assert not by_second or outcome[0] is None
    expected = {consumer(1): outcome[1] is None, consumer(2): by_second}
    assert held(db, 11) == {uuid: {"PCPU": 1} for uuid, claimed in expected.items() if claimed}
    assert schema.check(db) == []
