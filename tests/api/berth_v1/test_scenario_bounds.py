# SPDX-License-Identifier: Apache-2.0
"""A scenario is bounded before it is built, and leaves nothing behind (spec/beyond.md 4.4, 11)."""

from __future__ import annotations

import gc
import weakref
from typing import Any, Final

import numpy as np
import pytest

from berth.api.berth_v1 import fleet_questions
from berth.index.scenario import Scenario, imagine
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from tests.client import Client
from tests.worlds import consumer_uuid, world

FLEET: Final = world(
    "big  VCPU=4  @A\n"
    + "\n".join(f"  device{number}  VGPU=1" for number in range(10))
    + "\nsmall  VCPU=8  @A\npool  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A"
)
REQUEST: Final = {"groups": {"": {"resources": {"VCPU": 1, "DISK_GB": 1}}}}
CONSUMER: Final = {
    "uuid": consumer_uuid("c"),
    "project_id": "p",
    "user_id": "u",
    "consumer_type": "INSTANCE",
}
QUESTIONS: Final[dict[str, dict[str, Any]]] = {
    "/berth/v1/candidates": {"request": REQUEST, "order": {"by": "pack"}, "summaries": True},
    "/berth/v1/capacity": {"requests": {"mine": REQUEST}, "by": ["aggregate"], "hosts_max": 9},
    "/berth/v1/explain": {"request": REQUEST, "paint": True},
    "/berth/v1/place?dry_run=true": {"request": REQUEST, "consumers": [CONSUMER]},
}


@pytest.mark.parametrize("path", QUESTIONS)
@pytest.mark.parametrize(
    ("like", "count", "bound"),
    [("big", 9_091, "max_added_providers"), ("pool", 1_001, "max_added_sharing")],
)
def test_a_scenario_that_is_too_large_is_refused_before_it_is_built(
    fleet: Client, monkeypatch: pytest.MonkeyPatch, path: str, like: str, count: int, bound: str
) -> None:
    """Its size is the number of providers in the copies; and of those, how many share."""
    monkeypatch.setattr(fleet_questions, "imagine", None)
    what_if = {"add_hosts": [{"like": like, "count": count}]}
    answered = fleet.post(path, json={**QUESTIONS[path], "what_if": what_if})
    assert answered.status == 400
    (error,) = answered.json["errors"]
    assert (error["code"], error["pointer"]) == ("berth.request.too_large", "/what_if/add_hosts")
    assert bound in error["detail"]
    assert bound in fleet.get("/berth/v1").json


@pytest.mark.parametrize("path", QUESTIONS)
def test_nothing_keeps_a_scenario_after_its_answer(
    fleet: Client, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """No cache has it, and no circle of references keeps it until the next collection."""
    parts: list[weakref.ref[Any]] = []

    def noted(snapshot: Snapshot, scenario: Scenario, budget: Budget) -> Snapshot:
        imagined = imagine(snapshot, scenario, budget)
        added = imagined.blocks[-1]
        assert added is not None
        arrays: tuple[np.ndarray[Any, Any], ...] = (added.uuid_bytes, added.provider_ids)
        parts.extend(map(weakref.ref, (imagined.locations, *arrays)))
        return imagined

    monkeypatch.setattr(fleet_questions, "imagine", noted)
    what_if = {"add_hosts": [{"like": like, "count": 3} for like in ("big", "pool")]}
    gc.disable()
    try:
        answered = fleet.post(path, json={**QUESTIONS[path], "what_if": what_if})
        assert answered.status == 200, answered.text
        assert len(parts) == 3
        assert [part() for part in parts] == [None] * 3
    finally:
        gc.enable()
