# SPDX-License-Identifier: Apache-2.0
"""Capacities of drawn worlds (spec/beyond.md 4.1 and 4.3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from berth.candidates import Budget
from berth.candidates.capacity import Capacity, Counting
from tests.candidates.engine import snapshot_of
from tests.candidates.wire_questions import question_of
from tests.worlds import World, world


@contextmanager
def counted(fleet: World, prepared: Path, request: Any) -> Iterator[tuple[Counting, Capacity]]:
    """The capacity for one request."""
    with snapshot_of(fleet, prepared) as snapshot:
        counting = Counting(snapshot, Budget())
        yield counting, counting.capacity([question_of(request, snapshot)])


def test_the_largest_amount_may_be_above_what_is_asked_of_a_split(prepared: Path) -> None:
    """A host that can only give three at a time cannot give two."""
    fleet = world("cn1  VCPU=8(used:2,step:3)")
    request = {"groups": {"_A": {"resources": {"VCPU": 2}, "split": {"VCPU": {"min": 2}}}}}
    with counted(fleet, prepared, request) as (counting, capacity):
        assert capacity.total().count == 0
        assert counting.fragments(capacity)["VCPU"].largest == 6


def test_hosts_fill_a_pool_only_as_far_as_their_own_amounts_go(prepared: Path) -> None:
    """Two hosts of two VCPUs each, and a pool for a hundred; one of three hosts has another."""
    fleet = world("""
        cn1    VCPU=2  @A
        cn2    VCPU=2  @A
        cn3    VCPU=9  @B
        pool1  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
        pool2  DISK_GB=5  MISC_SHARES_VIA_AGGREGATE  @B
    """)
    request = {"groups": {"": {"resources": {"VCPU": 1, "DISK_GB": 1}}}}
    with counted(fleet, prepared, request) as (_, capacity):
        total = capacity.total()
        assert (total.count, total.at_most) == (9, 9)
