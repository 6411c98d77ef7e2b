# SPDX-License-Identifier: Apache-2.0
"""The name of a custom resource class, as a body or out of the path."""

from __future__ import annotations

from berth.api.schema import Schema
from berth.api.schemas.fragments import CUSTOM_NAME_PATTERN, closed_object
from berth.model.names import NAME_LENGTH_MAX

CUSTOM_NAME = Schema(
    closed_object(
        {
            "name": {
                "type": "string",
                "pattern": CUSTOM_NAME_PATTERN,
                "maxLength": NAME_LENGTH_MAX,
            }
        },
        required=("name",),
    )
)
