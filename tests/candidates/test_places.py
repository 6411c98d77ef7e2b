# SPDX-License-Identifier: Apache-2.0
"""Places of several consumers in drawn worlds, and proofs that there are none (spec/beyond.md
5.4)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from berth.candidates import Budget, pool, ranking
from berth.candidates.choosing import Chosen, Limits, Short, choose
from berth.candidates.order import Order
from berth.candidates.plan import Plan
from berth.candidates.proving import most_placed
from berth.candidates.references import References, request_of
from berth.candidates.resolve import resolve
from berth.index import Snapshot
from berth.index.scenario import with_usage
from tests.candidates.engine import snapshot_of
from tests.candidates.wire_questions import question_of
from tests.worlds import World, provider_uuid, world


def chosen(fleet: World, prepared: Path, groups: Any, count: int, limits: Limits) -> Chosen | Short:
    """The places of so many consumers."""
    with snapshot_of(fleet, prepared) as snapshot:
        order = Order("spread", among=512)
        return choose(snapshot, plan_of(snapshot, groups), order, count, limits, Budget())


def plan_of(snapshot: Snapshot, groups: Any) -> Plan:
    """The plan of a request with these groups."""
    question = question_of({"groups": groups}, snapshot)
    return resolve(snapshot, request_of(question, References(snapshot)), one_per_tree=False)


@pytest.mark.parametrize("classes", [("VCPU", "DISK_GB"), ("DISK_GB", "VCPU")], ids=str)
def test_sharing_providers_alone_count_on_one_host_that_may_use_them(
    prepared: Path, classes: tuple[str, str]
) -> None:
    """Whichever of the disks is chosen, and whichever class is asked for first: each root may use
    all of them, so the candidates are on the same one."""
    fleet = world("""
        cn1     @A
        cpus    VCPU=8  MISC_SHARES_VIA_AGGREGATE  @A
        disks1  DISK_GB=8  MISC_SHARES_VIA_AGGREGATE  @A
        disks2  DISK_GB=8  MISC_SHARES_VIA_AGGREGATE  @A
    """)
    groups = {"": {"resources": dict.fromkeys(classes, 1)}}
    assert isinstance(chosen(fleet, prepared, groups, 2, Limits()), Chosen)
    assert chosen(fleet, prepared, groups, 2, Limits({"host": 1})) == Short(1)


POOLED = """
    cn1    VCPU=4  @A  @r1
    cn2    VCPU=4  @A  @r1
    cn3    VCPU=4  @B  @r2
    cn4    VCPU=4  @B  @r2
    pool1  DISK_GB=3  MISC_SHARES_VIA_AGGREGATE  @A
    pool2  DISK_GB=9  MISC_SHARES_VIA_AGGREGATE  @B
"""
NUMA = """
    cn1
      numa1  VCPU=3  MEMORY_MB=4
      numa2  VCPU=3  MEMORY_MB=4
    cn2
      numa3  VCPU=3  MEMORY_MB=2
      numa4  VCPU=1  MEMORY_MB=9
"""
#: cpus and disks share with cn1, and not with each other.
BETWEEN = """
    cn1    @A  @B
    cpus   VCPU=3  MISC_SHARES_VIA_AGGREGATE  @A
    disks  DISK_GB=8  MISC_SHARES_VIA_AGGREGATE  @B
"""
#: The rack has the disks, and neither the processors nor the host that they serve.
RACK_OF_DISKS = """
    cn1     @A
    cpus    VCPU=8  MISC_SHARES_VIA_AGGREGATE  @A
    disks1  DISK_GB=3  MISC_SHARES_VIA_AGGREGATE  @A  @r1
    disks2  DISK_GB=4  MISC_SHARES_VIA_AGGREGATE  @A  @r1
"""
DISK_FIRST = {"": {"resources": {"DISK_GB": 1, "VCPU": 1}}}
ONE_DISK = {"": {"resources": {"VCPU": 1, "DISK_GB": 1}}}
ONE_NODE = {"_A": {"resources": {"VCPU": 1, "MEMORY_MB": 2}}}
SPLIT = {"_A": {"resources": {"VCPU": 4}, "split": {"VCPU": {"parts": 2}}}}


@pytest.mark.parametrize(
    ("fleet", "groups", "limits", "most"),
    [
        # 3 of pool1, and 8 of the VCPUs beside pool2.
        (POOLED, ONE_DISK, Limits(), 11),
        # 3 of the 4 that cn1 and cn2 may have.
        (POOLED, ONE_DISK, Limits({"host": 2}), 7),
        (POOLED, ONE_DISK, Limits({"host": 1}), 4),
        (POOLED, ONE_DISK, Limits({"host": 2, "rack": 1}), 2),
        (POOLED, ONE_DISK, Limits(within="rack"), 8),
        (POOLED, ONE_DISK, Limits({"host": 1}, within="rack"), 2),
        (POOLED, ONE_DISK, Limits(within="host"), 4),
        (NUMA, ONE_NODE, Limits(), 6),
        (NUMA, ONE_NODE, Limits({"host": 3}), 5),
        (NUMA, ONE_NODE, Limits(within="host"), 4),
        (NUMA, SPLIT, Limits(), 2),
        (NUMA, SPLIT, Limits({"host": 1}), 2),
        (NUMA, SPLIT, Limits(within="host"), 1),
        (BETWEEN, ONE_DISK, Limits(), 3),
        (BETWEEN, ONE_DISK, Limits({"host": 2}), 2),
        (RACK_OF_DISKS, DISK_FIRST, Limits(within="rack"), 7),
    ],
)
def test_no_more_than_these_can_be_placed(
    prepared: Path, fleet: str, groups: Any, limits: Limits, most: int
) -> None:
    """What hosts share, the ways in which they serve a request, and limits count together."""
    racks = {"r1": {"rack": "r1"}, "r2": {"rack": "r2"}}
    with snapshot_of(replace(world(fleet), labels=racks), prepared) as snapshot:
        assert most_placed(snapshot, plan_of(snapshot, groups), limits, Budget()) == most


def test_candidates_that_are_not_scored_count(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a host can hold does not depend on how many of its candidates are looked at."""
    for module in (pool, ranking):
        monkeypatch.setattr(module, "SCORED_PER_HOST_MAX", 1)
    more = BETWEEN + "    more   DISK_GB=8  MISC_SHARES_VIA_AGGREGATE  @B\n"
    for fleet, groups, host_max, most in (
        (NUMA, ONE_NODE, 9, 6),
        (NUMA, ONE_NODE, 3, 5),
        (more, ONE_DISK, 9, 3),
        (more, ONE_DISK, 2, 2),
    ):
        with snapshot_of(world(fleet), prepared) as snapshot:
            plan = plan_of(snapshot, groups)
            assert most_placed(snapshot, plan, Limits({"host": host_max}), Budget()) == most


def test_a_host_may_get_its_first_candidate_when_amounts_are_divided_otherwise(
    prepared: Path,
) -> None:
    """The pool gives the first amount alone, and cn2 is the host; the second comes from the pool
    and its part, which is the pool's own. Found by brute force, with BERTH_SEED=1 BERTH_EFFORT=15.
    """
    assert provider_uuid("cn2") < provider_uuid("pool"), "the host is the least of the anchors"
    fleet = world("""
        cn2     @A
        pool    VCPU=7  MISC_SHARES_VIA_AGGREGATE  @A
          part  VCPU=3
    """)
    groups = {"": {"resources": {"VCPU": 4}, "split": {"VCPU": {"min": 2, "parts": 2}}}}
    limits = Limits({"host": 1})
    assert isinstance(chosen(fleet, prepared, groups, 2, limits), Chosen)
    with snapshot_of(fleet, prepared) as snapshot:
        assert most_placed(snapshot, plan_of(snapshot, groups), limits, Budget()) == 2


def test_equal_candidates_of_a_host_come_in_their_order_after_each_choice(prepared: Path) -> None:
    """The host that was chosen is searched again, and its first node is still the first of those
    that score the same. Found by brute force, with BERTH_SEED=11 BERTH_EFFORT=12."""
    fleet = world("""
        h0      VCPU=4
          h0n0  VCPU=3
        h1
          h1n1  VCPU=4
    """)
    groups = {"_A": {"resources": {"VCPU": 2}, "split": {"VCPU": {"min": 2}}}}
    with snapshot_of(fleet, prepared) as snapshot:
        plan, order, taken = plan_of(snapshot, groups), Order("pack"), Counter[Any]()
        for count in range(1, 5):
            alone = choose(with_usage(snapshot, taken), plan, order, 1, Limits(), Budget())
            assert isinstance(alone, Chosen)
            taken.update(alone.taken)
            together = choose(snapshot, plan, order, count, Limits(), Budget())
            assert isinstance(together, Chosen)
            assert together.taken == taken


def test_a_bound_without_time_is_coarse_and_true(prepared: Path) -> None:
    """What the search did not come to may have room."""
    budget = Budget(iter(range(1000)).__next__, seconds=1)
    with snapshot_of(world(NUMA), prepared) as snapshot:
        assert most_placed(snapshot, plan_of(snapshot, ONE_NODE), Limits(), budget) >= 6
        assert budget.ended
