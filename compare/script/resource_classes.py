# SPDX-License-Identifier: Apache-2.0
"""Section 8: resource classes."""

from __future__ import annotations

from collections.abc import Iterator

from bench.api import LATEST, Json
from compare.script.step import Step, get, make_provider, request, set_inventories

_BAD_NAMES: list[Json] = [
    "VCPU",
    "CUSTOM_",
    "CUSTOM_lower",
    "custom_x",
    "NOPE",
    "",
    None,
    5,
    "CUSTOM_A\n",
    "CUSTOM_ü",
    "CUSTOM_" + "A" * 249,
]

_PATH_NAMES = [
    "VCPU",
    "CUSTOM_",
    "CUSTOM_lower",
    "custom_x",
    "NOPE",
    "CUSTOM_A%0A",
    "CUSTOM_%C3%BC",
    "CUSTOM_%22",
    "CUSTOM_%5C",
    "CUSTOM_A.json",
    "CUSTOM_" + "A" * 248,
    "CUSTOM_" + "A" * 249,
    "CUSTOM_RC_PUT",
]


def steps() -> Iterator[Step]:
    """Creation by POST and by PUT in both meanings, then deletion."""
    yield from get("/resource_classes", "1.2", "1.14", "1.15", LATEST)
    for version in ("1.2", "1.7", "1.23", LATEST):
        name = f"CUSTOM_RC_{version.replace('.', '_')}"
        yield request("POST", "/resource_classes", version, {"name": name})
        yield request("POST", "/resource_classes", version, {"name": name})
        yield from get(f"/resource_classes/{name}", "1.2", "1.14", "1.15", LATEST)
    for bad_name in _BAD_NAMES:
        yield request("POST", "/resource_classes", LATEST, {"name": bad_name})
        yield request("PUT", "/resource_classes/CUSTOM_RC_1_2", "1.6", {"name": bad_name})
    bad_bodies: list[Json] = [{}, {"name": "CUSTOM_OK", "extra": 1}, ["CUSTOM_OK"]]
    for body in bad_bodies:
        yield request("POST", "/resource_classes", LATEST, body)
        yield request("PUT", "/resource_classes/CUSTOM_RC_1_2", "1.6", body)
    for old, new in (
        ("CUSTOM_RC_1_2", "CUSTOM_RC_1_2"),
        ("CUSTOM_RC_1_2", "CUSTOM_RC_RENAMED"),
        ("CUSTOM_RC_RENAMED", "CUSTOM_RC_1_7"),
        ("CUSTOM_RC_NOBODY", "CUSTOM_RC_X"),
        ("VCPU", "CUSTOM_RC_X"),
        ("nope", "CUSTOM_RC_X"),
    ):
        yield request("PUT", f"/resource_classes/{old}", "1.2", {"name": new})
        yield request("PUT", f"/resource_classes/{old}", "1.6", {"name": new})
    for path_name in _PATH_NAMES:
        for version in ("1.7", LATEST):
            yield request("GET", f"/resource_classes/{path_name}", version)
            yield request("PUT", f"/resource_classes/{path_name}", version)
            yield request("PUT", f"/resource_classes/{path_name}", version)
            yield request("GET", f"/resource_classes/{path_name}", version)
            yield request("DELETE", f"/resource_classes/{path_name}", version)
            yield request("DELETE", f"/resource_classes/{path_name}", version)
    yield request("PUT", "/resource_classes/CUSTOM_RC_USED")
    yield make_provider("resource-class-user")
    yield set_inventories("resource-class-user", 0, {"CUSTOM_RC_USED": {"total": 1}})
    yield request("DELETE", "/resource_classes/CUSTOM_RC_USED", "1.2")
    yield request("DELETE", "/resource_classes/CUSTOM_RC_USED")
    yield request(
        "PUT", "/resource_classes/CUSTOM_RC_USED", "1.6", {"name": "CUSTOM_RC_STILL_USED"}
    )
    yield from get("/resource_classes")
