# SPDX-License-Identifier: Apache-2.0
"""Pieces that several schemas of `/berth/v1` share."""

from __future__ import annotations

from typing import Final

from berth.api.schema import JSONSchema

REVISION_EXAMPLE: Final = "b1.w7rRkK2tq1MBjgI"
REVISION: JSONSchema = {
    "type": "string",
    "pattern": r"^b1\.[A-Za-z0-9_-]+\Z",
    "description": "The state of the database that the answer was made from.",
}
