# SPDX-License-Identifier: Apache-2.0
"""Resource providers: bodies of POST and PUT, and the filters of the list."""

from __future__ import annotations

from berth.api.microversion import ByMicroversion
from berth.api.schema import QUERY, JSONSchema, Schema
from berth.api.schemas.fragments import UUID, UUID_OR_NULL, closed_object
from berth.model.names import PROVIDER_NAME_LENGTH_MAX

_NAME: JSONSchema = {"type": "string", "maxLength": PROVIDER_NAME_LENGTH_MAX}
_PARENT = {"parent_provider_uuid": UUID_OR_NULL}
_CREATE = {"name": _NAME, "uuid": UUID}
_UPDATE = {"name": _NAME}

CREATE = ByMicroversion(
    {
        0: Schema(closed_object(_CREATE, required=("name",))),
        14: Schema(closed_object({**_CREATE, **_PARENT}, required=("name",))),
    }
)

UPDATE = ByMicroversion(
    {
        0: Schema(closed_object(_UPDATE, required=("name",))),
        14: Schema(closed_object({**_UPDATE, **_PARENT}, required=("name",))),
    }
)

_TEXT: JSONSchema = {"type": "string"}
_FILTERS: list[tuple[int, dict[str, JSONSchema]]] = [
    (0, {"name": _TEXT, "uuid": UUID}),
    (3, {"member_of": _TEXT}),
    (4, {"resources": _TEXT}),
    (14, {"in_tree": UUID}),
    (18, {"required": _TEXT}),
]


def _filters_at(microversion: int) -> Schema:
    known: dict[str, JSONSchema] = {}
    for since, parameters in _FILTERS:
        if since <= microversion:
            known |= parameters
    return Schema(closed_object(known), subject=QUERY)


FILTERS = ByMicroversion({since: _filters_at(since) for since, _ in _FILTERS})
