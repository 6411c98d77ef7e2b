# SPDX-License-Identifier: Apache-2.0
"""Section 9: usages of a provider and of a project."""

from __future__ import annotations

from collections.abc import Iterator

from bench.api import LATEST, Json
from compare.script.step import Step, claim, get, make_provider, request, set_inventories, uid


def steps() -> Iterator[Step]:
    """A small project with typed and untyped consumers, asked in every way."""
    yield make_provider("usages")
    yield set_inventories("usages", 0, {"VCPU": {"total": 99}, "DISK_GB": {"total": 99}})
    yield claim("usages-1", {"usages": {"VCPU": 1}}, project="up", user="uu")
    yield claim("usages-2", {"usages": {"VCPU": 2, "DISK_GB": 3}}, project="up", user="uv")
    yield claim("usages-3", {"usages": {"DISK_GB": 4}}, project="up", consumer_type="ALL")
    untyped: Json = {
        "allocations": {uid("usages"): {"resources": {"VCPU": 5}}},
        "project_id": "up",
        "user_id": "uu",
        "consumer_generation": None,
    }
    yield request("PUT", f"/allocations/{uid('usages-4')}", "1.37", untyped)
    yield from get(f"/resource_providers/{uid('usages')}/usages", "1.0", "1.14", "1.15", LATEST)
    queries = [
        "",
        "project_id=up",
        "project_id=nobody",
        "project_id=",
        "project_id=" + "x" * 256,
        "project_id=nobody&project_id=up",
        "user_id=uu",
        "project_id=up&user_id=uu",
        "project_id=up&user_id=",
        "project_id=up&user_id=nobody",
        "project_id=up&consumer_type=INSTANCE",
        "project_id=up&consumer_type=all",
        "project_id=up&consumer_type=unknown",
        "project_id=up&consumer_type=ALL",
        "project_id=up&consumer_type=UNKNOWN",
        "project_id=up&consumer_type=NOBODY",
        "project_id=up&consumer_type=instance",
        "project_id=up&consumer_type=allfoo",
        "project_id=up&consumer_type=",
        "project_id=up&consumer_type=" + "A" * 256,
        "project_id=up&user_id=uu&consumer_type=all",
        "project_id=nobody&consumer_type=all",
        "project_id=nobody&consumer_type=unknown",
        "project_id=up&foo=1",
    ]
    for query in queries:
        for version in ("1.9", "1.15", "1.37", "1.38", LATEST):
            yield request("GET", f"/usages?{query}" if query else "/usages", version)
