# SPDX-License-Identifier: Apache-2.0
"""What goes on in the fleet of `berth demo serve`: virtual machines come and go, racks are drained.

The fleet stays about as full as it was at first.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any, Final

from berth.cli.fleet.client import DRAINS, FLAVORS, PLACE, path_of
from berth.cli.fleet.demo_fleet import PROJECTS
from berth.cli.fleet.refusals import ServiceRefused

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.demo_fleet import DemoFleet

#: How often a change is the begin or the end of a drain.
_DRAIN_SHARE: Final = 0.005
#: Drains at once; fewer where there are fewer racks.
_DRAINS_MAX: Final = 3
#: How often a virtual machine gets a lease.
_LEASE_SHARE: Final = 0.05
_REASONS: Final = ("firmware 4.2", "new power supply", "memory errors", "kernel update")


def _machine(vcpu: int, memory_mb: int, disk_gb: int) -> dict[str, Any]:
    """A request for a virtual machine on one NUMA node."""
    return {
        "groups": {
            "_CPU": {"resources": {"VCPU": vcpu, "MEMORY_MB": memory_mb}},
            "_DISK": {"resources": {"DISK_GB": disk_gb}},
        }
    }


def _with_gpu(machine: Mapping[str, Any], model: str) -> dict[str, Any]:
    """The same, with a GPU of a model near its processors."""
    gpu = {"resources": {"VGPU": 1}, "required": [model]}
    return {
        "groups": {**machine["groups"], "_GPU": gpu},
        "together": [{"groups": ["_CPU", "_GPU"], "at": "HW_NUMA_ROOT"}],
    }


#: Flavors by name, with their share of new virtual machines.
_FLAVORS: Final[Mapping[str, tuple[float, Mapping[str, Any]]]] = {
    "small": (4, _machine(2, 4_096, 20)),
    "medium": (6, _machine(4, 8_192, 40)),
    "large": (8, _machine(8, 32_768, 80)),
    "xlarge": (2, _machine(16, 65_536, 160)),
    "gpu.t4": (1, _with_gpu(_machine(4, 16_384, 80), "CUSTOM_T4")),
    "gpu.a100": (1, _with_gpu(_machine(8, 32_768, 160), "CUSTOM_A100")),
}


class Traffic:
    """Changes the fleet, one step after the other."""

    def __init__(self, client: Client, fleet: DemoFleet, rng: Random) -> None:
        self._client = client
        self._rng = rng
        self._consumers = [consumer.uuid for consumer in fleet.consumers]
        self._wanted = len(self._consumers)
        self._racks = [labels["rack"] for labels in fleet.labels.values() if "rack" in labels]
        #: The racks that are drained now.
        self._drained: list[str] = []

    def begin(self) -> None:
        """Store the flavors, drain a rack, and announce the drain of another."""
        for name, (_, request) in _FLAVORS.items():
            self._client.send("PUT", f"{FLAVORS}/{name}", {"request": request})
        self._drain("exclude")
        self._drain("none")

    def step(self) -> None:
        """Make one change, or none if the service refuses it."""
        try:
            if self._rng.random() < _DRAIN_SHARE:
                self._begin_or_end_drain()
            elif self._rng.random() < self._chance_of_claim():
                self._claim()
            else:
                self._release()
        except ServiceRefused:
            # It does not fit, or its lease has ended before.
            pass

    def _chance_of_claim(self) -> float:
        """One half, and more the emptier the fleet is than at first."""
        lacking = (self._wanted - len(self._consumers)) / max(1, self._wanted)
        return 0.5 + 5 * lacking

    def _claim(self) -> None:
        shares = [share for share, _ in _FLAVORS.values()]
        (flavor,) = self._rng.choices(list(_FLAVORS), shares)
        project = self._rng.choice(PROJECTS)
        uuid = _uuid(self._rng)
        consumer = {
            "uuid": uuid,
            "name": f"{flavor}-{uuid[:8]}",
            "project_id": project,
            "user_id": "demo",
            "consumer_type": "INSTANCE",
        }
        body: dict[str, Any] = {
            "request": {"flavor": flavor},
            "consumers": [consumer],
            "order": {"by": "random", "seed": self._rng.randrange(2**31)},
            "explain": False,
        }
        if self._rng.random() < _LEASE_SHARE:
            body["lease_seconds"] = self._rng.randrange(60, 3_600)
        self._client.send("POST", PLACE, body)
        self._consumers.append(uuid)

    def _release(self) -> None:
        at = self._rng.randrange(len(self._consumers))
        self._consumers[at], self._consumers[-1] = self._consumers[-1], self._consumers[at]
        self._client.send("DELETE", path_of("allocations", self._consumers.pop()))

    def _begin_or_end_drain(self) -> None:
        if len(self._drained) == min(_DRAINS_MAX, len(self._racks)):
            self._client.send("DELETE", f"{DRAINS}/rack-{self._drained.pop(0)}")
        else:
            self._drain("exclude")

    def _drain(self, effect: str) -> None:
        rack = self._rng.choice([rack for rack in self._racks if rack not in self._drained])
        reason = self._rng.choice(_REASONS)
        select = {"member_of": [f"rack={rack}"]}
        body = {"select": select, "reason": reason, "effect": effect}
        self._client.send("PUT", f"{DRAINS}/rack-{rack}", body)
        self._drained.append(rack)


def _uuid(rng: Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
