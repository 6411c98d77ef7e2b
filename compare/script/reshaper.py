# SPDX-License-Identifier: Apache-2.0
"""Section 12: the reshaper."""

from __future__ import annotations

from collections.abc import Iterator

from bench.api import LATEST, Json
from compare.script.step import Step, claim, get, make_provider, request, set_inventories, uid

_ROOT, _CHILD = "reshape-root", "reshape-child"


def steps() -> Iterator[Step]:
    """Bad bodies, then a move in several steps with a look at everything after each."""
    yield make_provider(_ROOT)
    yield make_provider(_CHILD, _ROOT)
    yield set_inventories(
        _ROOT, 0, {"VCPU": {"total": 8}, "VGPU": {"total": 2}, "DISK_GB": {"total": 9}}
    )
    yield claim("reshape-1", {_ROOT: {"VCPU": 1, "VGPU": 1}})
    yield claim("reshape-2", {_ROOT: {"VGPU": 1}})
    for version in ("1.30", "1.34", "1.38", LATEST):
        for body in _bad_bodies():
            yield request("POST", "/reshaper", version, body)
    for body in _moves():
        yield request("POST", "/reshaper", LATEST, body)
        yield from _look()


def _look() -> Iterator[Step]:
    for name in (_ROOT, _CHILD):
        yield from get(f"/resource_providers/{uid(name)}/inventories")
        yield from get(f"/resource_providers/{uid(name)}/allocations")
        yield from get(f"/resource_providers/{uid(name)}/usages")
    for consumer in ("reshape-1", "reshape-2", "reshape-3"):
        yield from get(f"/allocations/{uid(consumer)}")


def _inventories(generation: int, **totals: int) -> Json:
    return {
        "resource_provider_generation": generation,
        "inventories": {name: {"total": total} for name, total in totals.items()},
    }


def _allocations(generation: int | None, held: dict[str, dict[str, int]]) -> dict[str, Json]:
    return {
        "allocations": {uid(name): {"resources": dict(amounts)} for name, amounts in held.items()},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


def _bad_bodies() -> list[Json]:
    root, one = uid(_ROOT), uid("reshape-1")
    good = _inventories(99, VCPU=1)
    return [
        {},
        {"inventories": {}, "allocations": {}},
        {"inventories": {root: good}},
        {"allocations": {}},
        {"inventories": {root: good}, "allocations": {}, "extra": 1},
        {"inventories": {"junk": good}, "allocations": {}},
        {"inventories": {root: {}}, "allocations": {}},
        {"inventories": {root: {"inventories": {}}}, "allocations": {}},
        {"inventories": {root: {"resource_provider_generation": 99}}, "allocations": {}},
        {"inventories": {root: good}, "allocations": {"junk": {}}},
        {"inventories": {root: good}, "allocations": {one: {}}},
        {"inventories": {root: good}, "allocations": []},
        {"inventories": {root: good}, "allocations": {}},
        {"inventories": {uid("nobody"): good}, "allocations": {}},
        {"inventories": {uid("nobody"): good, root: good}, "allocations": {}},
        {"inventories": {root: _inventories(2, VCPU=0)}, "allocations": {}},
        {
            "inventories": {root: _inventories(99, VCPU=1)},
            "allocations": {one: _allocations(99, {"nobody": {"VCPU": 1}})},
        },
        {
            "inventories": {root: good},
            "allocations": {one: {**_allocations(1, {_ROOT: {"VCPU": 1}}), "mappings": {}}},
        },
    ]


def _moves() -> list[Json]:
    root, child, one, two = uid(_ROOT), uid(_CHILD), uid("reshape-1"), uid("reshape-2")
    three = uid("reshape-3")
    whole = _inventories(3, VCPU=8, DISK_GB=9)
    gpus = _inventories(0, VGPU=2)
    moved_one = _allocations(1, {_ROOT: {"VCPU": 1}, _CHILD: {"VGPU": 1}})
    moved_two = _allocations(1, {_CHILD: {"VGPU": 1}})
    return [
        {"inventories": {root: whole}, "allocations": {}},
        {"inventories": {root: whole, child: gpus}, "allocations": {one: moved_one}},
        {
            "inventories": {root: whole, child: gpus},
            "allocations": {one: moved_one, two: _allocations(9, {_CHILD: {"VGPU": 1}})},
        },
        {
            "inventories": {root: whole, child: gpus},
            "allocations": {one: moved_one, two: _allocations(None, {_CHILD: {"VGPU": 1}})},
        },
        {
            "inventories": {root: whole, child: gpus},
            "allocations": {one: moved_one, two: _allocations(1, {"nobody": {"VGPU": 1}})},
        },
        {
            "inventories": {root: whole, child: gpus},
            "allocations": {one: moved_one, two: _allocations(1, {_CHILD: {"CUSTOM_NO": 1}})},
        },
        {
            "inventories": {root: whole, child: gpus},
            "allocations": {one: moved_one, two: _allocations(1, {_CHILD: {"VGPU": 2}})},
        },
        {
            "inventories": {root: whole, child: gpus},
            "allocations": {one: moved_one, two: _allocations(1, {_CHILD: {"PCPU": 2}})},
        },
        {
            "inventories": {root: _inventories(3, VCPU=8, CUSTOM_NO=1), child: gpus},
            "allocations": {one: moved_one, two: moved_two},
        },
        {
            "inventories": {root: whole, child: gpus},
            "allocations": {one: moved_one, two: moved_two},
        },
        {
            "inventories": {root: whole, child: gpus},
            "allocations": {one: moved_one, two: moved_two},
        },
        {"inventories": {child: _inventories(3, VGPU=1)}, "allocations": {}},
        {"inventories": {child: _inventories(5)}, "allocations": {}},
        {
            "inventories": {child: _inventories(5)},
            "allocations": {one: _allocations(2, {}), two: _allocations(2, {})},
        },
        {
            "inventories": {
                root: {
                    "resource_provider_generation": 6,
                    "inventories": {"VCPU": {"total": 4, "reserved": 9}},
                }
            },
            "allocations": {},
        },
        {
            "inventories": {root: _inventories(8, VCPU=4)},
            "allocations": {three: _allocations(None, {_ROOT: {"VCPU": 4}})},
        },
    ]
