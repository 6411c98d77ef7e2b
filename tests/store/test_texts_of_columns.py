# SPDX-License-Identifier: Apache-2.0
"""A full load reads columns as texts, on each engine; a server may cut them."""

from __future__ import annotations

import pytest

from berth.index.index import loaded
from berth.store import index_feed
from berth.store.engine.database import Database
from berth.store.engine.transaction import Tx
from tests.index.checking import tree_of
from tests.world_in_store import build_in_store
from tests.worlds import world

FLEET = world(
    "cn1  MEMORY_MB=64  @A\n  numa1  VCPU=40\ncn22  VCPU=8  DISK_GB=1000  HW_CPU_X86_AVX2"
)


def nodes_in(tx: Tx) -> list[object]:
    """The providers that a load gives."""
    blocks = [block for _, block in loaded(tx).snapshot().occupied()]
    return [tree_of(block, row).nodes for block in blocks for row in range(block.rows)]


def test_texts_have_what_the_rows_have(db: Database) -> None:
    """All of them are sound, so no row is read."""
    build_in_store(FLEET, db)
    with db.read() as tx:
        _, part = index_feed.fleet_parts(tx)
        assert part.texts is not None
        rows = part.rows()
        for kind in ("providers", "inventories", "traits", "aggregates"):
            ((count, *texts),) = getattr(part.texts, kind)
            assert count == len(getattr(rows, kind))
            for text in texts if count else ():
                assert text.count("\n" if "\n" in text else ",") == count


@pytest.mark.engines("mariadb")
def test_a_text_that_the_server_cuts_is_not_taken_for_whole(db: Database) -> None:
    """Wherever it cuts: between two values, or in the middle of the last one."""
    build_in_store(FLEET, db)
    with db.read() as tx:
        whole = nodes_in(tx)
        for length in range(4, 140):
            tx.connection.exec_driver_sql(f"SET SESSION group_concat_max_len = {length}")
            assert nodes_in(tx) == whole, length
