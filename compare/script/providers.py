# SPDX-License-Identifier: Apache-2.0
"""Section 4: resource providers, their filters, trees and names."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from bench.api import LATEST, Json
from compare.script.step import (
    Step,
    claim,
    get,
    make_provider,
    request,
    set_aggregates,
    set_inventories,
    set_traits,
    uid,
)

_COLLECTION = "/resource_providers"


def steps() -> Iterator[Step]:
    """Create, read, filter, move and delete providers."""
    yield from _create()
    yield from _update()
    yield from _trees()
    yield from _delete()
    yield from _filters()


def _create() -> Iterator[Step]:
    for version in ("1.0", "1.13", "1.14", "1.19", "1.20", LATEST):
        name = f"create-{version}"
        yield request("POST", _COLLECTION, version, {"name": name, "uuid": uid(name)})
        yield from get(f"{_COLLECTION}/{uid(name)}", "1.0", "1.1", "1.6", "1.11", "1.14", LATEST)
        yield request("POST", _COLLECTION, version, {"name": name, "uuid": uid(name)})
        yield request("POST", _COLLECTION, version, {"name": name})
        yield request("POST", _COLLECTION, version, {"name": f"{name}-x", "uuid": uid(name)})
        yield request("POST", _COLLECTION, version, {"name": f"{name}-generated"})
        parent: Json = {"name": f"{name}-child", "parent_provider_uuid": uid(name)}
        yield request("POST", _COLLECTION, version, parent)
    plain = uid("create-plain")
    bodies: list[Json] = [
        {},
        {"uuid": plain},
        {"name": ""},
        {"name": None},
        {"name": 5},
        {"name": ["x"]},
        {"name": "x" * 200},
        {"name": "x" * 201},
        {"name": "ok", "uuid": None},
        {"name": "ok", "uuid": "junk"},
        {"name": "ok", "uuid": 5},
        {"name": "ok", "uuid": f" {plain}"},
        {"name": "ok", "uuid": ""},
        {"name": "ok", "generation": 1},
        {"name": "ok", "a": 1, "b": 2},
        {"name": "null-parent", "uuid": uid("null-parent"), "parent_provider_uuid": None},
        {"name": "orphan", "parent_provider_uuid": uid("nobody")},
        {"name": "orphan", "parent_provider_uuid": "junk"},
        {"name": "orphan", "parent_provider_uuid": 1},
        {"name": "own", "uuid": uid("own"), "parent_provider_uuid": uid("own")},
        {"name": "ünï¢ödé 🚢 <b>bold</b>", "uuid": uid("unicode")},
        {"name": "ünï¢ödé 🚢 <b>bold</b>", "uuid": uid("unicode-2")},
        {"name": " blank "},
        {"name": "line\nbreak"},
        {"name": "line\nbreak"},
    ]
    for body in bodies:
        yield request("POST", _COLLECTION, LATEST, body)
        yield request("POST", _COLLECTION, "1.0", body)
    yield from get(f"{_COLLECTION}/{uid('unicode')}")
    yield from get(f"{_COLLECTION}?name={quote('ünï¢ödé 🚢 <b>bold</b>')}")
    for bad in ("junk", "%20", "%C3%A9", "a.json", "%3Cb%3E", uid("nobody")):
        yield from get(f"{_COLLECTION}/{bad}", "1.0", LATEST)
        yield request("PUT", f"{_COLLECTION}/{bad}", LATEST, {"name": "x"})
        yield request("DELETE", f"{_COLLECTION}/{bad}", LATEST)


def _update() -> Iterator[Step]:
    yield make_provider("update-1")
    yield make_provider("update-2")
    path = f"{_COLLECTION}/{uid('update-1')}"
    bodies: list[Json] = [
        {},
        {"name": "update-1"},
        {"name": "update-1-renamed"},
        {"name": "update-2"},
        {"name": ""},
        {"name": None},
        {"name": "x" * 201},
        {"name": "u", "uuid": uid("update-1")},
        {"name": "u", "generation": 0},
        {"name": "u", "root_provider_uuid": uid("update-1")},
        {"name": "u", "parent_provider_uuid": "junk"},
        {"name": "u", "parent_provider_uuid": None},
        {"name": "u", "parent_provider_uuid": uid("nobody")},
        {"name": "u", "parent_provider_uuid": uid("update-1")},
        {"name": "update-1"},
    ]
    for version in ("1.0", "1.13", "1.14", "1.36", "1.37", LATEST):
        for body in bodies:
            yield request("PUT", path, version, body)
        yield request("GET", path, LATEST)


def _trees() -> Iterator[Step]:
    for version in ("1.14", "1.36", "1.37", LATEST):
        name = f"tree-{version}"
        for node, parent in (
            ("a", None),
            ("a1", "a"),
            ("a11", "a1"),
            ("b", None),
            ("b1", "b"),
        ):
            yield make_provider(f"{name}-{node}", None if parent is None else f"{name}-{parent}")
        moves: list[tuple[str, str | None]] = [
            ("a1", "a"),
            ("a1", None),
            ("a1", "b1"),
            ("a1", "a11"),
            ("a", "a11"),
            ("a", "a"),
            ("b", "a11"),
            ("b1", None),
            ("b1", "a"),
            ("a11", "nobody"),
        ]
        for node, parent in moves:
            target = f"{_COLLECTION}/{uid(f'{name}-{node}')}"
            wanted = None if parent is None else uid(f"{name}-{parent}")
            yield request("PUT", target, version, {"name": f"{name}-{node}"})
            yield request(
                "PUT", target, version, {"name": f"{name}-{node}", "parent_provider_uuid": wanted}
            )
            for other in ("a", "a1", "a11", "b", "b1"):
                yield from get(f"{_COLLECTION}/{uid(f'{name}-{other}')}")
            yield from get(f"{_COLLECTION}?in_tree={uid(f'{name}-b1')}")


def _delete() -> Iterator[Step]:
    yield make_provider("delete-root")
    yield make_provider("delete-child", "delete-root")
    yield set_inventories("delete-root", 0, {"VCPU": {"total": 4}})
    yield claim("delete-consumer", {"delete-root": {"VCPU": 1}})
    for version in ("1.0", "1.22", LATEST):
        yield request("DELETE", f"{_COLLECTION}/{uid('delete-root')}", version)
    yield request("DELETE", f"{_COLLECTION}/{uid('delete-child')}")
    for version in ("1.0", "1.22", LATEST):
        yield request("DELETE", f"{_COLLECTION}/{uid('delete-root')}", version)
    yield request("DELETE", f"/allocations/{uid('delete-consumer')}")
    yield request("DELETE", f"{_COLLECTION}/{uid('delete-root')}")
    yield request("DELETE", f"{_COLLECTION}/{uid('delete-root')}")


def _filters() -> Iterator[Step]:
    for name, parent in (("f1", None), ("f2", None), ("f3", "f1"), ("f4", None)):
        yield make_provider(name, parent)
    yield set_inventories("f1", 0, {"VCPU": {"total": 8, "min_unit": 2, "step_size": 2}})
    yield set_inventories("f2", 0, {"VCPU": {"total": 4, "allocation_ratio": 2.0, "max_unit": 3}})
    yield set_inventories("f3", 0, {"MEMORY_MB": {"total": 100, "reserved": 50}})
    yield set_traits("f1", 1, ["HW_CPU_X86_AVX", "HW_CPU_X86_VMX"])
    yield set_traits("f2", 1, ["HW_CPU_X86_AVX"])
    yield set_traits("f4", 0, ["HW_CPU_X86_SSE"])
    yield set_aggregates("f1", 2, ["agg-1", "agg-2"])
    yield set_aggregates("f2", 2, ["agg-2"])
    yield set_aggregates("f4", 1, ["agg-3"])
    yield claim("f-consumer", {"f1": {"VCPU": 4}})
    a1, a2, a3 = uid("agg-1"), uid("agg-2"), uid("agg-3")
    junk = "junk"
    queries = [
        *("name=f1", "name=", "name=F1", "name=f1&name=f2", "name=nobody", "name=%20"),
        *(f"uuid={uid('f1')}", f"uuid={uid('nobody')}"),
        *(f"uuid={uid('f1').replace('-', '')}", "uuid=junk", "uuid=", f"uuid={{{uid('f1')}}}"),
        *(f"uuid=junk&uuid={uid('f1')}", f"uuid={uid('f1')}&uuid=junk"),
        *(f"in_tree={uid('f1')}", f"in_tree={uid('f3')}", f"in_tree={uid('nobody')}"),
        *("in_tree=junk", "in_tree="),
        *(f"member_of={a1}", f"member_of={a2}", f"member_of=in:{a1},{a3}", f"member_of={junk}"),
        *("member_of=", "member_of=in:", f"member_of={a1},{a2}", f"member_of=in:{a1},"),
        *(
            f"member_of=!{a1}&name=f2",
            f"member_of=!in:{a1},{a3}&name=f2",
            "member_of=!",
            "member_of=!in:",
        ),
        *(f"member_of=!{a1}&member_of={a2}", f"member_of={a1}&member_of={a2}"),
        *(
            f"member_of={a1}&member_of=!{a1}",
            f"member_of=in:!{a1},{a2}",
            f"member_of=in:{a1},!{a2}",
        ),
        *(f"member_of=!{a1},{a2}", f"member_of={uid('agg-none')}", f"member_of={a1}%20"),
        *(f"member_of=%20{a1}", f"member_of=IN:{a1}", f"member_of=in:{a1},junk"),
        *(f"member_of=!in:{a1},junk", f"member_of=!{junk}", f"member_of=!!{a1}"),
        *("resources=VCPU:2", "resources=VCPU:1", "resources=VCPU:3", "resources=VCPU:4"),
        *("resources=VCPU:5", "resources=MEMORY_MB:50", "resources=MEMORY_MB:51"),
        *("resources=VCPU:2,MEMORY_MB:1", "resources=", "resources=%20", "resources=VCPU"),
        *("resources=VCPU:", "resources=:1", "resources=VCPU:1:2", "resources=VCPU:1,"),
        *("resources=,VCPU:1", "resources=VCPU:0", "resources=VCPU:-1", "resources=VCPU:1.0"),
        *("resources=VCPU:x", "resources=VCPU:%202", "resources=VCPU:%2B2", "resources=VCPU:1_0"),
        *("resources=NOPE:1", "resources=vcpu:1", "resources=%20VCPU:1", "resources=CUSTOM_NO:1"),
        *(
            "resources=VCPU:2,VCPU:3",
            "resources=VCPU:2147483648",
            "resources=VCPU:2&resources=VCPU:3",
        ),
        *(
            "resources=VCPU:9223372036854775808",
            "resources=NOPE:1,VCPU:x",
            "resources=VCPU:1;MEMORY_MB:1",
        ),
        *("required=HW_CPU_X86_AVX", "required=HW_CPU_X86_AVX,HW_CPU_X86_VMX", "required="),
        *("required=HW_CPU_X86_AVX,!HW_CPU_X86_VMX", "required=!HW_CPU_X86_AVX&name=f4"),
        *("required=!!!HW_CPU_X86_VMX&name=f2", "required=!%20HW_CPU_X86_AVX", "required=!"),
        *("required=HW_CPU_X86_AVX,", "required=,", "required=%20HW_CPU_X86_AVX%20,HW_CPU_X86_VMX"),
        *("required=CUSTOM_NO", "required=!CUSTOM_NO", "required=CUSTOM_NO,CUSTOM_ALSO_NO"),
        *("required=HW_CPU_X86_AVX,!HW_CPU_X86_AVX", "required=hw_cpu_x86_avx"),
        *(
            "required=in:HW_CPU_X86_VMX,HW_CPU_X86_SSE",
            "required=in:HW_CPU_X86_VMX",
            "required=in:",
        ),
        *("required=in:HW_CPU_X86_VMX,!HW_CPU_X86_SSE", "required=!in:HW_CPU_X86_VMX"),
        *("required=IN:HW_CPU_X86_VMX", "required=HW_CPU_X86_VMX,in:HW_CPU_X86_SSE"),
        *("required=in:CUSTOM_NO,HW_CPU_X86_VMX", "required=in:HW_CPU_X86_VMX,,HW_CPU_X86_AVX"),
        *(
            "required=HW_CPU_X86_AVX&required=HW_CPU_X86_VMX",
            "required=CUSTOM_NO&required=HW_CPU_X86_VMX",
        ),
        *(
            "required=in:HW_CPU_X86_VMX,HW_CPU_X86_SSE&required=HW_CPU_X86_AVX",
            "required=&required=HW_CPU_X86_VMX",
        ),
        *(
            f"member_of={a2}&required=HW_CPU_X86_AVX&resources=VCPU:2",
            f"member_of={a3}&resources=VCPU:1",
        ),
        *(
            "foo=bar",
            "required1=HW_CPU_X86_AVX",
            "limit=1",
            "root_required=HW_CPU_X86_AVX",
            "Name=f1",
        ),
    ]
    for query in queries:
        for version in (
            "1.0",
            "1.3",
            "1.4",
            "1.14",
            "1.18",
            "1.22",
            "1.24",
            "1.32",
            "1.38",
            LATEST,
        ):
            yield request("GET", f"{_COLLECTION}?{query}", version)
