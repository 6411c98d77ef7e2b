# SPDX-License-Identifier: Apache-2.0
"""Snapshots of fleets that might be (spec/beyond.md 4.4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

import pytest

from berth.candidates import find_candidates
from berth.candidates.question import Question, ResponseForm, SearchSettings
from berth.index.scenario import AddedHosts, AssumedRatio, Scenario, imagine
from berth.index.snapshot import Location, Snapshot
from berth.model.budget import Budget
from berth.model.errors import SearchGaveUp
from berth.model.ids import ProviderId
from tests.candidates.engine import snapshot_of
from tests.worlds import provider_uuid, world

FLEET = world("""
    cn1       MEMORY_MB=1024(used:1000)  @A
      numa1   VCPU=4(used:3)
    cn2       MEMORY_MB=1024  @B
      numa2   VCPU=4(used:2)
    cn3       MEMORY_MB=1024  @A
      numa3   VCPU=4
    pool      DISK_GB=100(used:90)  MISC_SHARES_VIA_AGGREGATE  @A
""")


@pytest.fixture
def fleet(prepared: Path) -> Iterator[Snapshot]:
    """The present state."""
    with snapshot_of(FLEET, prepared) as snapshot:
        yield snapshot


def at(snapshot: Snapshot, name: str) -> Location:
    """Where a provider is."""
    location = snapshot.locate_uuid(provider_uuid(name))
    assert location is not None
    return location


def hosts(snapshot: Snapshot, asked: Question) -> list[str]:
    """The names of the hosts that fit."""
    form = ResponseForm(
        allocations_as_list=False, traits=True, all_classes=True, trees=True, mappings=True
    )
    answer = find_candidates(snapshot, asked, settings=SearchSettings(), form=form, rng=Random(0))
    summaries = json.loads(bytes(answer))["provider_summaries"].values()
    names = {
        block.uuid(0, row): json.loads(block.names.item(0, row))
        for _, block in snapshot.occupied()
        for row in range(block.rows)
    }
    roots = {each["root_provider_uuid"] for each in summaries if each["traits"] == []}
    return sorted(names[uuid] for uuid in roots)


NAMES = ("cn1", "cn2", "cn3", "pool")


@pytest.mark.parametrize("part", ["unused", "freed", "ratios", "without", "added"])
def test_a_scenario_that_is_being_built_ends_with_the_budget(fleet: Snapshot, part: str) -> None:
    """It is looked at for each block, for some changes of what is used, and for each provider that
    is copied; a part of a scenario has no meaning."""
    cores = fleet.names.class_ids["VCPU"]
    taken = {(provider, cores): 1 for provider in map(ProviderId, range(1, 5000))}
    scenario = {
        "unused": Scenario(nothing_used=True),
        "freed": Scenario(freed=taken),
        "ratios": Scenario(ratios=[AssumedRatio(cores, 2.0)] * 9),
        "without": Scenario(without=[at(fleet, name) for name in NAMES]),
        "added": Scenario(added=[AddedHosts(at(fleet, "numa2"), 1)] * 9),
    }[part]
    looks = count()
    with pytest.raises(SearchGaveUp):
        imagine(fleet, scenario, Budget(lambda: next(looks), seconds=1.5))
    assert next(looks) == 3


def test_a_scenario_that_takes_too_much_memory_is_not_built(fleet: Snapshot) -> None:
    """What its copies take is counted before they are made."""
    scenario = Scenario(added=[AddedHosts(at(fleet, "cn2"), 1000)])
    with pytest.raises(SearchGaveUp):
        imagine(fleet, scenario, Budget(bytes_max=1_000_000))
    assert imagine(fleet, scenario, Budget(bytes_max=3_000_000)).blocks
