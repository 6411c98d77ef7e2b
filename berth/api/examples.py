# SPDX-License-Identifier: Apache-2.0
"""The small fleet that the examples of all operations share."""

from __future__ import annotations

PROVIDER = "4e8e5957-649f-477b-9e5b-f1f75b21c03c"
CONSUMER = "b6b065cc-fcd9-4342-a7b0-2aed2d146518"
AGGREGATE = "5e08ea53-c4c6-448e-9334-ac4953de3cfa"
REQUEST_ID = "req-11111111-2222-4333-8444-555555555555"

GENERATION = {"resource_provider_generation": 3}
RECORD = {
    "total": 64,
    "reserved": 2,
    "min_unit": 1,
    "max_unit": 64,
    "step_size": 1,
    "allocation_ratio": 4.0,
}
RESOURCES = {"VCPU": 2, "MEMORY_MB": 4096}
TRAITS = {"traits": ["HW_CPU_X86_AVX2", "CUSTOM_RACK_7"]}
OWNERS = {
    "project_id": "demo",
    "user_id": "alice",
    "consumer_generation": None,
    "consumer_type": "INSTANCE",
}
