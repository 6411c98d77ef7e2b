# SPDX-License-Identifier: Apache-2.0
"""Section 7: trait definitions and the traits of providers."""

from __future__ import annotations

from collections.abc import Iterator

from bench.api import LATEST, Json
from compare.script.step import Step, get, make_provider, request, uid

_NAMES = [
    "CUSTOM_TRAITS_1",
    "CUSTOM_",
    "CUSTOM_ü",
    "CUSTOM_lower",
    "custom_x",
    "HW_CPU_X86_AVX",
    "HW_CPU_X86_NOPE",
    "CUSTOM_A%0A",
    "CUSTOM_%22",
    "CUSTOM_A-B",
    "CUSTOM_A.json",
    "%20",
    "CUSTOM_" + "A" * 248,
    "CUSTOM_" + "A" * 249,
]


def steps() -> Iterator[Step]:
    """Definitions first, then providers."""
    for name in _NAMES:
        quoted = name.replace("ü", "%C3%BC")
        for version in ("1.6", "1.15", LATEST):
            yield request("GET", f"/traits/{quoted}", version)
            yield request("PUT", f"/traits/{quoted}", version)
            yield request("PUT", f"/traits/{quoted}", version)
            yield request("GET", f"/traits/{quoted}", version)
            yield request("DELETE", f"/traits/{quoted}", version)
            yield request("DELETE", f"/traits/{quoted}", version)
    yield request("PUT", "/traits/CUSTOM_TRAITS_1")
    yield request("PUT", "/traits/CUSTOM_TRAITS_2")
    yield from _provider_traits()
    yield from _lists()


def _lists() -> Iterator[Step]:
    queries = [
        "",
        "name=in:CUSTOM_TRAITS_1,CUSTOM_TRAITS_2,CUSTOM_TRAITS_3",
        "name=in:",
        "name=in:%20CUSTOM_TRAITS_1",
        "name=in:CUSTOM_TRAITS_1,",
        "name=in:custom_traits_1",
        "name=startswith:CUSTOM_TRAITS",
        "name=startswith:",
        "name=startswith:CUSTOM%25",
        "name=startswith:custom_traits",
        "name=startswith:HW_CPU_X86_AVX",
        "name=CUSTOM_TRAITS_1",
        "name=",
        "name=foo:X",
        "name=in:A:B",
        "name=IN:CUSTOM_TRAITS_1",
        "name=startswith:CUSTOM_TRAITS_1&name=in:CUSTOM_TRAITS_2",
        "associated=true",
        "associated=True",
        "associated=FALSE&name=startswith:CUSTOM_TRAITS",
        "associated=1",
        "associated=",
        "associated=yes",
        "associated=true&name=startswith:CUSTOM_TRAITS",
        "foo=1",
    ]
    for query in queries:
        for version in ("1.6", "1.22", LATEST):
            yield request("GET", f"/traits?{query}" if query else "/traits", version)


def _provider_traits() -> Iterator[Step]:
    name = "traits"
    path = f"/resource_providers/{uid(name)}/traits"
    yield make_provider(name)
    yield from get(path, "1.6", "1.14", "1.15", LATEST)
    bodies: list[Json] = [
        {},
        {"traits": []},
        {"resource_provider_generation": 0},
        {"traits": ["CUSTOM_TRAITS_1"], "resource_provider_generation": 0},
        {"traits": ["CUSTOM_TRAITS_1"], "resource_provider_generation": 0},
        {"traits": ["CUSTOM_TRAITS_1"], "resource_provider_generation": 1},
        {
            "traits": ["CUSTOM_TRAITS_1", "CUSTOM_TRAITS_1", "CUSTOM_TRAITS_2"],
            "resource_provider_generation": 1,
        },
        {"traits": ["CUSTOM_NO"], "resource_provider_generation": 2},
        {"traits": ["CUSTOM_NO", "CUSTOM_ALSO_NO"], "resource_provider_generation": 2},
        {"traits": ["CUSTOM_NO"], "resource_provider_generation": 99},
        {"traits": [""], "resource_provider_generation": 2},
        {"traits": ["A" * 256], "resource_provider_generation": 2},
        {"traits": [5], "resource_provider_generation": 2},
        {"traits": "CUSTOM_TRAITS_1", "resource_provider_generation": 2},
        {"traits": None, "resource_provider_generation": 2},
        {"traits": [], "resource_provider_generation": "2"},
        {"traits": [], "resource_provider_generation": None},
        {"traits": [], "resource_provider_generation": 2, "extra": 1},
        {"traits": ["lower"], "resource_provider_generation": 2},
    ]
    for body in bodies:
        yield request("PUT", path, LATEST, body)
        yield request("PUT", path, "1.6", body)
        yield from get(path)
    for version in ("1.6", "1.22", LATEST):
        yield request("DELETE", "/traits/CUSTOM_TRAITS_1", version)
    yield request("GET", "/traits?associated=true&name=startswith:CUSTOM_TRAITS")
    yield request("GET", "/traits?associated=false&name=startswith:CUSTOM_TRAITS")
    yield request("DELETE", path)
    yield from get(path)
    yield request("DELETE", path)
    yield from get(path)
    nobody = f"/resource_providers/{uid('nobody')}/traits"
    good: Json = {"traits": ["CUSTOM_TRAITS_1"], "resource_provider_generation": 2}
    bad: Json = {"traits": ["CUSTOM_NO"], "resource_provider_generation": 2}
    for version in ("1.6", LATEST):
        yield request("GET", nobody, version)
        yield request("PUT", nobody, version, good)
        yield request("PUT", nobody, version, bad)
        yield request("PUT", nobody, version, {})
        yield request("DELETE", nobody, version)
