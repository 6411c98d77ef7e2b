# SPDX-License-Identifier: Apache-2.0
"""The grammar of requests (spec/beyond.md 2.2 to 2.5): what is refused, where, and what is read."""

from __future__ import annotations

from typing import Any, Final

import pytest

from berth.api.berth_v1.grammar import REQUEST
from berth.api.berth_v1.pointed import PointedSchema
from berth.api.berth_v1.reading import Asked, AskedByFlavor, read_request
from berth.api.berth_v1.writing import request_json
from berth.api.errors import Refused

INVALID: Final = "berth.request.invalid"
TOO_LARGE: Final = "berth.request.too_large"

VCPU: Final = {"resources": {"VCPU": 1}}
A_AND_B: Final = {"_A": VCPU, "_B": VCPU}
TWO: Final = {"groups": A_AND_B}


@pytest.fixture(scope="module")
def schema() -> PointedSchema:
    """The schema, compiled once."""
    return PointedSchema(REQUEST)


def read(schema: PointedSchema, request: Any) -> tuple[Asked, ...]:
    """What a request without flavors asks."""
    schema.check(request)
    requested = read_request(request, "")
    assert not any(isinstance(each, AskedByFlavor) for each in requested)
    return tuple(each for each in requested if isinstance(each, Asked))


def group(**members: Any) -> dict[str, Any]:
    """A request for a VCPU with further members of its group."""
    return {"groups": {"": {**VCPU, **members}}}


def related(**group_members: Any) -> dict[str, Any]:
    """A request of a VCPU and a group that a relation names."""
    return {
        "groups": {"": VCPU, "_A": group_members},
        "together": [{"groups": ["", "_A"], "at": "tree"}],
    }


#: Each request, and the pointer to what is wrong with it.
REFUSED: Final[list[tuple[Any, str]]] = [
    ([], ""),
    ({}, ""),
    ({"host": {}}, ""),
    ({"groups": {}}, "/groups"),
    ({"groups": {"a.b": VCPU}}, "/groups/a.b"),
    ({"groups": {"a/b~": VCPU}}, "/groups/a~1b~0"),
    ({"groups": {"": VCPU}, "flavour": 1}, "/flavour"),
    ({"groups": {"": VCPU}, "flavor": "m1.large"}, "/groups"),
    ({"flavor": "m1.large", "together": []}, "/together"),
    ({"flavor": "m1.large", "query": "resources=VCPU:1"}, "/query"),
    ({"flavor": ["m1.large"]}, "/flavor"),
    ({"flavor": ""}, "/flavor"),
    ({"flavor": "m1.large", "host": {"required": ["A", "!A"]}}, "/host/required/0"),
    ({"alternatives": [TWO, TWO], "flavor": "m1.large"}, "/flavor"),
    ({"alternatives": [TWO, {"flavor": "m1.large", "groups": {}}]}, "/alternatives/1/groups"),
    ({**TWO, "host": {"in": [["cn1"]]}}, "/host/in"),
    ({**TWO, "host": {"in": [["cn1"], "cn2", ["cn3"]]}}, "/host/in/1"),
    ({**TWO, "host": {"in": [["cn1"], [["cn2"]]]}}, "/host/in/1/0"),
    ({**TWO, "host": {"not_in": [["cn1"], ["cn2"]]}}, "/host/not_in/0"),
    (group(ressources={}), "/groups//ressources"),
    (group(resources={"vcpu": 1}), "/groups//resources/vcpu"),
    (group(resources={"VCPU": 0}), "/groups//resources/VCPU"),
    (group(resources={"VCPU": 1.0}), "/groups//resources/VCPU"),
    (group(resources={"VCPU": "1"}), "/groups//resources/VCPU"),
    (group(resources={"VCPU": True}), "/groups//resources/VCPU"),
    (group(resources={"VCPU": None}), "/groups//resources/VCPU"),
    (group(resources={"VCPU": float("nan")}), "/groups//resources/VCPU"),
    (group(resources={"VCPU": 2**31}), "/groups//resources/VCPU"),
    (group(required="HW_CPU_X86_AVX2"), "/groups//required"),
    (group(required=["HW_CPU_X86_AVX2", ""]), "/groups//required/1"),
    (group(required=["!"]), "/groups//required/0"),
    (group(required=["!!HW_CPU_X86_AVX2"]), "/groups//required/0"),
    (group(required=[[]]), "/groups//required/0"),
    (group(required=[["A", "!B"]]), "/groups//required/0/1"),
    (group(required=[["A", ["B"]]]), "/groups//required/0/1"),
    (group(required=["B", "A", "!A"]), "/groups//required/1"),
    (group(required=[["A", "B"], "!A", "!B"]), "/groups//required/0"),
    (group(in_tree="cn1"), "/groups//in_tree"),
    (group(under=["cn1", 7]), "/groups//under/1"),
    (group(split={"VCPU": {"parts": 17}}), "/groups//split/VCPU/parts"),
    (group(split={"VCPU": {"min": 0}}), "/groups//split/VCPU/min"),
    (group(split={"VCPU": {"step": 1.0}}), "/groups//split/VCPU/step"),
    (group(split={"VCPU": {"most": 1}}), "/groups//split/VCPU/most"),
    (group(split={"DISK_GB": {}}), "/groups//split/DISK_GB"),
    (group(split={"VCPU": 2}), "/groups//split/VCPU"),
    ({"groups": {"": {}}}, "/groups/"),
    ({"groups": {"": {"required": ["A"]}}}, "/groups/"),
    ({"groups": {"": VCPU, "_A": {"required": ["A"]}}}, "/groups/_A"),
    (related(), "/groups/_A"),
    (related(required=[]), "/groups/_A"),
    (
        {"groups": {"_A": {"resources": {"VCPU": 2, "DISK_GB": 2}, "split": {"VCPU": {}}}}},
        "/groups/_A/split/VCPU",
    ),
    (
        {"groups": {"": {**VCPU, "split": {"VCPU": {}}}, "_A": {**VCPU, "split": {"VCPU": {}}}}},
        "/groups/_A/split/VCPU",
    ),
    ({**TWO, "together": {}}, "/together"),
    ({**TWO, "together": [{"groups": ["_A", "_B"]}]}, "/together/0"),
    ({**TWO, "together": [{"groups": ["_A"], "at": "tree"}]}, "/together/0/groups"),
    ({**TWO, "apart": [{"groups": ["_A", "_A"], "at": "tree"}]}, "/apart/0/groups"),
    ({**TWO, "apart": [{"groups": ["_A", "_C"], "at": "tree"}]}, "/apart/0/groups/1"),
    ({**TWO, "apart": [{"groups": ["_A", ""], "at": "tree"}]}, "/apart/0/groups/1"),
    ({**TWO, "apart": [{"groups": ["_A", "_B"], "at": ""}]}, "/apart/0/at"),
    ({**TWO, "apart": [{"groups": ["_A", "_B"], "at": "tree", "not": 1}]}, "/apart/0/not"),
    ({**TWO, "host": {"required": ["A", "!A"]}}, "/host/required/0"),
    ({**TWO, "host": {"anywhere": ["!A", "A"]}}, "/host/anywhere/1"),
    ({**TWO, "host": {"within": []}}, "/host/within"),
    ({**TWO, "tolerate": "all"}, "/tolerate"),
    ({**TWO, "tolerate": [1]}, "/tolerate/0"),
    ({"query": 1}, "/query"),
    ({"query": "resources=VCPU:0"}, "/query"),
    ({"query": "ressources=VCPU:1"}, "/query"),
    ({"query": ""}, "/query"),
    ({"query": "resources=VCPU:1", "groups": {"": VCPU}}, "/groups"),
    ({"query": "resources=VCPU:1", "host": {}}, "/host"),
    ({"alternatives": [TWO]}, "/alternatives"),
    ({"alternatives": [TWO, {"alternatives": [TWO, TWO]}]}, "/alternatives/1/alternatives"),
    ({"alternatives": [TWO, TWO], "tolerate": "*"}, "/tolerate"),
    ({"alternatives": [TWO, {"groups": {"": {}}}]}, "/alternatives/1/groups/"),
    ({"alternatives": [TWO, {"query": "limit=1"}]}, "/alternatives/1/query"),
]


@pytest.mark.parametrize(("request_", "pointer"), REFUSED, ids=lambda value: str(value)[:60])
def test_a_fault_is_refused_with_a_pointer_to_it(
    schema: PointedSchema, request_: Any, pointer: str
) -> None:
    """Unknown members, wrong types and broken rules are 400, and the pointer names the place."""
    with pytest.raises(Refused) as refusal:
        read(schema, request_)
    assert refusal.value.status == 400
    assert (refusal.value.code, refusal.value.facts["pointer"]) == (INVALID, pointer)


@pytest.mark.parametrize(
    ("request_", "pointer", "bound"),
    [
        ({"groups": {str(number): VCPU for number in range(65)}}, "/groups", "max_groups"),
        (
            group(resources={f"CUSTOM_{number}": 1 for number in range(33)}),
            "/groups//resources",
            "max_classes",
        ),
        (group(required=["A"] * 65), "/groups//required", "max_items"),
        (group(required=[["A"] * 65]), "/groups//required/0", "max_items"),
        (group(member_of=["A"] * 65), "/groups//member_of", "max_items"),
        (group(member_of=[["A"] * 10_001]), "/groups//member_of/0", "max_references"),
        (group(in_tree=["A"] * 10_001), "/groups//in_tree", "max_references"),
        (group(not_under=["A"] * 10_001), "/groups//not_under", "max_references"),
        ({**TWO, "host": {"not_in": ["A"] * 10_001}}, "/host/not_in", "max_references"),
        (
            {**TWO, "together": [{"groups": ["_A", "_B"], "at": "tree"}] * 65},
            "/together",
            "max_relations",
        ),
        ({"alternatives": [TWO] * 9}, "/alternatives", "max_alternatives"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_too_large_is_refused_by_the_name_of_the_bound(
    schema: PointedSchema, request_: Any, pointer: str, bound: str
) -> None:
    """One more than a bound allows is 400 `berth.request.too_large`."""
    with pytest.raises(Refused, match=bound) as refusal:
        read(schema, request_)
    assert (refusal.value.code, refusal.value.facts["pointer"]) == (TOO_LARGE, pointer)


@pytest.mark.parametrize(
    "request_",
    [
        {"groups": {str(number): VCPU for number in range(64)}},
        group(required=["A"] * 64),
        {**TWO, "host": {"not_in": ["A"] * 10_000, "in": []}},
        related(in_tree=["cn1"]),
        related(in_tree=[]),
        related(required=["!A"]),
        group(required=[["A", "B"], "!A"]),
        {**TWO, "tolerate": "*"},
        {**TWO, "tolerate": ["firmware"]},
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_the_bounds_allow_is_read(schema: PointedSchema, request_: Any) -> None:
    """Bounds are inclusive, and written as they were read."""
    assert request_json(read(schema, request_)[0].question) == request_


def test_the_example_of_the_specification_is_written_as_it_was_read(schema: PointedSchema) -> None:
    """Every member survives reading and writing; those that say nothing are left out."""
    example: dict[str, Any] = {
        "groups": {
            "": {
                "resources": {"VCPU": 8, "MEMORY_MB": 16384, "DISK_GB": 40},
                "required": ["HW_CPU_X86_AVX2", "!CUSTOM_OLD", ["STORAGE_DISK_SSD", "CUSTOM_B"]],
                "split": {"VCPU": {"min": 2, "step": 2, "parts": 2}},
            },
            "_GPU0": {"resources": {"VGPU": 1}, "under": ["cn7"], "in_tree": ["cn7"]},
            "_GPU1": {"resources": {"VGPU": 1}, "not_under": ["cn7_pci_0000_81_00_0"]},
        },
        "host": {
            "required": ["COMPUTE_VOLUME_MULTI_ATTACH"],
            "anywhere": ["!CUSTOM_FAULTY"],
            "member_of": [["zone=z1", "zone=z2"], "!tenant=reserved"],
            "in": ["cn7"],
            "not_in": ["cn1", "cn2"],
        },
        "together": [{"groups": ["_GPU0", "_GPU1"], "at": "HW_NUMA_ROOT"}],
        "apart": [{"groups": ["_GPU0", "_GPU1"], "at": "provider"}],
        "tolerate": ["firmware"],
    }
    (asked,) = read(schema, example)
    assert request_json(asked.question) == example
    several = {**example, "host": {"in": [["cn7", "cn8"], [], ["cn8"]]}}
    (asked,) = read(schema, several)
    assert request_json(asked.question) == several
    more = {**example, "host": {**example["host"], "anywhere": [["CUSTOM_FAULTY"]]}}
    (asked,) = read(schema, more)
    assert request_json(asked.question)["host"]["anywhere"] == ["CUSTOM_FAULTY"]


def test_a_query_string_is_translated(schema: PointedSchema) -> None:
    """Each parameter has its place, a limit is noted, and pointers lead to the query."""
    tree, rack = "4e8e5957-649f-477b-9e5b-f1f75b21c03c", "0d1c7d2e-5f0b-4a2c-9a60-6a2d1b0a1a11"
    query = (
        "resources_A=VCPU:2&required_A=HW_CPU_X86_AVX2,!CUSTOM_OLD&required_A=in:CUSTOM_B,CUSTOM_C"
        f"&in_tree_A={tree}&resources_B=VGPU:1&member_of_B=!{rack}&resources=DISK_GB:10"
        "&root_required=CUSTOM_HOST,!CUSTOM_POOL&group_policy=isolate&same_subtree=_B,_A&limit=7"
    )
    asked, pasted = read(
        schema, {"alternatives": [{"query": query}, {"query": f"/allocation_candidates?{query}"}]}
    )
    assert asked.question == pasted.question
    (part,) = asked.parts
    assert part.has_limit
    assert part.pointer("/groups/_A/resources/VCPU") == "/alternatives/0/query"
    assert request_json(asked.question) == {
        "groups": {
            "_A": {
                "resources": {"VCPU": 2},
                "required": ["HW_CPU_X86_AVX2", ["CUSTOM_B", "CUSTOM_C"], "!CUSTOM_OLD"],
                "in_tree": [tree],
            },
            "_B": {"resources": {"VGPU": 1}, "member_of": [f"!{rack}"]},
            "": {"resources": {"DISK_GB": 10}},
        },
        "host": {"required": ["CUSTOM_HOST", "!CUSTOM_POOL"]},
        "together": [{"groups": ["_A", "_B"], "at": "subtree"}],
        "apart": [{"groups": ["_A", "_B"], "at": "provider"}],
    }
