# SPDX-License-Identifier: Apache-2.0
"""Scenario nested: three groups that must be below one NUMA node, on trees of seven providers."""

from __future__ import annotations

from typing import Final

from bench.case import Case
from bench.flat import LIMITS, candidates_case

#: Two candidates for each tree: the GPU's NUMA node has two FPGAs.
NESTED: Final = (
    "resources_CPU=VCPU:2,MEMORY_MB:1024&resources_FPGA=FPGA:1&resources_GPU=PGPU:1"
    "&same_subtree=_CPU,_FPGA,_GPU&group_policy=none"
)


def nested_cases() -> list[Case]:
    """The query at each limit."""
    return [candidates_case("nested", "three groups", NESTED, limit) for limit in LIMITS]
