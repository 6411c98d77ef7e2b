# SPDX-License-Identifier: Apache-2.0
"""Section 1.9: uuids in other spellings than lower-case and dashed.

berth takes all spellings of a uuid for the same thing, Placement compares many of them as sent;
so these steps have objects of their own, and come last. What is to be seen here is that nothing
fails, and that aggregates are shown as they were made.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.api import LATEST, Json
from compare.script.step import Step, get, make_provider, request, set_inventories, uid

_NAME = "spelling"
_COLLECTION = "/resource_providers"


def steps() -> Iterator[Step]:
    """Every place that takes a uuid, in every spelling."""
    yield make_provider(_NAME)
    yield set_inventories(_NAME, 0, {"VCPU": {"total": 100}})
    provider = uid(_NAME)
    for kind, (uuid, parent) in enumerate(
        zip(_spellings(uid("spelling-new")), _spellings(provider), strict=True)
    ):
        body: Json = {"name": f"spelling-{kind}", "uuid": uuid, "parent_provider_uuid": parent}
        yield request("POST", _COLLECTION, LATEST, body)
        yield request("POST", _COLLECTION, LATEST, {"name": f"spelling-{kind}", "uuid": uuid})
        yield from get(f"{_COLLECTION}/{parent}")
        yield from get(f"{_COLLECTION}?uuid={parent}")
        yield from get(f"{_COLLECTION}?in_tree={parent}")
        yield from get(f"/allocation_candidates?resources=VCPU:1&in_tree={parent}")
        yield request("DELETE", f"{_COLLECTION}/{uid('spelling-new')}")
    yield from _aggregates_as_sent()
    for generation, aggregate in enumerate(_spellings(uid("spelling-aggregate"))):
        body = {"aggregates": [aggregate], "resource_provider_generation": generation + 1}
        yield request("PUT", f"{_COLLECTION}/{provider}/aggregates", LATEST, body)
        yield from get(f"{_COLLECTION}?member_of={aggregate}")
        yield from get(f"/allocation_candidates?resources=VCPU:1&member_of={aggregate}")
    for consumer in _spellings(uid("spelling-consumer")):
        for holder in _spellings(provider):
            body = {
                "allocations": {holder: {"resources": {"VCPU": 1}}},
                "project_id": "spelling",
                "user_id": "spelling",
            }
            yield request("PUT", f"/allocations/{consumer}", "1.12", body)
            yield request("POST", "/allocations", "1.13", {consumer: body})
            yield from get(f"/allocations/{consumer}")
            yield request("DELETE", f"/allocations/{consumer}")


def _aggregates_as_sent() -> Iterator[Step]:
    """The spellings that berth keeps, each of an aggregate of its own: no difference is allowed."""
    name = "aggregates-as-sent"
    path = f"{_COLLECTION}/{uid(name)}/aggregates"
    yield make_provider(name)
    upper, bare, bare_upper = (uid(f"as-sent-{number}") for number in range(3))
    spelled = [upper.upper(), bare.replace("-", ""), bare_upper.replace("-", "").upper()]
    lists = [[text] for text in spelled] + [spelled, spelled[1:], []]
    for generation, aggregates in enumerate(lists):
        body: Json = {"aggregates": aggregates, "resource_provider_generation": generation}
        yield request("PUT", path, LATEST, body)
        yield from get(path)
        for aggregate in spelled:
            yield from get(f"{_COLLECTION}?member_of={aggregate}")


def _spellings(uuid: str) -> list[str]:
    """The ways to write a uuid that Python's parser understands."""
    bare = uuid.replace("-", "")
    return [uuid.upper(), bare, "-".join(bare), "{" + uuid + "}", f"urn:uuid:{uuid}"]
