# SPDX-License-Identifier: Apache-2.0
"""Pieces that several schemas of `/berth/v1` share."""

from __future__ import annotations

from typing import Final

from berth.api.schema import JSONSchema
from berth.model.names import NAME_LENGTH_MAX

REVISION_EXAMPLE: Final = "b1.w7rRkK2tq1MBjgI"
REVISION: JSONSchema = {
    "type": "string",
    "pattern": r"^b1\.[A-Za-z0-9_-]+\Z",
    "description": "The state of the database that the answer was made from.",
}

#: A name within a project: paths have it as a segment.
CONSUMER_NAME: JSONSchema = {
    "type": "string",
    "minLength": 1,
    "maxLength": NAME_LENGTH_MAX,
    "pattern": r"^[^/\x00-\x1f\x7f]+\Z",
    "description": "A name within the project, without a slash.",
}
