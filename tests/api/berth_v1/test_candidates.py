# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/candidates` over HTTP (spec/beyond.md 2.6 to 2.9)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from berth.api.berth_v1.asking import WARNINGS_MAX
from tests.api import configured
from tests.client import Client
from tests.world_over_http import built_over_http
from tests.worlds import aggregate_uuid, consumer_uuid, provider_uuid, world

PATH: Final = "/berth/v1/candidates"

FLEET: Final = world("""
    cn1      MEMORY_MB=1024(used:512)  @A  CUSTOM_GREEN
      numa1  VCPU=4(used:1)  HW_NUMA_ROOT
      numa2  VCPU=4          HW_NUMA_ROOT
    cn2      MEMORY_MB=1024  @A
      numa3  VCPU=4          HW_NUMA_ROOT
      numa4  VCPU=4(used:4)  HW_NUMA_ROOT
    pool     DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE  @A
""")
VCPU: Final[dict[str, Any]] = {"groups": {"": {"resources": {"VCPU": 1}}}}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service that has only this fleet."""
    client = configured.serve(tmp_path_factory.mktemp("fleet"))
    with built_over_http(FLEET, client):
        yield client


def ask(client: Client, request: Any, **members: Any) -> dict[str, Any]:
    """The answer to a question, which is no error."""
    answered = client.post(PATH, json={"request": request, **members})
    assert answered.status == 200, answered.text
    body: dict[str, Any] = answered.json
    return body


def texts(answer: dict[str, Any]) -> list[str]:
    """The candidates: the host, and what the providers give."""
    names = FLEET.names
    return [
        f"{names[each['host']]}: "
        + " ".join(
            names[uuid] + "".join(f" {name}={n}" for name, n in given["resources"].items())
            for uuid, given in each["allocations"].items()
        )
        for each in answer["candidates"]
    ]


def serving(answer: dict[str, Any]) -> set[str]:
    """The providers of each group, by candidate."""
    return {
        " ".join(
            f"{name}={'+'.join(sorted(FLEET.names[uuid] for uuid in uuids))}"
            for name, uuids in each["mappings"].items()
        )
        for each in answer["candidates"]
    }


def test_an_answer(fleet: Client) -> None:
    """Each candidate can be claimed as it is."""
    answer = ask(fleet, VCPU, order={"by": "pack"}, limit=1)
    (candidate,) = answer.pop("candidates")
    assert answer.pop("revision").startswith("b1.")
    assert answer == {"complete": True, "more": True, "warnings": []}
    numa3 = provider_uuid("numa3")
    assert candidate == {
        "host": provider_uuid("cn2"),
        "allocations": {numa3: {"resources": {"VCPU": 1}}},
        "mappings": {"": [numa3]},
        "score": {"total": 0.625, "pack": 0.625, "prefer": []},
    }
    claim = {
        "allocations": candidate["allocations"],
        "mappings": candidate["mappings"],
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    consumer = f"/allocations/{consumer_uuid('test')}"
    assert fleet.put(consumer, json=claim).status == 204
    assert fleet.delete(consumer).status == 204


@pytest.mark.parametrize("order", [None, {"by": "spread"}])
@pytest.mark.parametrize(
    ("limits", "count", "more"),
    [
        ({}, 3, False),
        ({"limit": 2}, 2, True),
        ({"limit": 3}, 3, False),
        ({"per_host": 1}, 2, True),
        ({"per_host": 2}, 3, False),
        ({"per_host": 1, "limit": 1}, 1, True),
        ({"per_host": 1, "limit": 2}, 2, True),
    ],
    ids=str,
)
def test_limits(
    fleet: Client, order: dict[str, Any] | None, limits: dict[str, int], count: int, more: bool
) -> None:
    """`more` says whether one of them left anything out; without an order there are no scores."""
    answer = ask(fleet, VCPU, **limits, **({} if order is None else {"order": order}))
    shown = texts(answer)
    assert {*shown} <= {"cn1: numa1 VCPU=1", "cn1: numa2 VCPU=1", "cn2: numa3 VCPU=1"}
    assert (len({*shown}), len(shown)) == (count, count)
    assert (answer["complete"], answer["more"]) == (True, more)
    assert all(("score" in each) is (order is not None) for each in answer["candidates"])


def test_several_groups_may_forbid_one_trait(fleet: Client) -> None:
    """Each of them is kept away from it: the VCPU of all hosts is where the trait is."""
    forbidding = {"required": ["!HW_NUMA_ROOT"]}
    vcpu, memory = {"resources": {"VCPU": 1}}, {"resources": {"MEMORY_MB": 1}, **forbidding}
    assert len(texts(ask(fleet, {"groups": {"_A": vcpu, "_B": memory}}))) == 3
    assert texts(ask(fleet, {"groups": {"_A": {**vcpu, **forbidding}, "_B": memory}})) == []


def test_a_candidate_of_a_pool_alone_has_the_first_host_that_may_use_it(fleet: Client) -> None:
    """Of the roots at which it may be anchored, its own among them, the one with the smallest UUID,
    so that the bound per host means the hosts that explain and capacity count."""
    disk = {"groups": {"": {"resources": {"DISK_GB": 10}}}}
    by_uuid = sorted(["cn1", "cn2", "pool"], key=provider_uuid)
    for number, host in enumerate(by_uuid):
        request = {**disk, "host": {"not_in": by_uuid[:number]}}
        answer = ask(fleet, request, per_host=1)
        assert texts(answer) == [f"{host}: pool DISK_GB=10"]
        assert answer["more"] is False
    assert texts(ask(fleet, {**disk, "host": {"not_in": by_uuid}})) == []


def test_a_candidate_of_a_pool_alone_is_at_no_host_that_the_request_excludes(
    fleet: Client,
) -> None:
    """By traits and aggregates of the host too: the pool's own root does not meet them."""
    disk = {"groups": {"": {"resources": {"DISK_GB": 10}}}}
    for host, due in (
        ({"required": ["CUSTOM_GREEN"]}, "cn1: pool DISK_GB=10"),
        ({"anywhere": ["!HW_NUMA_ROOT"]}, "pool: pool DISK_GB=10"),
    ):
        assert texts(ask(fleet, {**disk, "host": host})) == [due]


def test_summaries_are_those_of_the_old_route(fleet: Client) -> None:
    """At 1.39."""
    query = "resources=VCPU:1,DISK_GB:10"
    old = fleet.get(f"/allocation_candidates?{query}").json["provider_summaries"]
    answer = ask(fleet, {"query": query}, summaries=True)
    assert answer["provider_summaries"] == old
    assert set(old) == {provider_uuid(each.name) for each in FLEET.providers}
    assert "provider_summaries" not in ask(fleet, {"query": query})
    # The member is there whenever it is asked for.
    huge = {"groups": {"": {"resources": {"VCPU": 9999}}}}
    for host in ({}, {"member_of": ["zone=none"]}):
        answer = ask(fleet, {**huge, "host": host}, summaries=True)
        assert (answer["candidates"], answer["provider_summaries"]) == ([], {})


def test_the_first_alternative_with_a_candidate_counts(fleet: Client) -> None:
    """The answer says which; without any, it does not."""
    much = {"groups": {"": {"resources": {"VCPU": 5}}}}
    nowhere = {**VCPU, "host": {"in": ["nobody"]}}
    answer = ask(fleet, {"alternatives": [much, nowhere, VCPU, {"query": "resources=VCPU:1"}]})
    assert answer["alternative"] == 2
    assert len(answer["candidates"]) == 3
    assert answer["warnings"] == [
        {
            "code": "unknown_provider",
            "at": "/request/alternatives/1/host/in/0",
            "reference": "nobody",
        }
    ]
    answer = ask(fleet, {"alternatives": [much, much]})
    assert (answer["candidates"], "alternative" in answer) == ([], False)
    assert "alternative" not in ask(fleet, VCPU)


def test_unknown_references_are_warnings(fleet: Client) -> None:
    """They match nothing."""
    request = {
        "groups": {
            "": {
                "resources": {"VCPU": 1},
                "member_of": [["zone=z1", aggregate_uuid("A")], "!rack-9"],
                "not_under": ["numa1", "numa9"],
            }
        }
    }
    order = {"prefer": [{"weight": 1, "member_of": ["rack-8"]}]}
    answer = ask(
        fleet, request, order=order, what_if={"without_hosts": ["cn9"], "nothing_used": False}
    )
    assert sorted(texts(answer)) == ["cn1: numa2 VCPU=1", "cn2: numa3 VCPU=1"]
    group = "/request/groups/"
    assert sorted(answer["warnings"], key=json.dumps) == [
        {"code": "unknown_aggregate", "at": "/order/prefer/0/member_of/0", "reference": "rack-8"},
        {"code": "unknown_aggregate", "at": f"{group}/member_of/0/0", "reference": "zone=z1"},
        {"code": "unknown_aggregate", "at": f"{group}/member_of/1", "reference": "rack-9"},
        {"code": "unknown_provider", "at": f"{group}/not_under/1", "reference": "numa9"},
        {"code": "unknown_provider", "at": "/what_if/without_hosts/0", "reference": "cn9"},
    ]


def test_warnings_are_bounded(fleet: Client) -> None:
    """Ten thousand unknown hosts give no ten thousand warnings."""
    unknown = [f"nobody-{number}" for number in range(9_999)]
    answer = ask(fleet, {**VCPU, "host": {"in": [*unknown, "cn1"]}})
    assert len(answer["warnings"]) == WARNINGS_MAX
    assert {text.split(":")[0] for text in texts(answer)} == {"cn1"}


def test_the_limit_of_a_query_is_ignored(fleet: Client) -> None:
    """With a warning."""
    answer = ask(fleet, {"query": "resources=VCPU:1&limit=1"})
    assert len(answer["candidates"]) == 3
    assert answer["warnings"] == [{"code": "limit_ignored", "at": "/request/query"}]


@pytest.mark.parametrize(
    ("what_if", "due"),
    [
        ({"nothing_used": True}, ["numa1", "numa2", "numa3", "numa4"]),
        ({"without_consumers": [consumer_uuid("numa4")]}, ["numa2", "numa3", "numa4"]),
        ({"without_consumers": [consumer_uuid("nobody")]}, ["numa2", "numa3"]),
        ({"without_hosts": ["numa1"]}, ["numa3"]),
        ({"allocation_ratio": [{"resource_class": "VCPU", "ratio": 0.5}]}, []),
        (
            {
                "allocation_ratio": [
                    {"resource_class": "VCPU", "ratio": 0.5, "member_of": ["!no-such-label"]}
                ]
            },
            [],
        ),
        (
            {"allocation_ratio": [{"resource_class": "VCPU", "ratio": 2}]},
            ["numa1", "numa2", "numa3", "numa4"],
        ),
    ],
    ids=str,
)
def test_a_scenario(fleet: Client, what_if: dict[str, Any], due: list[str]) -> None:
    """It is assumed for this answer only."""
    request = {"groups": {"": {"resources": {"VCPU": 4}}}}
    answer = ask(fleet, request, what_if=what_if)
    assert sorted(text.split()[1] for text in texts(answer)) == due
    assert sorted(text.split()[1] for text in texts(ask(fleet, request))) == ["numa2", "numa3"]


def test_hosts_may_be_added(fleet: Client) -> None:
    """Copies of a tree, with nothing used."""
    added = {"add_hosts": [{"like": "cn2", "count": 3}]}
    request = {"groups": {"": {"resources": {"VCPU": 4}}}, "host": {"not_in": ["cn1", "cn2"]}}
    answer = ask(fleet, request, what_if=added, per_host=1)
    assert len({each["host"] for each in answer["candidates"]}) == 3


WISHES: Final[dict[str, tuple[dict[str, Any], set[str]]]] = {
    "root_member_of": (
        {**VCPU, "host": {"member_of": [aggregate_uuid("A")], "required": ["CUSTOM_GREEN"]}},
        {"=numa1", "=numa2"},
    ),
    "isolate=_A,_B": (
        {
            "groups": {
                "_A": {"resources": {"VCPU": 1}},
                "_B": {"resources": {"VCPU": 1}},
                "_C": {"resources": {"VCPU": 1}, "under": ["numa1"]},
            },
            "apart": [{"groups": ["_A", "_B"], "at": "provider"}],
        },
        {"_A=numa1 _B=numa2 _C=numa1", "_A=numa2 _B=numa1 _C=numa1"},
    ),
    "same_subtree=_A,!_B": (
        {
            "groups": {
                "_A": {"resources": {"MEMORY_MB": 1}, "in_tree": ["cn1"]},
                "_B": {"resources": {"DISK_GB": 1}},
                "_C": {"resources": {"VCPU": 1}, "not_under": ["numa1"]},
            },
            "apart": [{"groups": ["_A", "_B"], "at": "subtree"}],
            "together": [{"groups": ["_A", "_C"], "at": "subtree"}],
        },
        {"_A=cn1 _B=pool _C=numa2"},
    ),
    "can_split": (
        {"groups": {"": {"resources": {"VCPU": 6}, "split": {"VCPU": {"parts": 2}}}}},
        {"=numa1+numa2"},
    ),
    "rolled-up inventory": (
        {"groups": {"": {"resources": {"VCPU": 7}, "split": {"VCPU": {"parts": 16}}}}},
        {"=numa1+numa2"},
    ),
    "two guest NUMA nodes on two host NUMA nodes": (
        {
            "groups": {"_N0": {"resources": {"VCPU": 3}}, "_N1": {"resources": {"VCPU": 3}}},
            "apart": [{"groups": ["_N0", "_N1"], "at": "HW_NUMA_ROOT"}],
        },
        {"_N0=numa1 _N1=numa2", "_N0=numa2 _N1=numa1"},
    ),
    "local disk, not the pool": (
        {
            "groups": {"": {"resources": {"VCPU": 1}}, "_D": {"resources": {"DISK_GB": 1}}},
            "together": [{"groups": ["", "_D"], "at": "tree"}],
        },
        set(),
    ),
}


@pytest.mark.parametrize("wish", WISHES)
def test_a_wish_that_placement_left_open(fleet: Client, wish: str) -> None:
    """Each is one request (spec/beyond.md 2.4 and 2.5)."""
    request, due = WISHES[wish]
    answer = ask(fleet, request)
    assert serving(answer) == due
    assert len(answer["candidates"]) == len(due)


def test_a_split_shows_what_each_provider_gives(fleet: Client) -> None:
    """The summaries and the scores count every part."""
    request = {"groups": {"": {"resources": {"VCPU": 6}, "split": {"VCPU": {}}}}}
    answer = ask(fleet, request, order={"by": "pack"}, summaries=True)
    assert texts(answer) in (["cn1: numa1 VCPU=2 numa2 VCPU=4"], ["cn1: numa1 VCPU=3 numa2 VCPU=3"])
    (candidate,) = answer["candidates"]
    assert candidate["score"]["pack"] == pytest.approx(7 / 8)
    assert len(answer["provider_summaries"]) == 3


def test_without_time_there_is_no_answer(tmp_path_factory: pytest.TempPathFactory) -> None:
    """503 with `Retry-After`, not an empty list."""
    folder = tmp_path_factory.mktemp("hurried")
    client = configured.serve(folder, "[berth]\ncandidates_time_budget = 0.000001\n")
    with built_over_http(FLEET, client):
        for order in ({}, {"by": "pack"}):
            answered = client.post(PATH, json={"request": VCPU, "order": order})
            assert (answered.status, answered.code) == (503, "berth.search.gave_up")
            assert answered.headers["Retry-After"] == "1"


def test_in_tree_of_the_unnamed_group_turns_sharing_off(fleet: Client) -> None:
    """With one provider as in 1.31, and so with several; a named group may be served by a pool."""
    disk = {"VCPU": 1, "DISK_GB": 10}
    for trees in (["cn1"], ["cn1", "cn2"], ["cn1", "pool"]):
        request: Any = {"groups": {"": {"resources": disk, "in_tree": trees}}}
        assert ask(fleet, request)["candidates"] == []
        request = {"groups": {"": VCPU["groups"][""], "_D": {"resources": {"DISK_GB": 10}}}}
        request["groups"]["_D"]["in_tree"] = [*trees, "pool"]
        assert ask(fleet, request)["candidates"] != []
    assert ask(fleet, {"groups": {"": {"resources": disk}}})["candidates"] != []


EMPTY: Final[tuple[tuple[dict[str, Any], bool], ...]] = (
    ({"groups": {"": {"resources": {"VCPU": 1}, "in_tree": []}}}, False),
    ({"groups": {"": {"resources": {"VCPU": 1}, "under": []}}}, False),
    ({**VCPU, "host": {"in": []}}, False),
    ({**VCPU, "host": {"in": [["cn1"], []]}}, False),
    (
        {
            "groups": {
                "": {"resources": {"VCPU": 1}, "not_under": [], "required": [], "member_of": []}
            }
        },
        True,
    ),
    ({"groups": {"": {"resources": {"VCPU": 1}, "split": {}}}, "together": [], "apart": []}, True),
    ({**VCPU, "host": {"required": [], "anywhere": []}}, True),
    ({**VCPU, "host": {"member_of": [], "not_in": []}, "tolerate": []}, True),
)


@pytest.mark.parametrize(("request_", "fits"), EMPTY, ids=str)
def test_an_empty_list_of_what_must_match_matches_nothing(
    fleet: Client, request_: Any, fits: bool
) -> None:
    """An empty list of anything else has no effect."""
    assert bool(ask(fleet, request_)["candidates"]) is fits
    verdict = fleet.post("/berth/v1/explain", json={"request": request_}).json["verdict"]
    assert (verdict == "fits") is fits
