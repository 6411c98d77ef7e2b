# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/explain` over HTTP (spec/beyond.md 3)."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any, Final

import pytest

from tests.api import configured
from tests.api.claims import consumer
from tests.client import Client
from tests.worlds import provider_uuid, world

PATH: Final = "/berth/v1/explain"

FLEET: Final = world("""
    cn1     VCPU=4  MEMORY_MB=4096  CUSTOM_FAST  @A
    cn2     VCPU=16(used:12)  MEMORY_MB=8192  CUSTOM_FAST  @A
    cn3     VCPU=16  MEMORY_MB=8192  @A
    pool    DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
""")
REQUEST: Final[dict[str, Any]] = {
    "groups": {"_A": {"resources": {"VCPU": 8}, "required": ["CUSTOM_FAST"]}}
}


def explained(client: Client, request: Any = REQUEST, **members: Any) -> dict[str, Any]:
    """The explanation of a request, which is no error."""
    answered = client.post(PATH, json={"request": request, **members})
    assert answered.status == 200, answered.text
    body: dict[str, Any] = answered.json
    return body


def test_an_answer(fleet: Client) -> None:
    """Every member of it."""
    answer = explained(fleet)
    assert answer.pop("revision").startswith("b1.")
    cn1, cn2, cn3 = ({"uuid": provider_uuid(name), "name": name} for name in ("cn1", "cn2", "cn3"))
    nearest = answer.pop("nearest")
    assert [near["host"] for near in nearest] == [
        *sorted((cn1, cn2), key=lambda host: host["uuid"]),
        cn3,
    ]
    assert {
        "host": cn3,
        "lacks": [{"at": "/groups/_A/required/0", "text": "trait CUSTOM_FAST for _A"}],
    } in nearest
    assert {
        "host": cn2,
        "lacks": [
            {
                "at": "/groups/_A/resources/VCPU",
                "text": "VCPU 8 for _A",
                "asked": 8,
                "possible": 4,
                "reason": "used",
                "provider": cn2,
                "free": 4,
                "capacity": 16,
                "max_unit": 2147483647,
            }
        ],
    } in nearest
    assert answer == {
        "complete": True,
        "verdict": "used_up",
        "summary": "No host fits now; 1 would with nothing used. With VCPU 4 instead of 8 for _A, 2"
        " hosts fit. Without trait CUSTOM_FAST for _A, 1 host fits.",
        "hosts": {"total": 4, "pools": 1, "fit": 0, "fit_if_undrained": 0, "fit_if_empty": 1},
        "stages": [
            {
                "at": "/groups/_A/resources/VCPU",
                "text": "VCPU 8 for _A",
                "has": 3,
                "if_empty": 2,
                "alone": 1,
                "left": 1,
            },
            {
                "at": "/groups/_A/required/0",
                "text": "trait CUSTOM_FAST for _A",
                "alone": 2,
                "left": 0,
            },
        ],
        "binding": ["/groups/_A/resources/VCPU", "/groups/_A/required/0"],
        "relaxations": [
            {
                "drop": ["/groups/_A/resources/VCPU"],
                "hosts": 2,
                "reduce_to": 4,
                "hosts_reduced": 2,
            },
            {"drop": ["/groups/_A/required/0"], "hosts": 1},
        ],
        "split_would_fit": 0,
        "unknown": [],
        "warnings": [],
        "request": REQUEST,
    }


def test_what_fits_needs_no_help(fleet: Client) -> None:
    """Neither relaxations nor nearest hosts."""
    answer = explained(fleet, {"groups": {"": {"resources": {"VCPU": 1}}}})
    assert (answer["verdict"], answer["summary"]) == ("fits", "3 hosts fit.")
    assert not {"relaxations", "split_would_fit", "nearest", "paint"} & set(answer)


def test_hosts_whose_uuids_begin_alike_are_painted_in_their_order(tmp_path: Path) -> None:
    """The first has the most, and was created last."""
    client = configured.serve(tmp_path)
    for number in (3, 2, 1):
        uuid = f"00000000-0000-0000-0000-00000000000{number}"
        client.post("/resource_providers", json={"name": uuid, "uuid": uuid})
        stocked = client.put(
            f"/resource_providers/{uuid}/inventories",
            json={
                "inventories": {"VCPU": {"total": 4 - number}},
                "resource_provider_generation": 0,
            },
        )
        assert stocked.status == 200, stocked.text
    for amount, painted in ((2, b"\xff\xff\0"), (3, b"\xff\0\0")):
        asking = {"groups": {"": {"resources": {"VCPU": amount}}}}
        assert b64decode(explained(client, asking, paint=True)["paint"]) == painted


def test_only_what_is_wanted_is_explained(fleet: Client) -> None:
    """No relaxations, fewer hosts, and paint."""
    answer = explained(fleet, relaxations=False, nearest_max=1, paint=True)
    assert "relaxations" not in answer
    assert len(answer["nearest"]) == 1
    painted = dict(zip(sorted(FLEET.names), b64decode(answer["paint"]), strict=True))
    assert {FLEET.names[uuid]: byte for uuid, byte in painted.items()} == {
        "cn1": 0,
        "cn2": 0,
        "cn3": 1,
        "pool": 0,
    }
    assert explained(fleet, nearest_max=0)["nearest"] == []


def test_a_scenario_is_explained(fleet: Client) -> None:
    """With nothing used, one host fits; without it, none would."""
    assert explained(fleet, what_if={"nothing_used": True})["verdict"] == "fits"
    answer = explained(fleet, what_if={"nothing_used": True, "without_hosts": ["cn2", "cn9"]})
    assert answer["hosts"]["total"] == 3
    assert answer["verdict"] == "never"
    assert answer["warnings"] == [
        {"code": "unknown_provider", "at": "/what_if/without_hosts/1", "reference": "cn9"}
    ]


def test_unknown_names_and_references_are_explained(fleet: Client) -> None:
    """With pointers into the normalised request."""
    request = {
        "groups": {"": {"resources": {"VCPU": 1}, "required": ["CUSTOM_FASST"]}},
        "host": {"in": ["cn1", "cn7"]},
    }
    answer = explained(fleet, request)
    assert answer["verdict"] == "unknown_name"
    assert answer["unknown"] == [
        {
            "at": "/groups//required/0",
            "kind": "trait",
            "name": "CUSTOM_FASST",
            "did_you_mean": ["CUSTOM_FAST"],
            "hosts": {"CUSTOM_FAST": 1},
        }
    ]
    assert answer["warnings"] == [
        {"code": "unknown_provider", "at": "/host/in/1", "reference": "cn7"}
    ]
    assert answer["hosts"]["fit"] == 1


def test_a_suggestion_is_shown_with_the_hosts_that_fit_with_it(fleet: Client) -> None:
    """The similar name may be of no use: cn1 has the trait, but not enough VCPU."""
    asking = {"groups": {"_A": {"resources": {"VCPU": 8}, "required": ["CUSTOM_FASST"]}}}
    (unknown,) = explained(fleet, asking)["unknown"]
    assert unknown["hosts"] == {"CUSTOM_FAST": 0}


def test_a_host_that_is_named_comes_first_with_those_who_hold_what_it_lacks(fleet: Client) -> None:
    """cn2 is full of what another consumer has; in a scenario nobody holds anything."""
    asking = {"groups": {"": {"resources": {"VCPU": 8}}}, "host": {"in": ["cn2"]}}
    near, *others = explained(fleet, asking)["nearest"]
    assert (near["host"]["name"], near["named"]) == ("cn2", True)
    (lack,) = near["lacks"]
    assert (lack["at"], lack["reason"], lack["free"]) == ("/groups//resources/VCPU", "used", 4)
    (consumer,) = near["consumers"]
    assert consumer["allocations"][provider_uuid("cn2")]["resources"]["VCPU"] == 12
    assert not any("named" in other or "consumers" in other for other in others)
    assumed = explained(fleet, asking, what_if={"drain": ["cn3"]})
    assert "consumers" not in assumed["nearest"][0]


def test_ten_of_those_who_hold_what_a_host_lacks_are_shown(fleet: Client) -> None:
    """And whether there are more."""
    cn3 = provider_uuid("cn3")
    asking = {"groups": {"": {"resources": {"VCPU": 16}}}, "host": {"in": ["cn3"]}}
    uuids, seen = list[str](), list[tuple[int, bool]]()
    for number in (10, 11):
        uuids += (consumer(fleet, {cn3: {"VCPU": 1}}) for _ in range(number - len(uuids)))
        near = explained(fleet, asking)["nearest"][0]
        seen.append((len(near["consumers"]), near.get("more_consumers", False)))
    for uuid in uuids:
        assert fleet.delete(f"/allocations/{uuid}").status == 204
    assert seen == [(10, False), (10, True)]


def test_what_no_host_could_hold_is_named(fleet: Client) -> None:
    """The amount alone is impossible, whatever else is asked for."""
    asking = {"groups": {"": {"resources": {"VCPU": 99, "MEMORY_MB": 1}}}}
    answer = explained(fleet, asking)
    assert answer["verdict"] == "never"
    assert answer["impossible"] == [
        {
            "at": ["/groups//resources/VCPU"],
            "kind": "amount",
            "text": "No provider can give 99 VCPU at once; the most is 16.",
            "most": 16,
        }
    ]
    assert answer["impossible"][0]["text"] in answer["summary"]


def test_a_query_may_ask_for_more_than_any_number_that_is_stored(fleet: Client) -> None:
    """Beyond 64 bits, and beyond what a float can hold."""
    for amount in (2**31, 2**63, 10**400):
        request = {"query": f"resources=VCPU:{amount}"}
        answer = fleet.post("/berth/v1/explain", json={"request": request})
        assert (answer.status, answer.json["verdict"]) == (200, "never")
        capacity = fleet.post("/berth/v1/capacity", json={"requests": {"huge": request}})
        assert (capacity.status, capacity.json["flavors"]["huge"]["count"]) == (200, 0)
        candidates = fleet.post("/berth/v1/candidates", json={"request": request})
        assert (candidates.status, candidates.json["candidates"]) == (200, [])


def test_a_query_is_explained_as_the_request_that_it_is(fleet: Client) -> None:
    """Its limit counts nothing."""
    answer = explained(fleet, {"query": "resources=VCPU:8&required=CUSTOM_FAST&limit=3"})
    assert answer["request"] == {
        "groups": {"": {"resources": {"VCPU": 8}, "required": ["CUSTOM_FAST"]}}
    }
    assert answer["warnings"] == [{"code": "limit_ignored", "at": "/request/query"}]


def test_each_alternative_is_explained(fleet: Client) -> None:
    """In their order."""
    fits = {"groups": {"": {"resources": {"VCPU": 1}}}}
    answer = explained(fleet, {"alternatives": [REQUEST, fits]})
    assert sorted(answer) == ["alternatives", "complete", "revision"]
    assert [each["verdict"] for each in answer["alternatives"]] == ["used_up", "fits"]


def test_candidates_say_why_there_are_none(fleet: Client) -> None:
    """Only then, and only if asked."""
    path = "/berth/v1/candidates"
    sent: dict[str, Any] = {"request": REQUEST, "explain": True}
    answer = fleet.post(path, json=sent).json
    due = explained(fleet)
    del due["revision"]
    assert answer["explanation"] == due
    assert "explanation" not in fleet.post(path, json={**sent, "explain": False}).json
    fits = {"groups": {"": {"resources": {"VCPU": 1}}}}
    assert "explanation" not in fleet.post(path, json={**sent, "request": fits}).json
    both = {"alternatives": [REQUEST, REQUEST]}
    several = fleet.post(path, json={**sent, "request": both}).json["explanation"]
    assert [each["verdict"] for each in several["alternatives"]] == ["used_up", "used_up"]


GRAMMAR: Final[dict[str, Any]] = {
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
TREE, RACK = "4e8e5957-649f-477b-9e5b-f1f75b21c03c", "0d1c7d2e-5f0b-4a2c-9a60-6a2d1b0a1a11"
QUERY: Final = (
    "resources_A=VCPU:2&required_A=HW_CPU_X86_AVX2,!CUSTOM_OLD&required_A=in:CUSTOM_B,CUSTOM_C"
    f"&in_tree_A={TREE}&resources_B=VGPU:1&member_of_B=!{RACK}&resources=DISK_GB:10"
    "&root_required=CUSTOM_HOST,!CUSTOM_POOL&group_policy=isolate&same_subtree=_B,_A&limit=7"
)
TRANSLATED: Final[dict[str, Any]] = {
    "groups": {
        "_A": {
            "resources": {"VCPU": 2},
            "required": ["HW_CPU_X86_AVX2", ["CUSTOM_B", "CUSTOM_C"], "!CUSTOM_OLD"],
            "in_tree": [TREE],
        },
        "_B": {"resources": {"VGPU": 1}, "member_of": [f"!{RACK}"]},
        "": {"resources": {"DISK_GB": 10}},
    },
    "host": {"required": ["CUSTOM_HOST", "!CUSTOM_POOL"]},
    "together": [{"groups": ["_A", "_B"], "at": "subtree"}],
    "apart": [{"groups": ["_A", "_B"], "at": "provider"}],
}


@pytest.mark.parametrize(
    ("sent", "due"),
    [
        (GRAMMAR, GRAMMAR),
        ({**GRAMMAR, "host": {"in": [["cn7"], [], ["cn8"]]}}, None),
        ({**GRAMMAR, "host": {"anywhere": [["CUSTOM_FAULTY"]]}},
         {**GRAMMAR, "host": {"anywhere": ["CUSTOM_FAULTY"]}}),
        ({"query": QUERY}, TRANSLATED),
        # As it was pasted.
        ({"query": f"/allocation_candidates?{QUERY}"}, TRANSLATED),
    ],
)  # fmt: skip
def test_a_request_is_shown_as_it_was_read(fleet: Client, sent: Any, due: Any) -> None:
    """Every member survives reading and writing; those that say nothing are left out, and each
    parameter of a query has its place."""
    answer = explained(fleet, sent, relaxations=False)
    assert answer["request"] == (sent if due is None else due)
    if "query" in sent:
        assert {each["at"] for each in answer["warnings"]} >= {"/request/query"}
