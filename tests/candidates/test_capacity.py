# SPDX-License-Identifier: Apache-2.0
"""Capacities of drawn worlds (spec/beyond.md 4.1 and 4.3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from berth.candidates import Budget
from berth.candidates import capacity as capacity_package
from berth.candidates.capacity import Capacity, Counting, fragments
from berth.candidates.capacity.branching import Steps
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


def test_the_largest_amount_may_be_that_of_a_host_with_less_room(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the host with most room is looked at first, and it lacks the trait."""
    monkeypatch.setattr(fragments, "_FIRST", 1)
    fleet = world("cn1\n  numa0  VCPU=9\ncn2\n  numa1  VCPU=4  CUSTOM_T")
    request = {"groups": {"": {"resources": {"VCPU": 1}, "required": ["CUSTOM_T"]}}}
    with counted(fleet, prepared, request) as (counting, capacity):
        assert counting.fragments(capacity)["VCPU"].largest == 4


def test_the_largest_amount_leaves_what_another_group_takes(prepared: Path) -> None:
    """One provider serves both: next to the one that _A takes, _B could have seven."""
    request = {"groups": {name: {"resources": {"VCPU": n}} for name, n in (("_A", 1), ("_B", 3))}}
    with counted(world("cn1  VCPU=8"), prepared, request) as (counting, capacity):
        assert counting.fragments(capacity)["VCPU"].largest == 7


def test_a_count_for_which_the_steps_did_not_suffice_is_not_exact(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the pairs of three nodes is a way: seven fit, and the first way alone has five."""
    monkeypatch.setattr(capacity_package, "Steps", partial(Steps, left=1))
    fleet = world("cn1\n  numa0  VCPU=5\n  numa1  VCPU=5\n  numa2  VCPU=5")
    groups = {name: {"resources": {"VCPU": 1}} for name in ("_A", "_B")}
    request = {"groups": groups, "apart": [{"groups": ["_A", "_B"], "at": "provider"}]}
    with counted(fleet, prepared, request) as (_, capacity):
        total = capacity.total()
        assert total.count < 7 <= total.at_most


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


def test_hosts_get_of_a_pool_what_its_scarcest_class_allows(prepared: Path) -> None:
    """Both classes come from the pool: it has a hundred of one, and three of the other."""
    fleet = world("""
        cn1   VCPU=9  @A
        cn2   VCPU=9  @A
        pool  DISK_GB=100  CUSTOM_VF=3  MISC_SHARES_VIA_AGGREGATE  @A
    """)
    groups = {"": {"resources": {"VCPU": 1}}, "_P": {"resources": {"DISK_GB": 1, "CUSTOM_VF": 1}}}
    with counted(fleet, prepared, {"groups": groups}) as (_, capacity):
        total = capacity.total()
        assert (total.count, total.at_most) == (3, 3)


@pytest.mark.parametrize(
    ("fleet", "request_", "most"),
    [
        # The root of cn1 is a pool too: what it gives to cn2 is gone for itself.
        (
            """
            cn1    VCPU=4  MISC_SHARES_VIA_AGGREGATE  @A
            cn2    @A
            disks  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
            """,
            {"groups": {"": {"resources": {"VCPU": 1, "DISK_GB": 1}}}},
            4,
        ),
        # The disk with the trait is for the group that needs it, the pool for the other one.
        (
            """
            cn1   DISK_GB=2  CUSTOM_T  @A
            pool  DISK_GB=2  MISC_SHARES_VIA_AGGREGATE  @A
            """,
            {
                "groups": {
                    "_A": {"resources": {"DISK_GB": 1}},
                    "_B": {"resources": {"DISK_GB": 1}, "required": ["CUSTOM_T"]},
                }
            },
            2,
        ),
        # cn1 uses the other pool and leaves the only one of cn2.
        (
            """
            cn1    VCPU=4  @A  @B
            cn2    VCPU=4  @A
            pool1  DISK_GB=4  MISC_SHARES_VIA_AGGREGATE  @A
            pool2  DISK_GB=4  MISC_SHARES_VIA_AGGREGATE  @B
            """,
            {"groups": {"": {"resources": {"VCPU": 1, "DISK_GB": 1}}}},
            8,
        ),
        # Each placement takes of both pools.
        (
            """
            cn1    VCPU=9  @A
            pool1  DISK_GB=10  MISC_SHARES_VIA_AGGREGATE  @A
            pool2  DISK_GB=3  MISC_SHARES_VIA_AGGREGATE  @A
            """,
            {
                "groups": {
                    "": {"resources": {"VCPU": 1}},
                    "_A": {"resources": {"DISK_GB": 1}},
                    "_B": {"resources": {"DISK_GB": 1}},
                },
                "apart": [{"groups": ["_A", "_B"], "at": "provider"}],
            },
            3,
        ),
    ],
    ids=[
        "a host that is a pool",
        "one host, two ways",
        "a host with another pool",
        "two pools at once",
    ],
)
def test_what_several_hosts_and_pools_hold_together(
    prepared: Path, fleet: str, request_: Any, most: int
) -> None:
    """Exactly so often the request fits."""
    with counted(world(fleet), prepared, request_) as (_, capacity):
        total = capacity.total()
        assert (total.count, total.at_most) == (most, most)
