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
