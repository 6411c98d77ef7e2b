# SPDX-License-Identifier: Apache-2.0
"""The stages of the filter: which trees each removes, and that these can be counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth.candidates import Budget
from berth.candidates.filter import STAGES, filter_trees
from berth.candidates.resolve import resolve
from berth.index.snapshot import Snapshot
from tests.candidates.engine import request_of, snapshot_of
from tests.queries import parse_query
from tests.worlds import world

FLEET = world("""
    fits     VCPU=8  CUSTOM_X  @A
    full     VCPU=8(used:8)  CUSTOM_X  @A
    apart    VCPU=8  CUSTOM_X
    plain    VCPU=8  @A
    cells    CUSTOM_X  @A
      cell0  VCPU=8  CUSTOM_X
      cell1  VCPU=8  CUSTOM_X
    tight    CUSTOM_X  @A
      tight0  VCPU=8(used:7)  CUSTOM_X
      tight1  VCPU=8(used:7)  CUSTOM_X
    barred   VCPU=8  CUSTOM_X  @A  @B
    pool     DISK_GB=8  MISC_SHARES_VIA_AGGREGATE  @A
""")


def removed(snapshot: Snapshot, query: str) -> dict[str, int]:
    """The number of trees that each stage removes, by name; stages that remove none are left
    out."""
    plan = resolve(snapshot, request_of(parse_query(query, 39)), one_per_tree=False)
    left = [
        sum(
            len(trees.rows)
            for trees in filter_trees(snapshot, plan, Budget(), stages=STAGES[:count])
        )
        for count in range(len(STAGES) + 1)
    ]
    counts = {
        stage.name: before - after
        for stage, before, after in zip(STAGES, left, left[1:], strict=False)
        if before != after
    }
    return {**counts, "": left[-1]}


@pytest.mark.parametrize(
    ("query", "due"),
    [
        ("resources=VCPU:1", {"structure": 1, "amounts": 1, "": 6}),
        ("resources=VCPU:1&required=CUSTOM_X", {"structure": 2, "amounts": 1, "": 5}),
        ("resources=VCPU:2", {"structure": 1, "amounts": 1, "options": 1, "": 5}),
        (
            "resources=VCPU:2&member_of=<agg:A>",
            {"structure": 1, "amounts": 1, "aggregates": 1, "options": 1, "": 4},
        ),
        (
            "resources=VCPU:2&member_of=!<agg:B>",
            {"structure": 1, "amounts": 1, "aggregates": 1, "options": 1, "": 4},
        ),
        (
            "resources=VCPU:1,DISK_GB:1",
            {"structure": 1, "amounts": 1, "sharing providers": 1, "": 5},
        ),
    ],
)
def test_each_stage_removes_what_it_is_there_for(
    prepared: Path, query: str, due: dict[str, int]
) -> None:
    """Each of the eight trees is removed by the stage of its name; "" stands for those that
    remain."""
    with snapshot_of(FLEET, prepared) as snapshot:
        counts = removed(snapshot, query)
    assert sum(counts.values()) == 8
    assert counts == due


def test_every_stage_gives_the_reason_for_its_place() -> None:
    """Each stage has a unique name and a sentence for its place."""
    assert len({stage.name for stage in STAGES}) == len(STAGES)
    assert all(len(stage.why) > 30 for stage in STAGES)
