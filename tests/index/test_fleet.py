# SPDX-License-Identifier: Apache-2.0
"""The fleet and its readers: a snapshot stays as it is while the next one is made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from berth.index.block import Tree
from berth.index.fleet import Fleet
from berth.index.shape import Shape
from berth.index.snapshot import Snapshot
from berth.index.texts import tree_texts
from berth.model.ids import ClassId, ProviderId
from berth.store.index_feed import FleetRows
from tests.index.rows import inventory_row, provider_row

VCPU = ClassId(0)
HOST = ProviderId(1)

Provider = tuple[ProviderId, str, ProviderId | None, ProviderId]


def rows_of(*providers: Provider) -> FleetRows:
    """Providers with eight VCPU each."""
    return FleetRows(
        [provider_row(*provider) for provider in providers],
        [inventory_row(provider[0], VCPU) for provider in providers],
        [],
        [],
        [],
    )


def fleet_of(*providers: Provider) -> Fleet:
    """A fleet of these providers."""
    fleet = Fleet(class_ids={"VCPU": VCPU}, trait_ids={})
    fleet.replace([], fleet.trees_from(rows_of(*providers)))
    return fleet


def test_a_tree_that_changes_its_shape_is_never_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers look up a host by its uuid while it gains a child; every one of them finds it."""
    fleet = fleet_of((HOST, "host", None, HOST))
    snapshot = fleet.snapshot()
    add = Fleet._add
    missing = []

    def meanwhile(self: Fleet, shape: Shape, trees: Sequence[Tree]) -> None:
        missing.append(snapshot.locate_uuid("host"))
        add(self, shape, trees)

    monkeypatch.setattr(Fleet, "_add", meanwhile)
    rows = rows_of((HOST, "host", None, HOST), (ProviderId(2), "child", HOST, HOST))
    fleet.replace([HOST], fleet.trees_from(rows))
    assert missing == [snapshot.locate(HOST)]
    assert fleet.snapshot().locate_uuid("host") is not None


def describe(snapshot: Snapshot) -> None:
    """Render every tree, as a reader does, so that the texts are cached."""
    for _, block in snapshot.occupied():
        tree_texts(snapshot, block, np.arange(block.rows))


def test_a_held_snapshot_does_not_take_the_next_owner_of_an_id_for_the_last() -> None:
    """SQLite gives the id of a deleted provider to the next one; the old snapshot does not show
    it."""
    fleet = fleet_of((HOST, "old", None, HOST))
    snapshot = fleet.snapshot()
    fleet.replace([HOST], fleet.trees_from(rows_of((HOST, "new", None, HOST))))
    assert snapshot.locate_uuid("new") is None
    now = fleet.snapshot()
    assert now.locate_uuid("new") is not None
    assert now.locate_uuid("old") is None


def test_a_provider_made_again_under_another_id_is_found_by_its_uuid() -> None:
    """It is deleted and created between two refreshes; each snapshot finds its own."""
    fleet = fleet_of((HOST, "host", None, HOST))
    held, again = fleet.snapshot(), ProviderId(2)
    fleet.replace([HOST, again], fleet.trees_from(rows_of((again, "host", None, again))))
    now = fleet.snapshot()
    assert now.locate_uuid("host") == now.locate(again) is not None
    assert held.locate_uuid("host") == held.locate(HOST) is not None
