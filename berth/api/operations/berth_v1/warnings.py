# SPDX-License-Identifier: Apache-2.0
"""The warnings of answers. Source: spec/beyond.md 1.4 and 3.6."""

from __future__ import annotations

from typing import Final

from berth.api.operation import component
from berth.api.operations.fragments import TEXT, described, open_object

WARNING: Final = component(
    "Warning",
    open_object(
        {
            "code": described(
                TEXT,
                "`unknown_provider`, `unknown_aggregate`, `unknown_drain`,"
                " `unknown_label`, `limit_ignored`, `relation_without_effect`,"
                " `request_unknown`; there may be others in later versions.",
            ),
            "at": described(TEXT, "The JSON pointer into the request."),
        },
        optional={"reference": TEXT},
    ),
)
