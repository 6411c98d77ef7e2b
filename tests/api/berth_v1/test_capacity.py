# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/capacity` over HTTP (spec/beyond.md 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from tests.api import configured
from tests.client import Client
from tests.world_over_http import built_over_http
from tests.worlds import aggregate_uuid, consumer_uuid, provider_uuid, world

PATH: Final = "/berth/v1/capacity"

FLEET: Final = world("""
    cn1     VCPU=16(used:4)  MEMORY_MB=8192  CUSTOM_FAST  @A
    cn2     VCPU=16(used:15)  MEMORY_MB=8192  @A
    cn3     MEMORY_MB=4096  @B  CUSTOM_FAST
      numa0  VCPU=4
      numa1  VCPU=6
    cn4     VCPU=64  MEMORY_MB=1024  @B @A
    pool    DISK_GB=100(used:10)  MISC_SHARES_VIA_AGGREGATE  @A
""")
LABELS: Final = {"A": {"zone": "z1"}, "B": {"zone": "z2"}}

SMALL: Final[dict[str, Any]] = {"groups": {"": {"resources": {"VCPU": 2, "MEMORY_MB": 1024}}}}
DISK: Final[dict[str, Any]] = {"groups": {"": {"resources": {"VCPU": 1, "DISK_GB": 8}}}}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service that has only this fleet, its labels, and two flavors."""
    client = configured.serve(tmp_path_factory.mktemp("fleet"))
    with built_over_http(FLEET, client):
        for name, labels in LABELS.items():
            path = f"/berth/v1/aggregates/{aggregate_uuid(name)}"
            assert client.put(path, json={"labels": labels}).status == 200
        for name, request in (("small", SMALL), ("disk", DISK)):
            assert _put(client, name, request).status == 201
        yield client


def _put(client: Client, name: str, request: Mapping[str, Any]) -> Any:
    return client.put(f"/berth/v1/flavors/{name}", json={"request": request})


def capacity(client: Client, **body: Any) -> dict[str, Any]:
    """The answer to a question, which is no error."""
    answered = client.post(PATH, json=body)
    assert answered.status == 200, answered.text
    answer: dict[str, Any] = answered.json
    return answer


def refusal(client: Client, **body: Any) -> tuple[str, str | None, str]:
    """The code, the pointer and the text of a refusal."""
    answered = client.post(PATH, json=body)
    assert answered.status == 400, answered.text
    (error,) = answered.json["errors"]
    return error["code"], error.get("pointer"), error["detail"]


def test_an_answer(fleet: Client) -> None:
    """Every member of it: on all hosts, by zone, and on the best hosts."""
    answer = capacity(fleet, requests={"mine": SMALL}, by=["zone"], hosts_max=2)
    assert answer.pop("revision").startswith("b1.")
    assert answer == {
        "complete": True,
        "warnings": [],
        "flavors": {
            "mine": {
                "count": 11,
                "at_most": 11,
                "exact": True,
                "hosts": 3,
                "classes": {
                    "VCPU": {"free": 87, "usable": 22, "stranded": 65, "largest": 64},
                    "MEMORY_MB": {
                        "free": 21504,
                        "usable": 11264,
                        "stranded": 10240,
                        "largest": 8192,
                    },
                },
                "by": {
                    "zone": {
                        "z1": {"count": 7, "at_most": 7, "hosts": 2},
                        "z2": {"count": 5, "at_most": 5, "hosts": 2},
                    }
                },
                "best": [
                    {
                        "host": {"uuid": provider_uuid("cn1"), "name": "cn1"},
                        "count": 6,
                        "at_most": 6,
                    },
                    {
                        "host": {"uuid": provider_uuid("cn3"), "name": "cn3"},
                        "count": 4,
                        "at_most": 4,
                    },
                ],
            }
        },
    }


def test_pools_count_once(fleet: Client) -> None:
    """Each host could use all of the pool, and all together can use it once."""
    answer = capacity(fleet, flavors=["disk"], by=["host", "aggregate"])["flavors"]["disk"]
    assert (answer["count"], answer["at_most"], answer["exact"]) == (11, 11, True)
    by = {line["name"]: line["count"] for line in answer["by"]["host"].values()}
    assert by == {"cn1": 11, "cn2": 1, "cn3": 0, "cn4": 11, "pool": 0}
    counts = {uuid: line["count"] for uuid, line in answer["by"]["aggregate"].items()}
    assert counts == {aggregate_uuid("A"): 11, aggregate_uuid("B"): 11}
    assert answer["classes"]["DISK_GB"] == {
        "free": 90,
        "usable": 88,
        "stranded": 2,
        "largest": 90,
    }


def test_flavors_and_requests(fleet: Client) -> None:
    """Without either all flavors; with requests only those, and flavors that are named."""
    assert list(capacity(fleet)["flavors"]) == ["disk", "small"]
    assert list(capacity(fleet, requests={"x": DISK})["flavors"]) == ["x"]
    both = capacity(fleet, flavors=["small"], requests={"x": SMALL})["flavors"]
    assert both["small"] == both["x"]
    assert capacity(fleet, flavors=[])["flavors"] == {}


def test_alternatives(fleet: Client) -> None:
    """The first that fits any host counts; if none does, the last."""
    huge = {"groups": {"": {"resources": {"VCPU": 1000}}}}
    answer = capacity(fleet, requests={"either": {"alternatives": [huge, SMALL]}})
    either = answer["flavors"]["either"]
    assert (either["alternative"], either["count"]) == (1, 11)
    neither = capacity(fleet, requests={"x": {"alternatives": [SMALL | huge, huge]}})
    assert (neither["flavors"]["x"]["alternative"], neither["flavors"]["x"]["count"]) == (1, 0)


def test_a_query_is_counted_as_the_old_route_reads_it(fleet: Client) -> None:
    """The request may be a query string; its limit has no effect."""
    query = "resources=VCPU:2,MEMORY_MB:1024&limit=1"
    answer = capacity(fleet, requests={"q": {"query": query}})
    assert answer["flavors"]["q"]["count"] == 11
    assert answer["warnings"] == [{"code": "limit_ignored", "at": "/requests/q/query"}]


def test_what_if_shows_each_figure_beside_the_present_one(fleet: Client) -> None:
    """Without cn1 and with two more like cn3: in all, by class, by zone, and by host."""
    what_if = {"without_hosts": ["cn1"], "add_hosts": [{"like": "cn3", "count": 2}]}
    answer = capacity(fleet, flavors=["small"], what_if=what_if, by=["zone", "host"], hosts_max=1)[
        "flavors"
    ]["small"]
    assert (answer["count"], answer["now"]) == (
        13,
        {"count": 11, "at_most": 11, "exact": True, "hosts": 3},
    )
    assert answer["classes"]["VCPU"]["free"] == 95
    assert answer["classes"]["VCPU"]["now"]["free"] == 87
    assert answer["by"]["zone"] == {
        "z1": {
            "count": 1,
            "at_most": 1,
            "hosts": 1,
            "now": {"count": 7, "at_most": 7, "hosts": 2},
        },
        "z2": {
            "count": 13,
            "at_most": 13,
            "hosts": 4,
            "now": {"count": 5, "at_most": 5, "hosts": 2},
        },
    }
    hosts = {line["name"]: (line["count"], line["now"]) for line in answer["by"]["host"].values()}
    assert hosts == {
        "cn2": (0, {"count": 0, "at_most": 0}),
        "cn3": (4, {"count": 4, "at_most": 4}),
        "cn3#1": (4, None),
        "cn3#2": (4, None),
        "cn4": (1, {"count": 1, "at_most": 1}),
        "pool": (0, {"count": 0, "at_most": 0}),
    }
    assert len(answer["best"]) == 1


def test_what_if_shows_a_part_of_which_nothing_is_left(fleet: Client) -> None:
    """It is what the operator wants to know of a zone that fails. What a consumer has on cn2 would
    be free without it."""
    what_if: Any = {"without_hosts": ["cn1", "cn2", "cn4", "pool"]}
    by = capacity(fleet, flavors=["small"], what_if=what_if, by=["zone"])["flavors"]["small"]["by"]
    nothing = {"count": 0, "at_most": 0, "hosts": 0}
    assert by["zone"]["z1"] == {**nothing, "now": {"count": 7, "at_most": 7, "hosts": 2}}
    what_if = {"without_consumers": [consumer_uuid("cn2")]}
    answer = capacity(fleet, flavors=["small"], what_if=what_if)["flavors"]["small"]
    assert (answer["now"]["count"], answer["count"]) == (11, 19)


def test_references_that_stand_for_nothing_are_warned_of(fleet: Client) -> None:
    """They match nothing; of a stored flavor the pointer begins with its name."""
    nowhere = SMALL | {"host": {"member_of": ["zone=z9"]}}
    assert _put(fleet, "nowhere", nowhere).status == 201
    answer = capacity(fleet, flavors=["nowhere"], what_if={"without_hosts": ["cn99"]})
    assert answer["flavors"]["nowhere"]["count"] == 0
    assert answer["warnings"] == [
        {"code": "unknown_provider", "at": "/what_if/without_hosts/0", "reference": "cn99"},
        {
            "code": "unknown_aggregate",
            "at": "/flavors/nowhere/host/member_of/0",
            "reference": "zone=z9",
        },
    ]
    assert fleet.delete("/berth/v1/flavors/nowhere").status == 204


def test_a_label_that_no_aggregate_has_is_warned_of(fleet: Client) -> None:
    """Nothing is counted by it: only values that some host has are in the answer."""
    answer = capacity(fleet, flavors=["small"], by=["zone", "zonee", "host", "aggregate"])
    assert answer["flavors"]["small"]["by"]["zonee"] == {}
    assert answer["warnings"] == [{"code": "unknown_label", "at": "/by/1", "reference": "zonee"}]


def test_a_flavor_whose_trait_is_gone_says_so(fleet: Client) -> None:
    """The others are counted."""
    assert fleet.put("/traits/CUSTOM_GONE").status == 201
    request = {"groups": {"": {"resources": {"VCPU": 1}, "required": ["CUSTOM_GONE"]}}}
    assert _put(fleet, "gone", request).status == 201
    assert fleet.delete("/traits/CUSTOM_GONE").status == 204
    answer = capacity(fleet)["flavors"]
    assert answer["gone"] == {
        "unknown": [
            {
                "at": "/flavors/gone/groups//required/0",
                "kind": "trait",
                "name": "CUSTOM_GONE",
                "did_you_mean": [],
            }
        ]
    }
    assert answer["small"]["count"] == 11
    assert fleet.delete("/berth/v1/flavors/gone").status == 204


def test_names_of_flavors_are_refused(fleet: Client) -> None:
    """One that a request has too, and one that no flavor has; others in test_refused.py."""
    both = {"flavors": ["small"], "requests": {"small": SMALL}}
    assert refusal(fleet, **both)[:2] == ("berth.request.invalid", "/requests/small")
    code, pointer, text = refusal(fleet, flavors=["smal"])
    assert (code, pointer) == ("berth.name.unknown", "/flavors/0")
    assert "There is no flavor smal." in text and "Did you mean small?" in text


def test_bounds_of_an_answer(fleet: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many requests and lines in all are refused, before anything is counted."""
    few = {f"r{number}": SMALL for number in range(99)}
    got = refusal(fleet, flavors=["small", "disk"], requests=few)
    assert got[:2] == ("berth.request.too_large", "/requests")
    assert "would count 101 flavors and requests in all" in got[2]
    monkeypatch.setattr("berth.api.berth_v1.capacity.CAPACITY_LINES_MAX", 3)
    assert capacity(fleet, flavors=["small"], by=["zone"])
    got = refusal(fleet, flavors=["small"], by=["zone", "aggregate"])
    assert got[:2] == ("berth.request.too_large", "/by/1")
    assert "would make 4 lines" in got[2]
    monkeypatch.setattr("berth.api.berth_v1.capacity.CAPACITY_HOSTS_MAX", 9)
    got = refusal(fleet, flavors=["small", "disk"], by=["host"])
    assert got[:2] == ("berth.request.too_large", "/by/0")
    assert "would make 10 lines" in got[2]
    assert capacity(fleet, flavors=["small"], by=["host"])


def test_time_that_ends_leaves_lower_bounds(tmp_path: Path) -> None:
    """`complete` is false; counts are lower bounds, and the others are still bounds."""
    client = configured.serve(tmp_path, "[berth]\ncandidates_time_budget = 0.000001\n")
    with built_over_http(FLEET, client):
        answer = capacity(client, requests={"small": SMALL, "disk": DISK})
    assert not answer["complete"]
    for name, truth in (("small", 11), ("disk", 11)):
        figures = answer["flavors"][name]
        assert figures["count"] <= truth <= figures["at_most"]
        assert figures["exact"] == (figures["count"] == figures["at_most"])


@pytest.mark.parametrize("request_", [SMALL, DISK], ids=["small", "disk"])
def test_claims_until_failure_succeed_as_often_as_is_counted(
    tmp_path: Path, request_: dict[str, Any]
) -> None:
    """Where the count is exact and no host has a choice of pools, any order of claims reaches it;
    and then nothing is left."""
    client = configured.serve(tmp_path)
    with built_over_http(FLEET, client):
        answer = capacity(client, requests={"x": request_})["flavors"]["x"]
        assert answer["exact"]
        consumers = _claim_until_failure(client, request_)
        assert len(consumers) == answer["count"]
        after = capacity(client, requests={"x": request_})["flavors"]["x"]
        assert (after["count"], after["at_most"], after["hosts"]) == (0, 0, 0)
        for consumer in consumers:
            assert client.delete(f"/allocations/{consumer}").status == 204


def _claim_until_failure(client: Client, request: Mapping[str, Any]) -> list[str]:
    """Claim the first candidate of a request until there is none; return the consumers."""
    consumers: list[str] = []
    while True:
        body = {"request": request, "limit": 1, "order": {"by": "random", "seed": len(consumers)}}
        candidates = client.post("/berth/v1/candidates", json=body).json["candidates"]
        if not candidates:
            return consumers
        consumer = str(UUID(int=len(consumers) + 1))
        claim = {
            "allocations": candidates[0]["allocations"],
            "mappings": candidates[0]["mappings"],
            "project_id": "web",
            "user_id": "alice",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        assert client.put(f"/allocations/{consumer}", json=claim).status == 204
        consumers.append(consumer)


def test_preserve_leaves_large_holes_for_large_flavors(fleet: Client) -> None:
    """A small machine goes where it costs no large one: cn1 has 12 VCPUs and keeps room for two of
    six, numa1 of cn3 would lose its only one."""
    large = {"groups": {"": {"resources": {"VCPU": 6}}}}
    assert _put(fleet, "large", large).status == 201
    request = {
        "groups": {"": {"resources": {"VCPU": 1, "MEMORY_MB": 512}}},
        "host": {"in": ["cn1", "cn2", "cn3"]},
    }
    order = {"by": "preserve", "preserve": {"large": 2}}
    answered = fleet.post("/berth/v1/candidates", json={"request": request, "order": order})
    assert answered.status == 200, answered.text
    scores = {
        (candidate["host"], *sorted(candidate["allocations"])): candidate["score"]
        for candidate in answered.json["candidates"]
    }
    lost_one = {"total": 1 / 3, "preserve": 1 / 3, "prefer": []}
    lost_none = {"total": 1.0, "preserve": 1.0, "prefer": []}
    cn1, cn2, cn3, numa0, numa1 = map(provider_uuid, ("cn1", "cn2", "cn3", "numa0", "numa1"))
    assert scores == {
        (cn1, cn1): lost_one,
        (cn2, cn2): lost_none,
        (cn3, *sorted((cn3, numa0))): lost_none,
        (cn3, *sorted((cn3, numa1))): lost_one,
    }
    totals = [each["score"]["total"] for each in answered.json["candidates"]]
    assert totals == sorted(totals, reverse=True)
    owner = {"project_id": "web", "user_id": "alice", "consumer_type": "INSTANCE"}
    consumers = [{"uuid": str(UUID(int=number)), **owner} for number in range(1, 6)]
    body = {"request": request, "order": order, "consumers": consumers}
    placed = fleet.post("/berth/v1/place?dry_run=true", json=body)
    assert placed.status == 200, placed.text
    providers = sorted(
        provider
        for placement in placed.json["placements"].values()
        for provider, given in placement["allocations"].items()
        if "VCPU" in given["resources"]
    )
    # One is left on cn2 and four on numa0, and none of them costs a large one.
    assert providers == sorted([cn2, *[numa0] * 4])
    assert fleet.delete("/berth/v1/flavors/large").status == 204
