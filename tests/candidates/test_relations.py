# SPDX-License-Identifier: Apache-2.0
"""Groups that are together or apart (spec/beyond.md 2.4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth.candidates import assignments
from berth.candidates.question import QuestionRelation
from tests.candidates.questions import asked, group, items, question
from tests.worlds import world


@pytest.mark.parametrize("assignments_max", [64, 0])
def test_two_providers_of_a_pool_are_in_one_tree(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, assignments_max: int
) -> None:
    """Also for a host that both of them serve."""
    monkeypatch.setattr(assignments, "ASSIGNMENTS_MAX", assignments_max)
    shelves = world("""
        cn1     VCPU=1  @A
        pool    VGPU=1
          hdd   DISK_GB=10            MISC_SHARES_VIA_AGGREGATE  @A
          ssd   DISK_GB=10  FAST      MISC_SHARES_VIA_AGGREGATE  @A
        other   DISK_GB=10  FASTER    MISC_SHARES_VIA_AGGREGATE  @A
    """)
    groups = {
        "": group("VCPU=1"),
        "_A": group("DISK_GB=1", required=items("!FAST !FASTER")),
        "_B": group("DISK_GB=1", required=items("FAST|FASTER")),
    }
    relation = (QuestionRelation(("_A", "_B"), "tree"),)
    with asked(shelves, prepared) as fleet:
        assert fleet.candidates(question(groups=groups, together=relation)) == [
            "cn1:VCPU=1 hdd:DISK_GB=1 ssd:DISK_GB=1 | =cn1 _A=hdd _B=ssd"
        ]
        assert fleet.candidates(question(groups=groups, apart=relation)) == [
            "cn1:VCPU=1 hdd:DISK_GB=1 other:DISK_GB=1 | =cn1 _A=hdd _B=other"
        ]


@pytest.mark.parametrize("assignments_max", [64, 0])
def test_pools_that_are_alike_are_trees_of_their_own(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, assignments_max: int
) -> None:
    """Groups in different trees get one of each, in either way."""
    monkeypatch.setattr(assignments, "ASSIGNMENTS_MAX", assignments_max)
    pools = world("""
        cn1     VCPU=1  @A
        one     DISK_GB=1  MISC_SHARES_VIA_AGGREGATE  @A
        two     DISK_GB=1  MISC_SHARES_VIA_AGGREGATE  @A
    """)
    asking = question(
        groups={"": group("VCPU=1"), "_A": group("DISK_GB=1"), "_B": group("DISK_GB=1")},
        apart=(QuestionRelation(("_A", "_B"), "tree"),),
    )
    with asked(pools, prepared) as fleet:
        assert fleet.candidates(asking) == [
            "cn1:VCPU=1 one:DISK_GB=1 two:DISK_GB=1 | =cn1 _A=one _B=two",
            "cn1:VCPU=1 one:DISK_GB=1 two:DISK_GB=1 | =cn1 _A=two _B=one",
        ]


@pytest.mark.parametrize("assignments_max", [64, 0])
def test_three_groups_are_apart_on_providers_beside_each_other(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, assignments_max: int
) -> None:
    """None of them is above another one; the device is below the first node."""
    monkeypatch.setattr(assignments, "ASSIGNMENTS_MAX", assignments_max)
    host = world("""
        cn1
          numa0      VCPU=1
            device0  VCPU=1
          numa1      VCPU=1
          numa2      VCPU=1
    """)
    asking = question(
        groups={name: group("VCPU=1") for name in ("_A", "_B", "_C")},
        apart=(QuestionRelation(("_A", "_B", "_C"), "subtree"),),
    )
    with asked(host, prepared) as fleet:
        found = fleet.candidates(asking)
    assert len(found) == 12
    assert not any("numa0" in each and "device0" in each for each in found)


@pytest.mark.parametrize("assignments_max", [64, 0])
def test_groups_that_no_relation_keeps_apart_may_share_a_provider(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, assignments_max: int
) -> None:
    """Two of three groups are apart, and two providers are enough for all."""
    monkeypatch.setattr(assignments, "ASSIGNMENTS_MAX", assignments_max)
    two = world("""
        cn1
          one  VGPU=2
          two  VGPU=1
    """)
    asking = question(
        groups={name: group("VGPU=1") for name in ("_A", "_B", "_C")},
        apart=(QuestionRelation(("_A", "_B"), "provider"),),
    )
    with asked(two, prepared) as fleet:
        assert fleet.candidates(asking) == [
            "one:VGPU=2 two:VGPU=1 | _A=one _B=two _C=one",
            "one:VGPU=2 two:VGPU=1 | _A=two _B=one _C=one",
        ]
