# SPDX-License-Identifier: Apache-2.0
"""The fleet under its readers: what a held snapshot finds while the next one is made."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence

import pytest

from berth.index.block import Tree
from berth.index.fleet import Fleet
from berth.index.paged_map import Ints, PagedMap
from berth.index.shape import Shape
from berth.model.ids import ClassId, ProviderId
from berth.store.index_feed import FleetRows

VCPU = ClassId(0)
HOST = ProviderId(1)

Provider = tuple[ProviderId, str, ProviderId | None, ProviderId]


def rows_of(*providers: Provider) -> FleetRows:
    """Providers with eight VCPU each."""
    inventories = [(provider[0], VCPU, 8, 1.0, 0, 1, 8, 1) for provider in providers]
    return FleetRows(list(providers), inventories, [], [])


def fleet_of(*providers: Provider) -> Fleet:
    """A fleet of some providers."""
    fleet = Fleet(class_ids={"VCPU": VCPU}, trait_ids={})
    fleet.replace([], fleet.trees_from(rows_of(*providers)))
    return fleet


def test_a_tree_that_changes_its_shape_is_never_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader asks for a host by its uuid just while the host gains a child."""
    fleet = fleet_of((HOST, "host", None, HOST))
    held = fleet.snapshot()
    add = Fleet._add
    found = []

    def meanwhile(self: Fleet, shape: Shape, trees: Sequence[Tree]) -> None:
        found.append(held.locate_uuid("host"))
        add(self, shape, trees)

    monkeypatch.setattr(Fleet, "_add", meanwhile)
    rows = rows_of((HOST, "host", None, HOST), (ProviderId(2), "child", HOST, HOST))
    fleet.replace([HOST], fleet.trees_from(rows))
    assert found == [held.locate(HOST)]
    assert fleet.snapshot().locate_uuid("host") is not None


def test_a_held_snapshot_does_not_take_the_next_owner_of_an_id_for_the_last() -> None:
    """SQLite gives the id of a deleted provider away again."""
    fleet = fleet_of((HOST, "old", None, HOST))
    held = fleet.snapshot()
    fleet.replace([HOST], fleet.trees_from(rows_of((HOST, "new", None, HOST))))
    assert held.locate_uuid("new") is None
    now = fleet.snapshot()
    assert now.locate_uuid("new") is not None
    assert now.locate_uuid("old") is None


def test_a_fleet_keeps_no_shape_that_nobody_has() -> None:
    """Growing, and going altogether, leave nothing behind."""
    fleet = fleet_of((HOST, "host", None, HOST))
    (_, block), *_ = fleet.snapshot().occupied()
    shape = weakref.ref(block.shape)
    del block
    fleet.replace([HOST], [])
    gc.collect()
    assert shape() is None


def test_a_tree_that_comes_or_goes_moves_one_row_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many stand beside it; and a snapshot given out before still finds them all."""
    hosts = [(ProviderId(n), f"host {n}", None, ProviderId(n)) for n in range(1, 1001)]
    fleet = fleet_of(*hosts)
    held = fleet.snapshot()
    placed: list[int] = []
    set_many = PagedMap.set_many

    def counted(self: PagedMap, keys: Ints, values: Ints) -> None:
        placed.append(len(keys))
        set_many(self, keys, values)

    monkeypatch.setattr(PagedMap, "set_many", counted)
    fleet.replace([ProviderId(500)], [])
    assert placed == [1]
    newcomer = (ProviderId(2000), "newcomer", None, ProviderId(2000))
    fleet.replace([ProviderId(2000)], fleet.trees_from(rows_of(newcomer)))
    assert placed == [1, 1]
    for number, uuid, *_ in hosts:
        at = held.locate(number)
        assert at is not None and held.block(at.slot).uuid(at.node, at.row) == uuid
    assert fleet.snapshot().locate_uuid("host 500") is None
    assert fleet.snapshot().locate_uuid("host 1000") is not None
