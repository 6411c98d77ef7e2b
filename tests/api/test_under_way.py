# SPDX-License-Identifier: Apache-2.0
"""What a choice sees of the placements that are being claimed (spec/beyond.md 5.4)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from berth.api.under_way import UnderWay, View
from berth.candidates.shared_pools import SharedPools
from berth.index.scenario import with_usage
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId, ProviderId
from tests.candidates.engine import snapshot_of
from tests.worlds import provider_uuid, world

Key = tuple[ProviderId, ClassId]


@pytest.fixture
def fleet(prepared: Path) -> Iterator[Snapshot]:
    """One host."""
    with snapshot_of(world("cn1  VCPU=8(used:1)"), prepared) as snapshot:
        yield snapshot


def key_of(fleet: Snapshot) -> Key:
    """The host's only inventory."""
    at = fleet.locate_uuid(provider_uuid("cn1"))
    assert at is not None
    block = fleet.block(at.block_id)
    (class_id,) = block.columns
    return ProviderId(int(block.provider_ids[at.node, at.row])), class_id


def used(fleet: Snapshot) -> int:
    """What is used of it."""
    (_, block), (_, class_id) = next(fleet.occupied()), key_of(fleet)
    return int(block.columns[class_id].used.item(0, 0))


def test_choices_that_arrive_together_share_a_snapshot(fleet: Snapshot) -> None:
    """The second sees what the first has chosen; a third, later, takes one of its own."""
    under_way, taken = UnderWay(), list[Snapshot]()

    def take() -> Snapshot:
        taken.append(fleet)
        return fleet

    with ExitStack() as stack:
        first, second = (stack.enter_context(under_way.begun()) for _ in range(2))
        with under_way.choosing(first, take) as view:
            assert used(view.ahead) == 1
            under_way.add({key_of(fleet): 2})
        with under_way.choosing(second, take) as view:
            assert (used(view.fleet), used(view.ahead), len(taken)) == (1, 3, 1)
        third = stack.enter_context(under_way.begun())
        with under_way.choosing(third, take) as view:
            assert (used(view.ahead), len(taken)) == (3, 2)


@pytest.mark.parametrize("is_written", [True, False])
def test_a_claim_counts_until_a_snapshot_has_its_outcome(
    fleet: Snapshot, *, is_written: bool
) -> None:
    """Once, whether it was written or failed; a choice that began before may lack it."""
    under_way = UnderWay()
    later = with_usage(fleet, {key_of(fleet): 2}) if is_written else fleet

    def seen(began: int, snapshot: Snapshot) -> View:
        with under_way.choosing(began, lambda: snapshot) as view:
            return view

    with under_way.begun():
        with under_way.begun() as began, under_way.choosing(began, lambda: fleet):
            claiming = under_way.add({key_of(fleet): 2})
        with under_way.begun() as before:
            under_way.end(claiming)
            # It asks for no snapshot if another choice took one since it began.
            with under_way.begun() as after:
                assert used(seen(after, later).ahead) == (3 if is_written else 1)
            assert used(seen(before, later).ahead) == (3 if is_written else 1)


def test_pools_are_shared_where_others_place(fleet: Snapshot) -> None:
    """For a choice alone, a pool would cost more than it saves; a newer snapshot ends them."""
    under_way = UnderWay()
    with under_way.begun() as began, under_way.choosing(began, lambda: fleet) as view:
        assert view.pools is None
        under_way.add({key_of(fleet): 1})
    first, second, third = (
        _pools_in(under_way, snapshot)
        for snapshot in (fleet, fleet, with_usage(fleet, {key_of(fleet): 1}))
    )
    assert first is not None and first is second is not third


def _pools_in(under_way: UnderWay, snapshot: Snapshot) -> SharedPools | None:
    with under_way.begun() as began, under_way.choosing(began, lambda: snapshot) as view:
        return view.pools
