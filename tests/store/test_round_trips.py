# SPDX-License-Identifier: Apache-2.0
"""How often a claim and the read after it wait for a database server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from berth.index import Index
from berth.store.allocations import delete_allocations
from tests.fresh import opened_at
from tests.servers.proxy import proxied
from tests.store.fleet import add_provider, claim, consumer, holding

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
