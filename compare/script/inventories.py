# SPDX-License-Identifier: Apache-2.0
"""Section 5: inventories."""

from __future__ import annotations

from collections.abc import Iterator

from bench.api import LATEST, Json
from compare.script.step import Step, claim, get, make_provider, request, uid

#: Records that are good, doubtful or bad, each to be sent in every place that takes a record.
_RECORDS: list[dict[str, Json]] = [
    {"total": 16},
    {
        "total": 16,
        "reserved": 1,
        "min_unit": 2,
        "max_unit": 8,
        "step_size": 2,
        "allocation_ratio": 1.5,
    },
    {},
    {"reserved": 1},
    {"total": 0},
    {"total": -1},
    {"total": 2147483647},
    {"total": 2147483648},
    {"total": 1.0},
    {"total": 1e3},
    {"total": 1.5},
    {"total": "16"},
    {"total": None},
    {"total": True},
    {"total": [1]},
    {"total": 16, "reserved": -1},
    {"total": 16, "reserved": 16},
    {"total": 16, "reserved": 17},
    {"total": 16, "reserved": None},
    {"total": 16, "reserved": 2147483648},
    {"total": 16, "min_unit": 0},
    {"total": 16, "max_unit": 0},
    {"total": 16, "step_size": 0},
    {"total": 16, "min_unit": 17},
    {"total": 16, "min_unit": 2147483648},
    {"total": 16, "max_unit": 2147483648},
    {"total": 16, "step_size": 2147483648},
    {"total": 16, "min_unit": 8, "max_unit": 2},
    {"total": 16, "allocation_ratio": 0},
    {"total": 16, "allocation_ratio": 2},
    {"total": 16, "allocation_ratio": -1.0},
    {"total": 16, "reserved": 20, "allocation_ratio": -1.0},
    {"total": 1, "allocation_ratio": 0.5},
    {"total": 16, "allocation_ratio": 3.40282e38},
    {"total": 16, "allocation_ratio": 3.5e38},
    {"total": 16, "allocation_ratio": "1.0"},
    {"total": 16, "allocation_ratio": None},
    {"total": 16, "unknown": 1},
    {"total": 16, "unknown": 1, "other": 2},
    {"total": 16, "resource_provider_generation": "x"},
]

_CLASS_NAMES = ["CUSTOM_NO", "NOPE", "vcpu", "VCPU ", "", "V-CPU", "VCPU\n", "ü", "A" * 256]


def steps() -> Iterator[Step]:
    """Every way to write an inventory, with good and bad records, and every way to remove one."""
    yield from _records()
    yield from _collection()
    yield from _single()
    yield from _in_use()


def _records() -> Iterator[Step]:
    for place, (version, record) in enumerate(
        (version, record) for version in ("1.0", "1.25", "1.26", LATEST) for record in _RECORDS
    ):
        name = f"record-{place}"
        base = f"/resource_providers/{uid(name)}/inventories"
        yield make_provider(name)
        yield request("POST", base, version, {"resource_class": "VCPU", **record})
        yield from get(base, "1.0", LATEST)
        yield request("DELETE", base)
        whole: Json = {"resource_provider_generation": 1, "inventories": {"VCPU": record}}
        yield request("PUT", base, version, whole)
        # The generation is 1 or 2 now: one of these two is a conflict, the other is judged.
        for generation in (2, 1, 3):
            whole = {"resource_provider_generation": generation, "inventories": {"VCPU": record}}
            yield request("PUT", base, version, whole)
        for generation in (3, 2, 4):
            body: Json = {"resource_provider_generation": generation, **record}
            yield request("PUT", f"{base}/VCPU", version, body)
        yield from get(f"{base}/VCPU", "1.0", LATEST)


def _collection() -> Iterator[Step]:
    name = "inventories"
    base = f"/resource_providers/{uid(name)}/inventories"
    yield make_provider(name)
    yield from get(base, "1.0", "1.14", "1.15", LATEST)
    bodies: list[Json] = [
        {"inventories": {}},
        {"resource_provider_generation": 0},
        {"resource_provider_generation": "0", "inventories": {}},
        {"resource_provider_generation": None, "inventories": {}},
        {"resource_provider_generation": 5, "inventories": {}},
        {"resource_provider_generation": 0, "inventories": []},
        {"resource_provider_generation": 0, "inventories": None},
        {"resource_provider_generation": 0, "inventories": {"VCPU": 4}},
        {"resource_provider_generation": 0, "inventories": {"VCPU": None}},
        {"resource_provider_generation": 0, "inventories": {}, "extra": 1},
        {"resource_provider_generation": 5, "inventories": {"CUSTOM_NO": {"total": 1}}},
    ]
    for class_name in _CLASS_NAMES:
        bodies.append(
            {"resource_provider_generation": 0, "inventories": {class_name: {"total": 4}}}
        )
    for body in bodies:
        for version in ("1.0", "1.22", LATEST):
            yield request("PUT", base, version, body)
    sets: list[Json] = [
        {"VCPU": {"total": 4}, "MEMORY_MB": {"total": 1024, "allocation_ratio": 1}},
        {"VCPU": {"total": 4}, "MEMORY_MB": {"total": 1024, "allocation_ratio": 1}},
        {"VCPU": {"total": 4.0, "resource_provider_generation": 77}},
        {},
        {},
        {"DISK_GB": {"total": 10}},
    ]
    for generation, inventories in enumerate(sets):
        whole: Json = {"resource_provider_generation": generation, "inventories": inventories}
        yield request("PUT", base, ("1.0", "1.15", LATEST)[generation % 3], whole)
        yield request("PUT", base, LATEST, whole)
        yield from get(base, "1.0", LATEST)
    for version in ("1.4", "1.5", "1.22", LATEST):
        yield request("DELETE", base, version)
        yield from get(base)


def _single() -> Iterator[Step]:
    name = "inventory"
    base = f"/resource_providers/{uid(name)}/inventories"
    yield make_provider(name)
    for version in ("1.0", "1.14", "1.15", LATEST):
        yield request("POST", base, version, {"resource_class": "VCPU", "total": 4})
        yield request("POST", base, version, {"resource_class": "VCPU", "total": 4})
        yield from get(f"{base}/VCPU", "1.0", "1.14", "1.15", LATEST)
        yield request("DELETE", f"{base}/VCPU", version)
        yield request("DELETE", f"{base}/VCPU", version)
        yield from get(f"{base}/VCPU", "1.0", LATEST)
    for class_name in _CLASS_NAMES:
        yield request("POST", base, LATEST, {"resource_class": class_name, "total": 4})
    for resource_class in (None, 5, "NOPE"):
        yield request("POST", base, LATEST, {"resource_class": resource_class, "total": 4})
    yield request("POST", base, LATEST, {"resource_class": "CUSTOM_NO", "total": 4, "reserved": 9})
    yield request(
        "POST",
        base,
        LATEST,
        {"resource_class": "PCPU", "total": 4, "resource_provider_generation": 99},
    )
    for class_name in ("PCPU", "VCPU", "CUSTOM_NO", "vcpu", "%C3%BC", "VCPU%0A"):
        yield from get(f"{base}/{class_name}", "1.0", LATEST)
        for generation in (99, 9):
            body: Json = {"resource_provider_generation": generation, "total": 9}
            yield request("PUT", f"{base}/{class_name}", LATEST, body)
            yield request("PUT", f"{base}/{class_name}", "1.0", body)
        yield request("PUT", f"{base}/{class_name}", LATEST, {"total": 9})
        yield request(
            "PUT",
            f"{base}/{class_name}",
            LATEST,
            {"resource_class": "PCPU", "total": 9, "resource_provider_generation": 9},
        )
        if class_name != "PCPU":
            yield request("DELETE", f"{base}/{class_name}", LATEST)
            yield request("DELETE", f"{base}/{class_name}", "1.0")


def _in_use() -> Iterator[Step]:
    name = "inventory-in-use"
    base = f"/resource_providers/{uid(name)}/inventories"
    yield make_provider(name)
    yield request("POST", base, LATEST, {"resource_class": "VCPU", "total": 8})
    yield request("POST", base, LATEST, {"resource_class": "MEMORY_MB", "total": 8})
    yield claim("inventory-in-use-consumer", {name: {"VCPU": 4, "MEMORY_MB": 1}})
    yield from get(base)
    for version in ("1.0", "1.22", "1.23", LATEST):
        yield request("DELETE", f"{base}/VCPU", version)
        if version != "1.0":
            yield request("DELETE", base, version)
        for inventories in ({}, {"MEMORY_MB": {"total": 8}}):
            body: Json = {"resource_provider_generation": 3, "inventories": inventories}
            yield request("PUT", base, version, body)
    shrunk: Json = {"resource_provider_generation": 3, "total": 2}
    yield request("PUT", f"{base}/VCPU", LATEST, shrunk)
    yield from get(base)
    yield from get(f"/resource_providers/{uid(name)}/usages")
