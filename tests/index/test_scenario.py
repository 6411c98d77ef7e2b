# SPDX-License-Identifier: Apache-2.0
"""Snapshots of fleets that might be (spec/beyond.md 4.4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

import numpy as np
import pytest

from berth.candidates import find_candidates
from berth.candidates.request import CandidatesRequest, RequestGroup, ResponseForm, SearchSettings
from berth.index.scenario import AddedHosts, AssumedRatio, Scenario, imagine, nothing_used
from berth.index.snapshot import Location, Snapshot
from berth.model.budget import Budget
from berth.model.errors import SearchGaveUp
from berth.model.ids import AggregateUUID, ProviderId
from tests.candidates.engine import snapshot_of
from tests.worlds import aggregate_uuid, provider_uuid, world

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


def hosts(snapshot: Snapshot, asked: CandidatesRequest) -> list[str]:
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


def wants(amounts: str) -> CandidatesRequest:
    """A request for amounts of the unsuffixed group."""
    pairs = (each.split("=") for each in amounts.split())
    return CandidatesRequest((RequestGroup("", tuple((name, int(n)) for name, n in pairs)),))


def test_nothing_is_used(fleet: Snapshot) -> None:
    """Every host has all that it has."""
    assert hosts(fleet, wants("VCPU=4")) == ["cn3"]
    assert hosts(nothing_used(fleet), wants("VCPU=4")) == ["cn1", "cn2", "cn3"]
    assert hosts(fleet, wants("VCPU=4")) == ["cn3"]


def test_what_consumers_hold_is_free(fleet: Snapshot) -> None:
    """Never more than is used: the index and the query for it are of two moments."""
    numa2 = fleet.block(at(fleet, "numa2").block_id)
    provider = numa2.provider_ids.item(at(fleet, "numa2").node, at(fleet, "numa2").row)
    freed = {(ProviderId(provider), fleet.names.class_ids["VCPU"]): 5}
    scenario = imagine(fleet, Scenario(freed=freed))
    assert hosts(scenario, wants("VCPU=4")) == ["cn2", "cn3"]


def test_another_ratio_counts_on_the_hosts_of_an_aggregate(fleet: Snapshot) -> None:
    """By the root's own aggregates; without any, on all hosts."""
    number = fleet.names.class_ids["MEMORY_MB"]
    aggregate = fleet.names.aggregate_ids[AggregateUUID(aggregate_uuid("B"))]
    member = fleet.aggregate_sets.having_any([aggregate])
    some = imagine(fleet, Scenario(ratios=[AssumedRatio(number, 2.0, member)]))
    assert hosts(some, wants("MEMORY_MB=1024")) == ["cn2", "cn3"]
    every = imagine(fleet, Scenario(ratios=[AssumedRatio(number, 1.98)]))
    assert hosts(every, wants("MEMORY_MB=1020")) == ["cn1", "cn2", "cn3"]


def test_trees_that_are_gone_give_nothing_and_share_nothing(fleet: Snapshot) -> None:
    """The last rows of a block move into the gaps, and are still found."""
    scenario = imagine(fleet, Scenario(without=[at(fleet, "numa1")]))
    assert hosts(scenario, wants("MEMORY_MB=1")) == ["cn2", "cn3"]
    assert scenario.locate_uuid(provider_uuid("numa1")) is None
    for name in ("cn2", "numa2", "cn3", "numa3"):
        place = at(scenario, name)
        assert scenario.block(place.block_id).uuid(place.node, place.row) == provider_uuid(name)
    disk = wants("MEMORY_MB=1 DISK_GB=10")
    assert hosts(fleet, disk) == ["cn1", "cn3"]
    assert hosts(imagine(fleet, Scenario(without=[at(fleet, "pool")])), disk) == []
    assert hosts(imagine(fleet, Scenario(without=[at(fleet, n) for n in NAMES])), disk) == []


NAMES = ("cn1", "cn2", "cn3", "pool")


def test_added_hosts_are_copies_with_nothing_used(fleet: Snapshot) -> None:
    """They have the traits and aggregates of the tree that they are like."""
    scenario = imagine(fleet, Scenario(added=[AddedHosts(at(fleet, "numa1"), 2)]))
    assert hosts(scenario, wants("VCPU=4")) == ["cn1#1", "cn1#2", "cn3"]
    assert hosts(scenario, wants("VCPU=4 DISK_GB=10")) == ["cn1#1", "cn1#2", "cn3"]
    assert hosts(scenario, wants("VCPU=4 MEMORY_MB=1024")) == ["cn1#1", "cn1#2", "cn3"]


def test_further_copies_of_a_tree_are_numbered_on(fleet: Snapshot) -> None:
    """Two wishes for copies of one tree, by different providers of it, make different hosts."""
    likes = [AddedHosts(at(fleet, "cn2"), 2), AddedHosts(at(fleet, "numa2"), 1)]
    scenario = imagine(fleet, Scenario(added=likes))
    assert hosts(scenario, wants("VCPU=4")) == ["cn2#1", "cn2#2", "cn2#3", "cn3"]
    uuids = [block.uuid_texts.ravel() for _, block in scenario.occupied()]
    assert len(np.unique(np.concatenate(uuids))) == 7 + 3 * 2


def test_a_copy_of_a_pool_shares_through_its_aggregates(fleet: Snapshot) -> None:
    """The pool is nearly full; its copy is empty."""
    scenario = imagine(fleet, Scenario(added=[AddedHosts(at(fleet, "pool"), 1)]))
    assert hosts(fleet, wants("MEMORY_MB=1 DISK_GB=50")) == []
    assert hosts(scenario, wants("MEMORY_MB=1 DISK_GB=50")) == ["cn1", "cn3"]


def test_a_thousand_copies_are_in_several_blocks(fleet: Snapshot) -> None:
    """Each has ids and uuids of its own."""
    scenario = imagine(fleet, Scenario(added=[AddedHosts(at(fleet, "cn2"), 10_000)]))
    assert len(hosts(scenario, wants("VCPU=4"))) == 10_001
    blocks = [block for _, block in scenario.occupied()]
    ids = np.concatenate([block.provider_ids.ravel() for block in blocks])
    uuids = np.concatenate([block.uuid_texts.ravel() for block in blocks])
    assert len(ids) == len(np.unique(ids)) == len(np.unique(uuids)) == 20_007


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


def test_what_a_scenario_leaves_alone_is_shared(fleet: Snapshot) -> None:
    """Its cost is in proportion to what it changes."""
    scenario = imagine(fleet, Scenario(without=[at(fleet, "pool")]))
    shared = [block for block in scenario.blocks if block is not None]
    assert all(any(block is each for each in fleet.blocks) for block in shared)
