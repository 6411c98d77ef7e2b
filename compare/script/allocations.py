# SPDX-License-Identifier: Apache-2.0
"""Section 10: allocations by consumer, by provider, one by one and many at once."""

from __future__ import annotations

from collections.abc import Iterator

from bench.api import LATEST, Json
from compare.script.step import Step, claim, get, make_provider, request, set_inventories, uid

_VERSIONS = [
    "1.0",
    "1.7",
    "1.8",
    "1.11",
    "1.12",
    "1.27",
    "1.28",
    "1.33",
    "1.34",
    "1.37",
    "1.38",
    LATEST,
]


def steps() -> Iterator[Step]:
    """Bodies at every version, then generations, capacity and moves."""
    yield from _bodies()
    yield from _generations()
    yield from _checks()
    yield from _many()
    yield from _consumers()


def _minor(version: str) -> int:
    return int(version.partition(".")[2])


def _body(version: str, provider: str, resources: Json, **changes: Json) -> dict[str, Json]:
    """The body of PUT /allocations in the form of `version`; a change to "-" removes a key."""
    minor = _minor(version)
    body: dict[str, Json] = {}
    if minor < 12:
        body["allocations"] = [{"resource_provider": {"uuid": provider}, "resources": resources}]
    else:
        body["allocations"] = {provider: {"resources": resources}}
    if minor >= 8:
        body |= {"project_id": "allocations-project", "user_id": "allocations-user"}
    if minor >= 28:
        body["consumer_generation"] = None
    if minor >= 38:
        body["consumer_type"] = "INSTANCE"
    return {name: value for name, value in (body | changes).items() if value != "-"}


def _prepare(name: str) -> Iterator[Step]:
    yield make_provider(name)
    yield set_inventories(
        name,
        0,
        {
            "VCPU": {"total": 1000},
            "MEMORY_MB": {"total": 1000, "min_unit": 4, "max_unit": 16, "step_size": 4},
            "DISK_GB": {"total": 10, "reserved": 2, "allocation_ratio": 1.5},
        },
    )


def _bodies() -> Iterator[Step]:
    for version in _VERSIONS:
        name = f"allocations-{version}"
        provider = uid(name)
        yield from _prepare(name)
        mappings: Json = {"": [provider], "_1": [provider]}
        variants: list[Json] = [
            _body(version, provider, {"VCPU": 1}),
            _body(version, provider, {"VCPU": 1, "MEMORY_MB": 8}),
            _body(version, provider, {}),
            _body(version, provider, None),
            _body(version, provider, {"VCPU": 0}),
            _body(version, provider, {"VCPU": -1}),
            _body(version, provider, {"VCPU": "1"}),
            _body(version, provider, {"VCPU": 1.5}),
            _body(version, provider, {"VCPU": 2.0}),
            _body(version, provider, {"VCPU": True}),
            _body(version, provider, {"vcpu": 1}),
            _body(version, provider, {"CUSTOM_NO": 1}),
            _body(version, provider, {"NET_BW_EGR_KILOBIT_PER_SEC": 1}),
            _body(version, provider, {"VCPU": 5000}),
            _body(version, provider, {"MEMORY_MB": 1}),
            _body(version, provider, {"MEMORY_MB": 20}),
            _body(version, provider, {"MEMORY_MB": 6}),
            _body(version, provider, {"DISK_GB": 13}),
            _body(version, uid("nobody"), {"VCPU": 1}),
            _body(version, "junk", {"VCPU": 1}),
            _body(version, provider, {"VCPU": 1}, allocations="-"),
            _body(version, provider, {"VCPU": 1}, allocations={}),
            _body(version, provider, {"VCPU": 1}, allocations=[]),
            _body(version, provider, {"VCPU": 1}, allocations=None),
            _body(version, provider, {"VCPU": 1}, allocations={provider: {}}),
            _body(version, provider, {"VCPU": 1}, allocations=[{}]),
            _body(
                version,
                provider,
                {},
                allocations={provider: {"resources": {"VCPU": 1}, "generation": 5}},
            ),
            _body(
                version,
                provider,
                {},
                allocations={provider: {"resources": {"VCPU": 1}, "generation": "5"}},
            ),
            _body(
                version,
                provider,
                {},
                allocations={provider: {"resources": {"VCPU": 1}, "extra": 1}},
            ),
            _body(version, provider, {"VCPU": 1}, project_id="-"),
            _body(version, provider, {"VCPU": 1}, user_id="-"),
            _body(version, provider, {"VCPU": 1}, project_id="p"),
            _body(version, provider, {"VCPU": 1}, project_id=""),
            _body(version, provider, {"VCPU": 1}, project_id=5),
            _body(version, provider, {"VCPU": 1}, project_id="x" * 256),
            _body(version, provider, {"VCPU": 1}, user_id="x" * 256),
            _body(version, provider, {"VCPU": 1}, consumer_generation="-"),
            _body(version, provider, {"VCPU": 1}, consumer_generation=0),
            _body(version, provider, {"VCPU": 1}, consumer_generation=7),
            _body(version, provider, {"VCPU": 1}, consumer_generation="1"),
            _body(version, provider, {"VCPU": 1}, mappings=mappings),
            _body(version, provider, {"VCPU": 1}, mappings={}),
            _body(version, provider, {"VCPU": 1}, mappings=None),
            _body(version, provider, {"VCPU": 1}, mappings={"_1": []}),
            _body(version, provider, {"VCPU": 1}, mappings={"_1": ["junk"]}),
            _body(version, provider, {"VCPU": 1}, mappings={"": 5}),
            _body(version, provider, {"VCPU": 1}, consumer_type="-"),
            _body(version, provider, {"VCPU": 1}, consumer_type="MIGRATION"),
            _body(version, provider, {"VCPU": 1}, consumer_type="lower"),
            _body(version, provider, {"VCPU": 1}, consumer_type=""),
            _body(version, provider, {"VCPU": 1}, consumer_type=None),
            _body(version, provider, {"VCPU": 1}, consumer_type="A" * 256),
            _body(version, provider, {"VCPU": 1}, extra=1),
        ]
        for place, body in enumerate(variants):
            consumer = uid(f"{name}-{place}")
            yield request("PUT", f"/allocations/{consumer}", version, body)
            yield from get(f"/allocations/{consumer}", "1.0", "1.12", "1.28", LATEST)
            many = uid(f"{name}-{place}-post")
            yield request("POST", "/allocations", version, {many: body})
            yield from get(f"/allocations/{many}")
        for bad in ("junk", "%C3%A9", uid(name)[:-1], "g" * 36):
            good = _body(version, provider, {"VCPU": 1})
            yield request("PUT", f"/allocations/{bad}", version, good)
            yield request("PUT", f"/allocations/{bad}", version, {})
            yield request("GET", f"/allocations/{bad}", version)
            if "%" not in bad:
                yield request("POST", "/allocations", version, {bad: good})
            yield request("DELETE", f"/allocations/{bad}", version)
        empties: list[Json] = [{}, [], {uid("q"): {}}, {uid("q"): None}]
        for empty in empties:
            yield request("POST", "/allocations", version, empty)
        yield from get(f"/resource_providers/{provider}/allocations", "1.0", "1.15", "1.28", LATEST)
        yield from get(f"/resource_providers/{provider}/usages", "1.0", "1.15")
        yield from get(f"/resource_providers/{provider}")
    for suffix in ("allocations", "usages"):
        yield from get(f"/resource_providers/{uid('nobody')}/{suffix}", "1.0", LATEST)


def _generations() -> Iterator[Step]:
    yield from _prepare("generations")
    yield from _prepare("generations-2")
    consumer = "generations-consumer"
    for generation in (5, 0, None, None, 0, 1, 1, 2):
        yield claim(consumer, {"generations": {"VCPU": 1}}, generation=generation)
        yield from get(f"/allocations/{uid(consumer)}")
        yield from get(f"/resource_providers/{uid('generations')}")
    yield claim(consumer, {"generations-2": {"VCPU": 2}}, generation=3)
    yield from get(f"/resource_providers/{uid('generations')}")
    yield from get(f"/resource_providers/{uid('generations-2')}")
    old: Json = _body("1.12", uid("generations"), {"VCPU": 3})
    yield request("PUT", f"/allocations/{uid(consumer)}", "1.12", old)
    yield from get(f"/allocations/{uid(consumer)}")
    oldest: Json = _body("1.0", uid("generations"), {"VCPU": 4})
    yield request("PUT", f"/allocations/{uid(consumer)}", "1.0", oldest)
    yield from get(f"/allocations/{uid(consumer)}")
    yield claim(consumer, {}, generation=1)
    yield claim(consumer, {}, generation=6)
    yield from get(f"/allocations/{uid(consumer)}")
    yield from get(f"/resource_providers/{uid('generations')}")
    yield claim(consumer, {"generations": {"VCPU": 1}}, generation=6)
    yield claim(consumer, {"generations": {"VCPU": 1}}, generation=None)
    for version in ("1.0", LATEST):
        yield request("DELETE", f"/allocations/{uid(consumer)}", version)
        yield request("DELETE", f"/allocations/{uid(consumer)}", version)
    yield from get(f"/resource_providers/{uid('generations')}")
    yield request("DELETE", "/allocations/anything")


def _checks() -> Iterator[Step]:
    """Which fault wins, and what over-capacity allows (10.6)."""
    yield from _prepare("checks")
    yield make_provider("checks-empty")
    yield claim("checks-1", {"checks": {"DISK_GB": 10}})
    yield claim("checks-2", {"checks": {"DISK_GB": 2}})
    yield claim("checks-3", {"checks": {"DISK_GB": 1}})
    yield claim("checks-3", {"checks-empty": {"VCPU": 1}})
    yield claim("checks-3", {"checks-empty": {"VCPU": 1}, "checks": {"VCPU": 1}})
    yield claim("checks-3", {"checks": {"PCPU": 1}})
    yield claim("checks-3", {"checks": {"PCPU": 1, "VCPU": 1}})
    yield claim("checks-3", {"checks": {"CUSTOM_NO": 1, "VCPU": 1}})
    yield claim("checks-3", {"nobody": {"CUSTOM_NO": 1}})
    yield claim("checks-3", {"nobody": {"CUSTOM_NO": 1}}, generation=4)
    yield claim("checks-3", {"checks": {"VCPU": 4000000000}})
    yield claim("checks-3", {"checks": {"VCPU": 2147483647}})
    yield set_inventories("checks", 3, {"DISK_GB": {"total": 6}, "VCPU": {"total": 10}})
    yield from get(f"/resource_providers/{uid('checks')}/usages")
    for amount, generation in (
        (11, 1),
        (10, 1),
        (9, 2),
        (10, 3),
        (9, 3),
        (1, 3),
        (2, 4),
        (4, 5),
        (5, 6),
    ):
        yield claim("checks-1", {"checks": {"DISK_GB": amount}}, generation=generation)
        yield from get(f"/allocations/{uid('checks-1')}")


def _many() -> Iterator[Step]:
    name = "many"
    provider = uid(name)
    yield make_provider(name)
    yield make_provider("many-2")
    yield set_inventories(name, 0, {"VCPU": {"total": 4}})
    yield set_inventories("many-2", 0, {"VCPU": {"total": 4}})
    one, two, three = uid("many-1"), uid("many-two"), uid("many-three")

    def body(uuid: str, amount: int, generation: int | None) -> Json:
        return _body(LATEST, uuid, {"VCPU": amount}, consumer_generation=generation)

    def nothing(generation: int | None) -> Json:
        return _body(LATEST, provider, {}, allocations={}, consumer_generation=generation)

    posts: list[Json] = [
        {one: body(provider, 3, None), two: body(provider, 2, None)},
        {one: body(provider, 3, None), two: body(provider, 1, None)},
        {one: body(uid("many-2"), 3, 1), two: body(provider, 4, 1)},
        {one: body(uid("nobody"), 3, 2), two: body(provider, 4, 1)},
        {one: body(uid("nobody"), 3, 2), two: body(provider, 4, 2)},
        {one: body(provider, 4, 2), two: body(uid("many-2"), 4, 2)},
        {one: nothing(2), two: body(provider, 1, 2)},
        {one: nothing(3), two: body(provider, 1, 3)},
        {three: nothing(None)},
        {three: body(provider, 1, None), "junk": body(provider, 1, None)},
        {three: _body(LATEST, provider, {"CUSTOM_NO": 1})},
    ]
    for post in posts:
        yield request("POST", "/allocations", LATEST, post)
        for consumer in (one, two, three):
            yield from get(f"/allocations/{consumer}")
        yield from get(f"/resource_providers/{provider}/allocations")
        yield from get(f"/resource_providers/{uid('many-2')}/allocations")
    yield request(
        "POST",
        "/allocations",
        "1.13",
        {uid("many-old"): _body("1.13", provider, {}, allocations={})},
    )


def _consumers() -> Iterator[Step]:
    """Project, user and type of a consumer change with its writes, unless they fail."""
    yield from _prepare("consumers")
    held = {"consumers": {"VCPU": 1}}
    yield claim("consumers-1", held, project="p1", user="u1")
    yield claim("consumers-1", held, generation=1, project="p2", user="u2", consumer_type="OTHER")
    yield from get(f"/allocations/{uid('consumers-1')}", "1.12", "1.37", "1.38")
    yield claim(
        "consumers-1", {"consumers": {"VCPU": 9999}}, generation=2, project="p3", consumer_type="X"
    )
    yield from get(f"/allocations/{uid('consumers-1')}")
    without_type = _body("1.37", uid("consumers"), {"VCPU": 1}, consumer_generation=2)
    yield request("PUT", f"/allocations/{uid('consumers-1')}", "1.37", without_type)
    yield from get(f"/allocations/{uid('consumers-1')}")
    without_type = _body("1.37", uid("consumers"), {"VCPU": 1})
    yield request("PUT", f"/allocations/{uid('consumers-2')}", "1.37", without_type)
    yield from get(f"/allocations/{uid('consumers-2')}")
    yield claim("consumers-2", held, generation=1, consumer_type="UNKNOWN")
    yield from get(f"/allocations/{uid('consumers-2')}")
    duplicate: Json = {
        "allocations": [
            {"resource_provider": {"uuid": uid("consumers")}, "resources": {"VCPU": 1}},
            {"resource_provider": {"uuid": uid("consumers")}, "resources": {"VCPU": 2}},
        ]
    }
    yield request("PUT", f"/allocations/{uid('consumers-3')}", "1.0", duplicate)
    yield from get(f"/allocations/{uid('consumers-3')}")
