# SPDX-License-Identifier: Apache-2.0
"""Lists of consumers say what a plain loop over all allocations says (spec/beyond.md 6.4)."""

from __future__ import annotations

import json
from random import Random
from urllib.parse import urlencode

from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st

from tests.api.claims import consumer
from tests.api.worlds import new_name, provider
from tests.client import Client
from tests.effort import SEED, repeat_with, scaled

#: Consumer -> the providers that it uses.
Uses = dict[str, set[str]]


@seed(SEED)
@settings(max_examples=scaled(5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dice=st.integers(0, 2**32).map(Random))
def test_a_consumer_is_listed_if_each_filter_by_itself_admits_it(api: Client, dice: Random) -> None:
    """`host` asks for something of a tree and `provider` for something of one provider, which may
    be in another tree: a consumer that uses both is listed."""
    note(repeat_with())
    trees = {
        host: {host, *(_child(api, host) for _ in range(dice.randint(0, 2)))}
        for host in _hosts(api)
    }
    everything = sorted(set().union(*trees.values()))
    projects = [new_name("project") for _ in range(2)]
    uses: Uses = {}
    of_project: dict[str, str] = {}
    for _ in range(6):
        used = dice.sample(everything, dice.randint(1, min(3, len(everything))))
        project = dice.choice(projects)
        uuid = consumer(api, {each: {"VCPU": 1} for each in used}, project=project)
        uses[uuid], of_project[uuid] = {*used}, project
    for _ in range(12):
        filters = {
            **({"host": dice.choice(everything)} if dice.random() < 0.7 else {}),
            **({"provider": dice.choice(everything)} if dice.random() < 0.7 else {}),
            "project_id": dice.choice(projects),
        }
        note(str(filters))
        tree = next((t for t in trees.values() if filters.get("host") in t), set(everything))
        due = {
            uuid
            for uuid, used in uses.items()
            if used & tree
            and filters.get("provider") in {None, *used}
            and of_project[uuid] == filters["project_id"]
        }
        text = api.get(f"/berth/v1/consumers?{urlencode(filters)}").text
        assert {
            each["uuid"] for each in map(json.loads, text.splitlines()) if "uuid" in each
        } == due


def _hosts(api: Client) -> list[str]:
    return [provider(api, {"VCPU": 64}) for _ in range(2)]


def _child(api: Client, host: str) -> str:
    return provider(api, {"VCPU": 64}, parent=host)
