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
from berth.index.scenario import imagine
from berth.model.ids import ConsumerUUID
from berth.store.allocations import held_by
from berth.store.engine.database import Database
from tests.brute_question import Request, find, fitting
from tests.brute_scenario import what_if
from tests.candidates.engine import only
from tests.candidates.question_strategies import Dice, fleet, growing_scenario, request, seeded
from tests.candidates.test_questions_against_brute_force import check, tell
from tests.candidates.wire_questions import search_candidates, search_hosts
from tests.effort import SEED, scaled
from tests.worlds import World

Assumed = tuple[World, dict[str, Any], list[Request]]


def fleet_that_might_be(dice: Dice) -> Assumed:
    """A world, a scenario, and requests, some of which fit what might be."""
    world = fleet(dice)
    assumed = growing_scenario(dice, world)
    # A copy cannot be named.
    imagined = what_if(world, {**assumed, "add_hosts": []})
    known = imagined if imagined.providers else world
    return world, assumed, [request(dice, known) for _ in range(3)]


@seed(SEED)
@settings(max_examples=scaled(50), deadline=None, print_blob=True)
@given(seeded(fleet_that_might_be))
def test_a_scenario_is_the_fleet_that_it_describes(scratch: Database, assumed: Assumed) -> None:
    """Candidates and hosts are those of a world to which the same was done by hand; and the
    snapshot that it was made from is as before."""
    world, scenario, requests = assumed
    tell(world)
    note(json.dumps(scenario))
    imagined_world = what_if(world, scenario)
    with only(world, scratch) as index:
        snapshot = index.snapshot()
        imagined = _imagined(snapshot, scenario, scratch)
        for asked in requests:
            note(json.dumps(asked))
            for now, here in ((imagined, imagined_world), (snapshot, world)):
                check(find(here, asked), search_candidates(now, asked))
                assert search_hosts(now, asked) == sorted(fitting(here, asked))


def _imagined(snapshot: Snapshot, scenario: dict[str, Any], db: Database) -> Snapshot:
    assumed = read_what_if(scenario, "")
    consumers = [ConsumerUUID(uuid) for uuid in assumed.without_consumers]
    freed = held_by(db, consumers) if consumers else {}
    return imagine(snapshot, scenario_of(snapshot, assumed, References(snapshot), freed))
