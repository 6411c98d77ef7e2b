# SPDX-License-Identifier: Apache-2.0
"""The closed set of query keys of the candidates, and the values that a schema can judge.

Source: spec/allocation-candidates.md 2 and 3.
"""

from __future__ import annotations

from typing import Any

from berth.api.microversion import ByMicroversion
from berth.api.schema import QUERY, JSONSchema, Schema

_TEXT: JSONSchema = {"type": "string"}
_LIMIT: JSONSchema = {"type": ["integer", "string"], "pattern": r"^[1-9][0-9]*\Z"}
_GROUP_POLICY: JSONSchema = {"type": "string", "enum": ["none", "isolate"]}

#: Parameters of a group, by the microversion that brought them.
GROUP_KEYS = {"resources": 10, "required": 17, "member_of": 21, "in_tree": 31}
_REQUEST_KEYS: dict[str, tuple[int, JSONSchema]] = {
    "limit": (16, _LIMIT),
    "group_policy": (25, _GROUP_POLICY),
    "root_required": (35, _TEXT),
    "same_subtree": (36, _TEXT),
}
GRANULAR_SINCE = 25
_STRING_SUFFIX_SINCE = 33


def _keys_at(microversion: int) -> Schema:
    properties = {
        key: schema for key, (since, schema) in _REQUEST_KEYS.items() if since <= microversion
    }
    group_keys = [key for key, since in GROUP_KEYS.items() if since <= microversion]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if microversion < GRANULAR_SINCE:
        properties |= dict.fromkeys(group_keys, _TEXT)
        schema["required"] = ["resources"]
    schema["additionalProperties"] = False
    if microversion >= GRANULAR_SINCE:
        suffix = "[1-9][0-9]*" if microversion < _STRING_SUFFIX_SINCE else "[a-zA-Z0-9_-]{1,64}"
        schema["patternProperties"] = {rf"^{key}({suffix})?\Z": _TEXT for key in group_keys}
    return Schema(schema, subject=QUERY)


KEYS = ByMicroversion({minor: _keys_at(minor) for minor in (10, 16, 17, 21, 25, 31, 33, 35, 36)})
