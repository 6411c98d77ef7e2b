# SPDX-License-Identifier: Apache-2.0
"""What a scenario makes of a fleet is what doing it makes of a world (spec/beyond.md 4.4)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, note, seed, settings

from berth.api.berth_v1.asking import read_what_if
from berth.candidates.references import References
from berth.candidates.what_if import scenario_of
from berth.index import Snapshot
from berth.index.block import Block
from berth.index.scenario import imagine
from berth.model.consumer import ConsumerWrite
from berth.model.ids import ConsumerUUID, ProviderId, ProviderUUID
from berth.model.sentinels import UNSET
from berth.store.allocations import held_by, replace_allocations
from berth.store.engine.database import Database
from tests.brute_question import Request, capacity, find, fitting
from tests.brute_scenario import what_if
from tests.candidates.engine import only
from tests.candidates.question_strategies import Dice, fleet, growing_scenario, request, seeded
from tests.candidates.test_questions_against_brute_force import check, tell
from tests.candidates.wire_questions import search_candidates, search_hosts
from tests.effort import SEED, scaled
from tests.worlds import SHARING_TRAIT, World, aggregate_uuid, consumer_uuid, provider_uuid, world

#: (provider, class) -> (capacity, used).
Inventories = dict[tuple[str, str], tuple[int, int]]
#: (aggregate, provider) of each sharing provider.
Sharing = set[tuple[str, str]]

Assumed = tuple[World, dict[str, Any], list[Request]]


def fleet_that_might_be(dice: Dice) -> Assumed:
    """A world, a scenario, and requests, some of which fit what might be."""
    drawn = fleet(dice)
    assumed = growing_scenario(dice, drawn)
    # A copy cannot be named.
    imagined = what_if(drawn, {**assumed, "add_hosts": []})
    known = imagined if imagined.providers else drawn
    return drawn, assumed, [request(dice, known) for _ in range(3)]


@seed(SEED)
@settings(max_examples=scaled(50))
@given(seeded(fleet_that_might_be))
def test_a_scenario_is_the_fleet_that_it_describes(scratch: Database, assumed: Assumed) -> None:
    """Inventories, sharing providers, candidates and hosts are those of a world to which the same
    was done by hand; and the snapshot that it was made from is as before."""
    drawn, scenario, requests = assumed
    tell(drawn)
    note(json.dumps(scenario))
    imagined_world = what_if(drawn, scenario)
    with only(drawn, scratch) as index:
        snapshot = index.snapshot()
        imagined = imagined_as(snapshot, scenario, scratch)
        for now, here in ((imagined, imagined_world), (snapshot, drawn)):
            assert _inventories(now) == _drawn_inventories(here)
            assert _sharing(now) == _drawn_sharing(here)
        for asked in requests:
            note(json.dumps(asked))
            for now, here in ((imagined, imagined_world), (snapshot, drawn)):
                check(find(here, asked), search_candidates(now, asked))
                assert search_hosts(now, asked) == sorted(fitting(here, asked))


def test_what_another_consumer_of_a_provider_uses_stays(scratch: Database) -> None:
    """Two consumers use a host; without one of them, what the other uses is left."""
    host = world("cn1  VCPU=8(used:3)  MEMORY_MB=8(used:2)")
    provider, other = ProviderUUID(provider_uuid("cn1")), ConsumerUUID(consumer_uuid("other"))
    claim = ConsumerWrite(
        uuid=other,
        allocations={provider: {"VCPU": 1, "MEMORY_MB": 5}},
        project_id="worlds",
        user_id="tests",
        generation=UNSET,
        consumer_type="INSTANCE",
    )
    with only(host, scratch) as index:
        replace_allocations(scratch, [claim], attempts=1)
        for gone, due in ((str(other), (3, 2)), (consumer_uuid("cn1"), (1, 5))):
            imagined = imagined_as(index.snapshot(), {"without_consumers": [gone]}, scratch)
            vcpu, memory = due
            assert _inventories(imagined) == {
                ("cn1", "VCPU"): (8, vcpu),
                ("cn1", "MEMORY_MB"): (8, memory),
            }


def test_a_ratio_is_assumed_of_hosts_in_one_aggregate_and_not_in_another(
    scratch: Database,
) -> None:
    """Both conditions count."""
    hosts = world("in-a  VCPU=4  @A\nin-both  VCPU=4  @A  @B\nin-b  VCPU=4  @B")
    members = [aggregate_uuid("A"), f"!{aggregate_uuid('B')}"]
    ratio = {"resource_class": "VCPU", "ratio": 2.0, "member_of": members}
    with only(hosts, scratch) as index:
        imagined = imagined_as(index.snapshot(), {"allocation_ratio": [ratio]}, scratch)
        assert _inventories(imagined) == {
            ("in-a", "VCPU"): (8, 0),
            ("in-both", "VCPU"): (4, 0),
            ("in-b", "VCPU"): (4, 0),
        }


def imagined_as(snapshot: Snapshot, scenario: dict[str, Any], db: Database) -> Snapshot:
    """The snapshot that a scenario makes of another."""
    assumed = read_what_if(scenario, "")
    consumers = [ConsumerUUID(uuid) for uuid in assumed.without_consumers]
    freed = held_by(db, consumers) if consumers else {}
    return imagine(snapshot, scenario_of(snapshot, assumed, References(snapshot), freed))


def _inventories(snapshot: Snapshot) -> Inventories:
    """The capacity of each inventory, and how much of it is used."""
    names = snapshot.names.class_names
    return {
        (_name(block, node, row), names[class_id]): (
            int(columns.capacity.item(line, row)),
            int(columns.used.item(line, row)),
        )
        for _, block in snapshot.occupied()
        for class_id, columns in block.columns.items()
        for node, line in block.shape.row_of_node[class_id].items()
        for row in range(block.rows)
    }


def _drawn_inventories(fleet: World) -> Inventories:
    return {
        (each.name, name): (capacity(stock), stock.used)
        for each in fleet.providers
        for name, stock in each.stocks.items()
    }


def _sharing(snapshot: Snapshot) -> Sharing:
    """Which sharing providers each aggregate has."""
    uuids = {each: uuid for uuid, each in snapshot.names.aggregate_ids.items()}
    return {
        (uuids[aggregate], _name_of(snapshot, provider))
        for aggregate, providers in snapshot.sharing.by_aggregate.items()
        for provider in providers
    }


def _drawn_sharing(fleet: World) -> Sharing:
    return {
        (aggregate_uuid(aggregate), each.name)
        for each in fleet.providers
        if SHARING_TRAIT in each.traits
        for aggregate in each.aggregates
    }


def _name_of(snapshot: Snapshot, provider: ProviderId) -> str:
    at = snapshot.locate(provider)
    assert at is not None
    return _name(snapshot.block(at.block_id), at.node, at.row)


def _name(block: Block, node: int, row: int) -> str:
    name: str = json.loads(block.names.item(node, row))
    return name
