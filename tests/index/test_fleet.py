# SPDX-License-Identifier: Apache-2.0
"""The fleet and its readers: a snapshot stays as it is while the next one is made."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence

import numpy as np
import pytest

from berth.index.block import Tree
from berth.index.fleet import Fleet
from berth.index.shape import Shape
from berth.index.snapshot import Snapshot
from berth.index.summary_text import tree_texts
from berth.index.totals import ClassTotals, Totals, totals_of
from berth.model.ids import ClassId, ProviderId, TraitId
from berth.store.index_feed import FleetRows, ProviderState
from tests.index.rows import TIME, inventory_row, provider_row

VCPU = ClassId(0)
TRAIT = TraitId(1)
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


@pytest.mark.parametrize(
    ("classes", "traits", "kept"),
    [
        ({"VCPU": VCPU}, {"CUSTOM_T": TRAIT}, [True, True]),
        ({"VCPU": VCPU, "DISK_GB": ClassId(2)}, {"CUSTOM_T": TRAIT}, [True, True]),
        ({"VCPU": VCPU}, {"CUSTOM_NEW": TRAIT}, [True, False]),
        ({"VCPU": VCPU}, {}, [True, False]),
        ({"CUSTOM_NEW": VCPU}, {"CUSTOM_T": TRAIT}, [False, False]),
    ],
)
def test_a_text_ends_when_a_name_in_it_changes(
    classes: dict[str, ClassId], traits: dict[str, TraitId], kept: list[bool]
) -> None:
    """A renamed or deleted name drops the texts of the trees that have it, and no others; a reader
    of an older snapshot cannot store a text for later ones."""
    other = ProviderId(2)
    rows = rows_of((HOST, "host", None, HOST), (other, "other", None, other))
    rows.traits.append((other, TRAIT))
    fleet = Fleet(class_ids={"VCPU": VCPU}, trait_ids={"CUSTOM_T": TRAIT})
    fleet.replace([], fleet.trees_from(rows))
    before = fleet.snapshot()
    describe(before)
    fleet.set_names(classes, traits)
    now = fleet.snapshot()
    assert [text is not None for text in texts_of(now)] == kept
    for _, block in now.occupied():
        template = now.memory.get_for(block.shape, now.names)
        assert (template is not None) == (now.names is before.names)
    describe(before)
    assert [text is not None for text in texts_of(now)] == kept


def describe(snapshot: Snapshot) -> None:
    """Render every tree, as a reader does, so that the texts are cached."""
    for _, block in snapshot.occupied():
        tree_texts(snapshot, block, np.arange(block.rows))


def texts_of(snapshot: Snapshot) -> list[bytes | None]:
    """The cached texts in the order of the trees' roots."""
    kept = {
        block.provider_ids.item(0, row): block.summaries[row]
        for _, block in snapshot.occupied()
        for row in range(block.rows)
    }
    return [kept[root] for root in sorted(kept)]


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


def test_a_fleet_in_several_blocks_is_added_up_as_one() -> None:
    """Hosts with the same structure have one shape, in any number of blocks."""
    fleet = Fleet(class_ids={"VCPU": VCPU}, trait_ids={}, rows_max=1)
    other = ProviderId(2)
    rows = rows_of((HOST, "host", None, HOST), (other, "other", None, other))
    fleet.replace([], fleet.trees_from(rows))
    fleet.set_states({other: ProviderState(1, TIME, {VCPU: 3})})
    snapshot = fleet.snapshot()
    assert len(list(snapshot.occupied())) == 2
    assert totals_of(snapshot) == Totals(2, 2, shapes=1, classes={VCPU: ClassTotals(16, 3, 2)})


def test_a_fleet_keeps_no_shape_that_nobody_has() -> None:
    """Trees that grow or are deleted leave no shapes behind."""
    fleet = fleet_of((HOST, "host", None, HOST))
    (_, block), *_ = fleet.snapshot().occupied()
    shape = weakref.ref(block.shape)
    del block
    fleet.replace([HOST], [])
    fleet.snapshot()
    gc.collect()
    assert shape() is None
