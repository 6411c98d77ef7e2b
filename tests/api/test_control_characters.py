# SPDX-License-Identifier: Apache-2.0
"""Names of berth's own API have no characters that cannot be seen."""

from __future__ import annotations

from urllib.parse import quote
from uuid import uuid4

import pytest

from tests.api.worlds import new_name, provider
from tests.client import Client

HOSTILE = ["a\x1b[31m", "a\x07", "a\x9b", "a\nb", "\u202egpj", "a\u200b"]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_or_label_has_none(api: Client, text: str) -> None:
    """The refusal points at the value; a provider that has such a name from Placement's API keeps
    it."""
    refused = api.put(f"/berth/v1/aggregates/{uuid4()}", json={"labels": {"zone": text}})
    assert refused.status == 400
    assert "/labels/zone must not have control characters" in refused.detail
    consumer = f"/berth/v1/consumers/web/{quote(text)}"
    assert api.put(consumer, json={"user_id": "u", "allocations": {}}).status == 400
    uuid = str(uuid4())
    name = f"{text}{uuid}"
    path = f"/berth/v1/trees/{uuid}"
    refused = api.put(path, json={"providers": [{"uuid": uuid, "name": name}]})
    assert refused.status == 400
    assert "/providers/0/name must not have control characters" in refused.detail
    assert api.post("/resource_providers", json={"name": name, "uuid": uuid}).status == 200
    kept = {"providers": [{"uuid": uuid, "name": name, "parent": None}]}
    assert api.put(path, json=kept).status == 200


@pytest.mark.parametrize(
    "text", [*HOSTILE[:3], HOSTILE[4], "4.2\n\tin r7, \U0001f468\u200d\U0001f527"]
)
def test_text_for_people_has_line_breaks_and_tabs_only(api: Client, text: str) -> None:
    """The reason of a drain, and the description of a flavor."""
    drain = {"providers": [provider(api, {"VCPU": 8})], "reason": text}
    flavor = {"request": {"query": "resources=VCPU:1"}, "description": text}
    for kind, member, sent in (("drains", "reason", drain), ("flavors", "description", flavor)):
        path = f"/berth/v1/{kind}/{new_name()}"
        answered = api.put(path, json=sent)
        if text not in HOSTILE:
            assert (answered.status, answered.json[member]) == (201, text)
            assert api.delete(path).status == 204
        else:
            assert answered.status == 400
            assert f"/{member} must not have control characters" in answered.detail
