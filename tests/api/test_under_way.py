# SPDX-License-Identifier: Apache-2.0
"""What a choice sees of the placements that are being claimed (spec/beyond.md 5.4)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace

from berth.api.under_way import Claiming, UnderWay
from berth.candidates.place import SharedPools
from berth.index.revision import Clock
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


def seen(under_way: UnderWay, snapshot: Snapshot) -> int:
    """What a choice that begins now sees as used."""
    with under_way.begun() as began, under_way.choosing(began, lambda: snapshot) as view:
        used_ahead = used(view.ahead)
    assert used(under_way.view(lambda: snapshot).ahead) == used_ahead
    return used_ahead


def claimed(under_way: UnderWay, fleet: Snapshot, amount: int) -> Claiming:
    """A placement that was chosen."""
    with under_way.begun() as began, under_way.choosing(began, lambda: fleet):
        return under_way.add({key_of(fleet): amount})


def at_commit(fleet: Snapshot, seq: int, **usage: int) -> Snapshot:
    """The fleet when writer 7 has made some commits."""
    more = with_usage(fleet, {key_of(fleet): usage.get("more", 0)})
    return replace(more, clock=Clock(b"", {7: seq}))


def test_a_claim_counts_until_a_snapshot_has_its_commit(fleet: Snapshot) -> None:
    """Once, whether or not its request knows of the commit already."""
    under_way = UnderWay()
    before, after = at_commit(fleet, 3), at_commit(fleet, 4, more=2)
    claiming = claimed(under_way, before, 2)
    with under_way.begun():
        assert seen(under_way, before) == 3
        claiming.committing(7, 4)
        assert (seen(under_way, before), seen(under_way, after)) == (3, 3)
    other = claimed(under_way, after, 4)
    with under_way.begun():
        assert seen(under_way, after) == 7
        under_way.end(claiming, is_written=True)
        assert seen(under_way, after) == 7
        under_way.end(other, is_written=False)
        assert seen(under_way, after) == 3


def test_a_claim_that_has_failed_counts_no_more(fleet: Snapshot) -> None:
    """Not even if another commit has the count that was meant for it."""
    under_way = UnderWay()
    claiming, other = (claimed(under_way, fleet, amount) for amount in (2, 1))
    claiming.committing(7, 1)
    under_way.end(claiming, is_written=False)
    assert seen(under_way, fleet) == 2
    under_way.end(other, is_written=False)
    assert seen(under_way, fleet) == 1


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
