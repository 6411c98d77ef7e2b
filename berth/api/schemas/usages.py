# SPDX-License-Identifier: Apache-2.0
"""The parameters of the usages of a project."""

from __future__ import annotations

from berth.api.microversion import ByMicroversion
from berth.api.schema import QUERY, JSONSchema, Schema
from berth.api.schemas.fragments import EXTERNAL_ID, closed_object
from berth.model.names import NAME_LENGTH_MAX

#: Also what only begins with `all`, which matches nothing, as in the original.
_TYPE_FILTER: JSONSchema = {
    "type": "string",
    "pattern": r"^[A-Z0-9_]+\Z|^all|^unknown\Z",
    "minLength": 1,
    "maxLength": NAME_LENGTH_MAX,
}
_OWNERS: dict[str, JSONSchema] = {"project_id": EXTERNAL_ID, "user_id": EXTERNAL_ID}

FILTERS = ByMicroversion(
    {
        9: Schema(closed_object(_OWNERS, required=("project_id",)), subject=QUERY),
        38: Schema(
            closed_object({**_OWNERS, "consumer_type": _TYPE_FILTER}, required=("project_id",)),
            subject=QUERY,
        ),
    }
)
