# SPDX-License-Identifier: Apache-2.0
"""Scenario explain: why nothing fits, on flat hosts and on trees, by the number of constraints."""

from __future__ import annotations

from typing import Any, Final

from bench.case import Case
from bench.fleet import TRAIT, aggregate_uuid, host_uuid
from bench.http1 import Requests
from bench.sample import Round, Samples, ask
from bench.server import RunningServer

PATH: Final = "/berth/v1/explain"

#: How many constraints the requests have.
ATOMS: Final = (3, 8, 16)

#: More than a host has.
_MEMORY_MB: Final = 2_097_152
#: Traits that no host has.
_FORBIDDEN: Final = (
    *("HW_CPU_X86_SSE", "HW_CPU_X86_SSE2", "HW_CPU_X86_AVX", "HW_CPU_X86_AVX512F"),
    *("HW_CPU_X86_VMX", "HW_CPU_X86_SVM", "HW_GPU_CUDA_SDK_V9_0", "HW_NIC_SRIOV"),
    "HW_CPU_HYPERTHREADING",
)

#: Three groups below one NUMA node, of which no tree has enough FPGAs.
_NESTED: Final[dict[str, Any]] = {
    "groups": {
        "_CPU": {"resources": {"VCPU": 2, "MEMORY_MB": 1024}},
        "_FPGA": {"resources": {"FPGA": 9}},
        "_GPU": {"resources": {"PGPU": 1}},
    },
    "together": [{"groups": ["_CPU", "_FPGA", "_GPU"], "at": "subtree"}],
}


def flat_request(atoms: int) -> dict[str, Any]:
    """A request of 3, 8 or 16 constraints that no flat host fits."""
    resources = {"VCPU": 1, "MEMORY_MB": _MEMORY_MB}
    if atoms == 3:
        return {"groups": {"": {"resources": resources, "required": [TRAIT]}}}
    forbidden = [f"!{name}" for name in _FORBIDDEN[: atoms - 7]]
    return {
        "groups": {
            "": {
                "resources": {**resources, "DISK_GB": 10},
                "required": [TRAIT, *forbidden],
                "member_of": [aggregate_uuid(0)],
            }
        },
        "host": {
            "member_of": [[aggregate_uuid(0), aggregate_uuid(1)]],
            "not_in": [host_uuid(3), host_uuid(4)],
        },
    }


def flat_explain_cases() -> list[Case]:
    """By the number of constraints."""
    return [_case(f"{atoms} atoms", flat_request(atoms)) for atoms in ATOMS]


def nested_explain_cases() -> list[Case]:
    """Three groups, on trees of seven."""
    return [_case("three groups", _NESTED)]


def _case(name: str, request: dict[str, Any]) -> Case:
    def measure(server: RunningServer, wanted: Round) -> Samples:
        requests = Requests(server.port, answer_bytes=wanted.answer_bytes)
        made = [requests.of("POST", PATH, {"request": request})]
        return {"": ask(server, made, wanted)}

    return Case("explain", name, measure, for_peer=False)
