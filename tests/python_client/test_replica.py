# SPDX-License-Identifier: Apache-2.0
"""A copy of the fleet applies what the service tells of its changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from berth.client import Change, Changes, Client, Fleet, Refused, Replica

STOCK = {"total": 66, "reserved": 2, "min_unit": 1, "max_unit": 64, "step_size": 1}
HOST: Mapping[str, Any] = {
    "uuid": "h",
    "name": "cn1",
    "parent": None,
    "inventories": {"VCPU": {**STOCK, "allocation_ratio": 1.0}},
    "usages": {"VCPU": 54},
    "traits": [],
}
USAGE = {"change": "usage", "uuid": "h", "commits": 2, "generation": 3, "usages": {"VCPU": 62}}


class Service:
    """Answers in an order that the test chooses."""

    def __init__(self, fleets: list[Fleet], changes: list[Changes | Refused]) -> None:
        self.fleets, self.told = fleets, changes
        self.asked: list[str] = []

    def fleet(self) -> Fleet:
        """The next fleet."""
        return self.fleets.pop(0)

    def changes(self, after: str, *, wait: int) -> Changes:
        """The next changes."""
        assert wait == 20
        self.asked.append(after)
        answer = self.told.pop(0)
        if isinstance(answer, Refused):
            raise answer
        return answer


def replica_of(service: Service) -> Replica:
    """A copy of what a service tells."""
    return Replica(cast("Client", service))


def test_changes_are_applied_in_their_order() -> None:
    """Each says what was before; the next poll continues where the last one ended."""
    new = {**HOST, "uuid": "n", "name": "cn2"}
    gone = {"change": "gone", "uuid": "h", "commits": 1}
    unseen = {"change": "gone", "uuid": "x", "commits": 2}
    service = Service(
        [Fleet("r1", [HOST])],
        [
            Changes("r2", [USAGE, {"change": "provider", "commits": 1, **new}]),
            Changes("r3", [gone, unseen, {"change": "names", "commits": 1}]),
        ],
    )
    fleet = replica_of(service)
    used = {**HOST, "generation": 3, "usages": {"VCPU": 62}}
    assert fleet.follow() == [Change("usage", 2, HOST, used), Change("provider", 1, None, new)]
    assert fleet.providers == {"h": used, "n": new}
    assert [(each.kind, each.before, each.now) for each in fleet.follow()] == [
        ("gone", used, None),
        ("gone", None, None),
        ("names", None, None),
    ]
    assert fleet.providers == {"n": new}
    assert (service.asked, fleet.revision) == (["r1", "r2"], "r3")


@pytest.mark.parametrize(
    ("status", "code"), [(410, "berth.revision.gone"), (400, "berth.revision.foreign")]
)
def test_what_the_service_cannot_tell_is_read_again(status: int, code: str) -> None:
    """It has forgotten, or the database has a new identity; what differs counts as changed."""
    changed, other = {**HOST, "traits": ["CUSTOM_A"]}, {**HOST, "uuid": "o"}
    service = Service(
        [Fleet("r1", [HOST, other]), Fleet("r9", [changed])],
        [Refused("not known", status=status, code=code)],
    )
    fleet = replica_of(service)
    assert fleet.follow() == [Change("gone", 1, other, None), Change("provider", 1, HOST, changed)]
    assert (fleet.providers, fleet.revision) == ({"h": changed}, "r9")


def test_any_other_refusal_is_the_callers() -> None:
    """The copy is as it was."""
    service = Service([Fleet("r1", [HOST])], [Refused("no", status=403)])
    fleet = replica_of(service)
    with pytest.raises(Refused, match="no"):
        fleet.follow()
    assert (fleet.providers, fleet.revision) == ({"h": HOST}, "r1")
