# SPDX-License-Identifier: Apache-2.0
"""The reshaper (1.30): inventories and allocations in one transaction.

Source: spec/rest-api.md 12.
"""

from __future__ import annotations

from berth.api.microversion import ByMicroversion
from berth.api.operation import DONE, Body, Operation, Rule, always
from berth.api.operations import examples
from berth.api.operations.allocations import AT_28, AT_34, AT_38, CLAIM, TAG
from berth.api.operations.fragments import UUID_36_PATTERN, exact_object, object_by
from berth.api.operations.inventories import REPLACEMENT
from berth.api.schema import JSONSchema, Schema


def _reshape(of_one_consumer: JSONSchema) -> Schema:
    return Schema(
        exact_object(
            {
                "inventories": object_by(UUID_36_PATTERN, REPLACEMENT, at_least_one=True),
                "allocations": object_by(UUID_36_PATTERN, of_one_consumer),
            }
        )
    )


RESHAPE = ByMicroversion({30: _reshape(AT_28), 34: _reshape(AT_34), 38: _reshape(AT_38)})

_RECORDS = {**examples.GENERATION, "inventories": {"VCPU": examples.RECORD}}

OPERATIONS = (
    Operation(
        "POST",
        "/reshaper",
        handler="reshaper:reshape",
        rule=Rule(
            "placement:reshaper:reshape",
            "rule:service_api or rule:agent_api",
            "Move inventories and allocations in one transaction.",
        ),
        tag=TAG,
        summary="Move inventories and allocations in one transaction",
        details="Replaces the inventories of the providers and the allocations of the consumers "
        "in the request.",
        since=30,
        body=Body(
            RESHAPE,
            always(
                {
                    "inventories": {examples.PROVIDER: _RECORDS},
                    "allocations": {examples.CONSUMER: CLAIM},
                }
            ),
        ),
        answers=DONE,
        conflict="The generation of a provider or a consumer is outdated, or a provider does not "
        "have the capacity.",
    ),
)
