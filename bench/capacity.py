# SPDX-License-Identifier: Apache-2.0
"""Scenario capacity: how many more of fifty flavors fit, on flat hosts and on trees of seven."""

from __future__ import annotations

from typing import Any, Final

from bench.case import Case
from bench.fleet import TRAIT
from bench.http1 import Requests
from bench.sample import Round, Samples, ask
from bench.server import RunningServer

PATH: Final = "/berth/v1/capacity"

#: GiB for each VCPU, as clouds call the families.
_FAMILIES: Final = {"burst": 1, "compute": 2, "general": 4, "memory": 8, "large": 16}
_VCPUS: Final = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
#: The family that only a third of the hosts serves.
_SELECTIVE: Final = "compute"


def flavors() -> dict[str, Any]:
    """Fifty flavors: five families in ten sizes."""
    return {
        f"{family}.{vcpus}": _flavor(family, vcpus, 1024 * vcpus * gib)
        for family, gib in _FAMILIES.items()
        for vcpus in _VCPUS
    }


def _flavor(family: str, vcpus: int, memory_mb: int) -> dict[str, Any]:
    resources = {"VCPU": vcpus, "MEMORY_MB": memory_mb, "DISK_GB": 20 + 10 * vcpus}
    group: dict[str, Any] = {"resources": resources}
    if family == _SELECTIVE:
        group["required"] = [TRAIT]
    return {"groups": {"": group}}


def capacity_cases() -> list[Case]:
    """Fifty flavors, and one of them."""
    several = flavors()
    one = {"general.8": several["general.8"]}
    return [_case("50 flavors", several), _case("1 flavor", one)]


def nested_capacity_cases() -> list[Case]:
    """Fifty flavors on trees of seven, without the trait that these do not have."""
    several = {name: each for name, each in flavors().items() if _SELECTIVE not in name}
    vm = {f"pci.{n}": _with_devices(n) for n in range(1, 9)}
    return [_case("50 flavors", {**several, **vm, **_pairs()})]


def _with_devices(number: int) -> dict[str, Any]:
    """VCPU, memory, FPGAs and a GPU below one NUMA node."""
    return {
        "groups": {
            "_CPU": {"resources": {"VCPU": 2 * number, "MEMORY_MB": 2048 * number}},
            "_FPGA": {"resources": {"FPGA": number}},
            "_GPU": {"resources": {"PGPU": 1}},
        },
        "together": [{"groups": ["_CPU", "_FPGA", "_GPU"], "at": "subtree"}],
    }


def _pairs() -> dict[str, Any]:
    """Two FPGAs, of any host or of two cards."""
    groups = {f"_F{n}": {"resources": {"FPGA": 1}} for n in range(2)}
    apart = [{"groups": ["_F0", "_F1"], "at": "provider"}]
    return {"pair": {"groups": groups}, "pair.apart": {"groups": groups, "apart": apart}}


def _case(name: str, requests: dict[str, Any]) -> Case:
    def measure(server: RunningServer, wanted: Round) -> Samples:
        made = [
            Requests(server.port, answer_bytes=wanted.answer_bytes).of(
                "POST", PATH, {"requests": requests}
            )
        ]
        return {"": ask(server, made, wanted)}

    return Case("capacity", name, measure, for_peer=False)
