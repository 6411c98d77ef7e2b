# SPDX-License-Identifier: Apache-2.0
"""`/berth/v1/drains`, and what drains change of other answers (spec/beyond.md 7.1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from berth.config import Settings
from berth.edge.app import create_app
from berth.index import Index
from berth.store import drains as store
from tests.api import configured
from tests.api.worlds import done, provider
from tests.candidates.engine import copy_of
from tests.client import Client, Response
from tests.world_over_http import built_over_http
from tests.worlds import World, aggregate_uuid, consumer_uuid, provider_uuid, world

PATH: Final = "/berth/v1/drains"
INVALID: Final = "berth.request.invalid"
UNKNOWN: Final = "berth.name.unknown"
VERSION: Final = {"OpenStack-API-Version": "placement 1.39"}

CPU: Final = {"groups": {"": {"resources": {"VCPU": 1, "MEMORY_MB": 8}}}}
QUERY: Final = "/allocation_candidates?resources=VCPU:1,MEMORY_MB:8"

#: cn2 uses the pool's disk, cn3 has its own.
FLEET: Final = """
    cn1       MEMORY_MB=64  @rack
      numa0   VCPU=4(used:3)
      numa1   VCPU=4(used:1)  CUSTOM_X
    cn2       MEMORY_MB=64(used:8)  VCPU=8  @rack  @shared
    cn3       MEMORY_MB=64  VCPU=8  DISK_GB=10
    pool      DISK_GB=100(used:1)  MISC_SHARES_VIA_AGGREGATE  @shared
"""


@pytest.fixture
def fleet(client: Client) -> Iterator[World]:
    """Three hosts and a pool."""
    drawn = world(FLEET)
    with built_over_http(drawn, client):
        yield drawn
        for drain in client.get(PATH).json["drains"]:
            done(client.delete(f"{PATH}/{drain['name']}"), 204)


def put(client: Client, name: str = "d", query: str = "", **body: Any) -> Response:
    """Create or replace a drain."""
    return client.put(f"{PATH}/{name}{query}", json=body)


def old(client: Client, query: str = QUERY) -> list[Any]:
    """The candidates of the old route."""
    found: list[Any] = client.get(query, headers=VERSION).json["allocation_requests"]
    return found


def hosts(client: Client, **more: Any) -> list[str]:
    """The names of the hosts that `POST /candidates` answers."""
    sent = {"request": {**CPU, **more.pop("request", {})}, **more}
    answer = done(client.post("/berth/v1/candidates", json=sent), 200).json
    names = {provider_uuid(name): name for name in ("cn1", "cn2", "cn3")}
    return sorted(names[each["host"]] for each in answer["candidates"])


@pytest.mark.engines("sqlite")
def test_hosts_without_names_are_drained_too(settings: Settings, prepared: Path) -> None:
    """Old data has some; they come first."""
    with copy_of(prepared) as db:
        client = Client.of(create_app(settings, db, Index(db)))
        named, *others = (provider(client, {"VCPU": 8}) for _ in range(3))
        with db.engine.begin() as connection:
            nameless = "UPDATE resource_providers SET name = NULL WHERE uuid <> ?"
            connection.exec_driver_sql(nameless, (named,))
        client = Client.of(create_app(settings, db, Index(db)))
        done(put(client, providers=[named, *others]), 201)
        shown = done(client.get(f"{PATH}/d"), 200).json
    in_order = [*sorted(others), named]
    assert [each["uuid"] for each in shown["named"]] == in_order
    assert [each["host"]["uuid"] for each in shown["left"]] == in_order


def test_a_drain_is_created_shown_replaced_and_deleted(client: Client, fleet: World) -> None:
    """With who created it, and what is on it."""
    assert client.get(f"{PATH}/d").status == 404
    created = done(put(client, providers=["cn1", provider_uuid("cn3")], reason="why"), 201)
    shown = created.json
    assert created.headers["Location"].endswith(f"{PATH}/d")
    assert {key: shown[key] for key in ("name", "reason", "effect", "created_by")} == {
        "name": "d",
        "reason": "why",
        "effect": "exclude",
        "created_by": "admin",
    }
    assert (shown["hosts"], shown["providers"], shown["consumers"]) == (2, 4, 2)
    one = done(client.get(f"{PATH}/d"), 200).json
    assert one["left"] == [
        {"host": {"uuid": provider_uuid("cn1"), "name": "cn1"}, "consumers": 2},
        {"host": {"uuid": provider_uuid("cn3"), "name": "cn3"}, "consumers": 0},
    ]
    assert one["named"] == [
        {"uuid": provider_uuid("cn1"), "name": "cn1"},
        {"uuid": provider_uuid("cn3"), "name": "cn3"},
    ]
    assert one["created_at"] == shown["created_at"]
    (listed,) = done(client.get(PATH), 200).json["drains"]
    only_one = ("revision", "named", "consumers", "left")
    assert listed == {key: one[key] for key in one if key not in only_one}
    replaced = done(put(client, providers=["numa1"], reason="", effect="none"), 200).json
    assert (replaced["hosts"], replaced["providers"], replaced["consumers"]) == (1, 1, 1)
    assert (replaced["reason"], replaced["effect"]) == ("", "none")
    assert replaced["created_at"] == shown["created_at"]
    done(client.delete(f"{PATH}/d"), 204)
    for refused in (client.get(f"{PATH}/d"), client.delete(f"{PATH}/d")):
        assert (refused.status, refused.code) == (404, "berth.not_found")


def test_who_insists_on_a_new_drain_replaces_none(client: Client, fleet: World) -> None:
    """`If-None-Match: *`, also of a dry run; nothing is written."""
    new = {"headers": {"If-None-Match": "*"}}
    done(client.put(f"{PATH}/d", json={"providers": ["cn1"]}, **new), 201)
    for query in ("", "?dry_run=true"):
        refused = client.put(f"{PATH}/d{query}", json={"providers": ["cn3"]}, **new)
        assert (refused.status, refused.code) == (412, "berth.precondition.failed")
        assert "There is a drain d already." in refused.detail
    assert [each["name"] for each in client.get(f"{PATH}/d").json["named"]] == ["cn1"]


def test_of_two_who_insist_on_a_new_drain_one_creates_it(
    client: Client, fleet: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one wrote between the look at the fleet and the write."""
    new = {"headers": {"If-None-Match": "*"}}
    write = store.put_drain

    def outrun(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        done(client.put(f"{PATH}/d", json={"providers": ["cn1"]}, **new), 201)
        return write(*arguments, **options)

    monkeypatch.setattr(store, "put_drain", outrun)
    refused = client.put(f"{PATH}/d", json={"providers": ["cn3"]}, **new)
    assert (refused.status, refused.code) == (412, "berth.precondition.failed")
    assert [each["name"] for each in client.get(f"{PATH}/d").json["named"]] == ["cn1"]


def test_what_is_left_out_stays_as_it_is(client: Client, fleet: World) -> None:
    """Of a drain that exists: its list, its reason, its effect. A dry run says the same."""
    done(put(client, providers=["numa1", "cn3"], reason="on Friday", effect="none"), 201)
    every = old(client)
    for body, due in (
        ({"effect": "exclude"}, (["cn3", "numa1"], "on Friday", "exclude")),
        ({"reason": "now"}, (["cn3", "numa1"], "now", "exclude")),
        ({"providers": ["cn2"]}, (["cn2"], "now", "exclude")),
        ({"effect": "none", "reason": ""}, (["cn2"], "", "none")),
        ({"select": {"in": ["cn1"]}}, (["cn1"], "", "none")),
        ({}, (["cn1"], "", "none")),
    ):
        dry = done(put(client, query="?dry_run=true", **body), 200).json
        changed = done(put(client, **body), 200).json
        shown = client.get(f"{PATH}/d").json
        assert ([each["name"] for each in shown["named"]], shown["reason"], shown["effect"]) == due
        for key in ("reason", "effect", "created_at", "hosts", "providers", "consumers"):
            assert dry[key] == changed[key] == shown[key], (body, key)
    assert old(client) == every


def test_a_consumer_on_several_providers_is_one(client: Client, fleet: World) -> None:
    """Of a host, and of the whole drain."""
    claim = {
        "allocations": {
            provider_uuid("numa0"): {"resources": {"VCPU": 1}},
            provider_uuid("cn1"): {"resources": {"MEMORY_MB": 1}},
            provider_uuid("cn3"): {"resources": {"VCPU": 1}},
        },
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    uuid = consumer_uuid("another")
    done(client.put(f"/allocations/{uuid}", json=claim, headers=VERSION), 204)
    try:
        assert put(client, providers=["cn1", "cn3"]).json["consumers"] == 3
        left = {
            each["host"]["name"]: each["consumers"] for each in client.get(f"{PATH}/d").json["left"]
        }
        assert left == {"cn1": 3, "cn3": 1}
    finally:
        done(client.delete(f"/allocations/{uuid}"), 204)


def test_hosts_are_selected_once(client: Client, fleet: World) -> None:
    """By the conditions of a host; drained ones too, and no list changes later."""
    put(client, "other", providers=["cn2"])
    done(put(client, select={"member_of": [aggregate_uuid("rack")]}, providers=["cn3"]), 201)
    assert {each["host"]["name"] for each in client.get(f"{PATH}/d").json["left"]} == {
        "cn1",
        "cn2",
        "cn3",
    }
    anywhere = done(put(client, "x", select={"anywhere": ["CUSTOM_X"]}), 201).json
    assert (anywhere["hosts"], anywhere["providers"]) == (1, 3)
    nothing = done(put(client, "y", select={"in": ["cn1"], "not_in": ["cn1"]}), 201).json
    assert (nothing["hosts"], nothing["providers"]) == (0, 0)


def test_a_selection_that_takes_too_long_drains_nothing(tmp_path: Path) -> None:
    """The hosts that were found until then are not all."""
    client = configured.serve(tmp_path, "[berth]\ncandidates_time_budget = 0.000001\n")
    with built_over_http(world(FLEET), client):
        refused = put(client, select={"member_of": [aggregate_uuid("rack")]})
        assert (refused.status, refused.code) == (503, "berth.search.gave_up")
        assert client.get(PATH).json["drains"] == []


def test_the_old_route_leaves_drained_providers_out_and_nothing_else_changes(
    client: Client, fleet: World
) -> None:
    """Deleting the drain restores every answer byte for byte."""
    reads = [
        f"/resource_providers/{provider_uuid(each)}{part}"
        for each in ("cn1", "numa1", "pool")
        for part in ("", "/inventories", "/usages", "/traits", "/aggregates")
    ]
    reads += ["/resource_providers?resources=VCPU:1", "/resource_providers"]
    disk = "/allocation_candidates?resources=VCPU:1,DISK_GB:5"
    before = [client.get(read, headers=VERSION).text for read in (*reads, QUERY, disk)]
    done(put(client, providers=["numa1", "cn3", "pool"]), 201)
    texts = [client.get(read, headers=VERSION).text for read in reads]
    assert texts == before[:-2]
    answer = client.get(QUERY, headers=VERSION).json
    given = {uuid for each in answer["allocation_requests"] for uuid in each["allocations"]}
    assert given == {provider_uuid(each) for each in ("cn1", "numa0", "cn2")}
    assert provider_uuid("numa1") in answer["provider_summaries"]
    assert old(client, disk) == []
    done(client.delete(f"{PATH}/d"), 204)
    after = [client.get(read, headers=VERSION).text for read in (*reads, QUERY, disk)]
    assert after == before


def test_a_claim_that_names_a_drained_provider_is_accepted(client: Client, fleet: World) -> None:
    """A drain is no access control."""
    put(client, providers=["numa1"])
    claim = {
        "allocations": {provider_uuid("numa1"): {"resources": {"VCPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    uuid = consumer_uuid("another")
    done(client.put(f"/allocations/{uuid}", json=claim, headers=VERSION), 204)
    assert client.get(f"{PATH}/d").json["consumers"] == 2
    done(client.delete(f"/allocations/{uuid}"), 204)


def test_every_question_sees_drains(client: Client, fleet: World) -> None:
    """Unless it tolerates them."""
    assert hosts(client) == ["cn1", "cn1", "cn2", "cn3"]
    put(client, "a", providers=["cn2"])
    put(client, "b", providers=["numa0"])
    assert hosts(client) == ["cn1", "cn3"]
    assert hosts(client, request={"tolerate": ["a"]}) == ["cn1", "cn2", "cn3"]
    assert hosts(client, request={"tolerate": ["b", "a"]}) == ["cn1", "cn1", "cn2", "cn3"]
    assert hosts(client, request={"tolerate": "*"}) == ["cn1", "cn1", "cn2", "cn3"]
    assert hosts(client, what_if={"undrain": ["a"], "drain": ["cn3"]}) == ["cn1", "cn2"]
    assert hosts(client, what_if={"drain": ["cn3"]}, request={"tolerate": ["a"]}) == ["cn1", "cn2"]
    assert hosts(client, what_if={"drain": ["cn3"]}, request={"tolerate": "*"}) == [
        *("cn1", "cn1", "cn2", "cn3")
    ]
    counted = client.post("/berth/v1/capacity", json={"requests": {"cpu": CPU}}).json
    assert counted["flavors"]["cpu"]["count"] == 3 + 8
    both = {
        "requests": {"cpu": CPU, "all": {**CPU, "tolerate": "*"}},
        "what_if": {"undrain": ["a"]},
    }
    counted = client.post("/berth/v1/capacity", json=both).json["flavors"]
    assert (counted["cpu"]["count"], counted["cpu"]["now"]["count"]) == (3 + 7 + 8, 3 + 8)
    assert counted["all"]["count"] == counted["all"]["now"]["count"] == 4 + 7 + 8


def test_a_drained_device_still_has_its_traits(client: Client, fleet: World) -> None:
    """`host.anywhere` asks for what is there, not for what gives something."""
    put(client, "a", providers=["numa1"])
    assert hosts(client, request={"host": {"anywhere": ["CUSTOM_X"]}}) == ["cn1"]
    assert hosts(client, request={"host": {"anywhere": ["!CUSTOM_X"]}}) == ["cn2", "cn3"]


def test_the_fleet_shows_the_drains_that_are_in_effect(client: Client, fleet: World) -> None:
    """By the provider that they name; one that is only announced changes nothing about it."""
    put(client, "a", providers=["cn1"])
    put(client, "b", providers=["cn2"], effect="none")
    lines = map(json.loads, done(client.get("/berth/v1/fleet"), 200).text.splitlines())
    shown = {line["name"]: line["drains"] for line in lines if line.get("drains")}
    assert shown == {"cn1": ["a"]}
    assert client.get(f"{PATH}?host=cn2").json["drains"][0]["name"] == "b"


def test_preserved_flavors_are_counted_without_the_drains_that_are_tolerated(
    client: Client, fleet: World
) -> None:
    """The drained host, which the question tolerates, loses one of its places for the flavor."""
    flavor = "/berth/v1/flavors/cpu"
    done(client.put(flavor, json={"request": CPU}), 201)
    put(client, "a", providers=["cn2"])
    order = {"by": "preserve", "preserve": {"cpu": 1}}
    sent = {"request": {**CPU, "tolerate": ["a"]}, "order": order}
    answer = done(client.post("/berth/v1/candidates", json=sent), 200).json
    done(client.delete(flavor), 204)
    scores = {each["host"]: each["score"]["total"] for each in answer["candidates"]}
    assert scores[provider_uuid("cn2")] == 1 / 2


def test_a_place_is_not_on_a_drained_host(client: Client, fleet: World) -> None:
    """Alternatives tolerate drains each for itself."""
    put(client, providers=["cn1", "cn2", "cn3"])
    consumers = [
        {
            "uuid": consumer_uuid("placed"),
            "project_id": "p",
            "user_id": "u",
            "consumer_type": "INSTANCE",
        }
    ]
    call = {"request": CPU, "consumers": consumers}
    refused = client.post("/berth/v1/place?dry_run=true", json=call)
    assert (refused.status, refused.code) == (409, "berth.place.does_not_fit")
    assert refused.json["explanation"]["verdict"] == "drained"
    several = {"alternatives": [CPU, {**CPU, "tolerate": ["d"], "host": {"in": ["cn3"]}}]}
    placed = client.post("/berth/v1/place?dry_run=true", json={**call, "request": several})
    (placement,) = done(placed, 200).json["placements"].values()
    assert placement["host"] == provider_uuid("cn3")


def test_what_does_not_exist_is_warned_of_in_questions(client: Client, fleet: World) -> None:
    """Drains too."""
    sent = {
        "request": {**CPU, "tolerate": ["none"]},
        "what_if": {"undrain": ["gone"], "drain": ["cn9"]},
    }
    warnings = client.post("/berth/v1/candidates", json=sent).json["warnings"]
    assert warnings == [
        {"code": "unknown_drain", "at": "/what_if/undrain/0", "reference": "gone"},
        {"code": "unknown_provider", "at": "/what_if/drain/0", "reference": "cn9"},
        {"code": "unknown_drain", "at": "/request/tolerate/0", "reference": "none"},
    ]


def test_a_drain_says_what_it_costs(client: Client, fleet: World) -> None:
    """By exposed flavor: before the call, and with the drain in effect; a dry run writes
    nothing."""
    for name, expose in (("small", True), ("hidden", False)):
        flavor = {"request": CPU, "expose": expose}
        done(client.put(f"/berth/v1/flavors/{name}", json=flavor), 201)
    try:
        dry = done(put(client, query="?dry_run=true", providers=["cn3"]), 200).json
        assert dry["capacity"] == {"small": {"now": 4 + 7 + 8, "then": 4 + 7}}
        assert (dry["created_at"], dry["hosts"], dry["complete"]) == (None, 1, True)
        assert client.get(PATH).json["drains"] == []
        announced = done(put(client, providers=["cn3"], effect="none"), 201).json
        assert announced["capacity"] == dry["capacity"]
        assert len(old(client)) == 4
        effective = done(put(client, effect="exclude"), 200).json
        assert effective["capacity"] == dry["capacity"]
        again = done(put(client, providers=["cn3"]), 200).json
        assert again["capacity"] == {"small": {"now": 4 + 7, "then": 4 + 7}}
        other = done(put(client, query="?dry_run=true", providers=["cn2"]), 200).json
        assert other["capacity"] == {"small": {"now": 4 + 7, "then": 4 + 8}}
    finally:
        for name in ("small", "hidden"):
            done(client.delete(f"/berth/v1/flavors/{name}"), 204)


def test_the_drains_of_a_host_are_listed_with_its_providers(client: Client, fleet: World) -> None:
    """For any of its providers, announced ones too; none for a host that does not exist."""
    put(client, "gpu", providers=["numa1", "cn2"])
    put(client, "later", providers=["cn1"], effect="none")
    put(client, "elsewhere", providers=["cn3"])
    for host in ("cn1", "numa0", provider_uuid("numa1")):
        listed = done(client.get(f"{PATH}?host={host}"), 200).json["drains"]
        named = {each["name"]: [p["name"] for p in each["named"]] for each in listed}
        assert named == {"gpu": ["numa1"], "later": ["cn1"]}
    assert client.get(f"{PATH}?host=cn9").json["drains"] == []
    assert client.get(f"{PATH}?hosts=cn1").code == INVALID


def test_a_drain_shows_the_providers_that_it_names_itself(client: Client, fleet: World) -> None:
    """By name, not those below them nor those of other drains; an announced drain too."""
    put(client, "other", providers=["cn2", "cn1"])
    for effect in ("none", "exclude"):
        put(client, providers=["numa1", "cn3", "cn1"], effect=effect)
        shown = done(client.get(f"{PATH}/d"), 200).json
        assert shown["named"] == [
            {"uuid": provider_uuid(name), "name": name} for name in ("cn1", "cn3", "numa1")
        ]


def test_the_line_of_a_provider_names_its_drains(client: Client, fleet: World) -> None:
    """Those in effect that name it itself."""
    put(client, "b", providers=["cn1", "cn3"])
    put(client, "a", providers=["cn1"])
    put(client, "later", providers=["cn1"], effect="none")
    lines = client.get("/berth/v1/trees/numa0").json["providers"]
    assert {line["name"]: line["drains"] for line in lines} == {
        "cn1": ["a", "b"],
        "numa0": [],
        "numa1": [],
    }


def test_who_has_the_newest_list_gets_304(client: Client, fleet: World) -> None:
    """Until any write is committed."""
    put(client, providers=["cn1"])
    tag = client.get(PATH).headers["ETag"]
    assert client.get(PATH, headers={"If-None-Match": tag}).status == 304
    put(client, providers=["cn2"])
    assert client.get(PATH, headers={"If-None-Match": tag}).status == 200


#: (body, code, pointer).
WRONG: Final[tuple[tuple[dict[str, Any], str, str], ...]] = (
    ({}, INVALID, ""),
    ({"effect": "none", "reason": "x"}, INVALID, ""),
    ({"providers": []}, INVALID, "/providers"),
    ({"select": {}}, INVALID, "/select"),
    ({"providers": ["cn1"], "select": {"member_of": [], "not_in": []}}, INVALID, "/select"),
    ({"providers": "cn1"}, INVALID, "/providers"),
    ({"providers": [], "effect": "evict"}, INVALID, "/effect"),
    ({"providers": [], "reason": "x" * 256}, INVALID, "/reason"),
    ({"providers": [], "host": "cn1"}, INVALID, "/host"),
    ({"providers": ["cn1", "cn9"]}, UNKNOWN, "/providers/1"),
    ({"select": {"in": ["cn9"]}}, UNKNOWN, "/select/in/0"),
    ({"select": {"member_of": ["zone=z9"]}}, UNKNOWN, "/select/member_of/0"),
    ({"select": {"required": ["CUSTOM_NONE"]}}, UNKNOWN, "/select/required/0"),
    ({"select": {"required": ["CUSTOM_X", "!CUSTOM_X"]}}, INVALID, "/select/required/0"),
    ({"select": {"resources": {}}}, INVALID, "/select/resources"),
)


def test_what_is_wrong_is_refused(client: Client, fleet: World) -> None:
    """With the place, and nothing written."""
    for body, code, pointer in WRONG:
        refused = put(client, **body)
        (error,) = refused.json["errors"]
        assert (refused.status, error["code"], error["pointer"]) == (400, code, pointer), body
    assert client.get(PATH).json["drains"] == []


def test_a_name_that_no_drain_may_have_is_refused(client: Client) -> None:
    """With what would be right."""
    for name in ("a%20b", "x" * 256, "%C3%A4"):
        refused = put(client, name, providers=[])
        assert (refused.status, refused.code) == (400, INVALID)
        assert "A drain has a name of" in refused.detail


def test_too_many_providers_are_refused(
    client: Client, fleet: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named or selected."""
    monkeypatch.setattr("berth.api.berth_v1.drain_body.DRAIN_PROVIDERS_MAX", 2)
    assert put(client, providers=["cn1", "cn2"]).status == 201
    refused = put(client, providers=["cn1"], select={"in": ["cn1", "cn2", "cn3"]})
    assert (refused.status, refused.code) == (400, "berth.request.too_large")
    assert "max_drain_providers" in refused.detail


def _verdict(client: Client, request: dict[str, Any]) -> Sequence[Any]:
    explained = done(client.post("/berth/v1/explain", json={"request": request}), 200).json
    return (
        explained["verdict"],
        explained["hosts"]["fit_if_undrained"],
        explained["stages"][0]["at"],
    )


def test_explain_says_when_drains_are_the_reason(client: Client, fleet: World) -> None:
    """Before anything else that might be."""
    put(client, providers=["cn2", "cn3", "numa0"])
    wanted = {"groups": {"": {"resources": {"VCPU": 5}}}}
    assert _verdict(client, wanted) == ("drained", 2, "/drains")
    assert _verdict(client, {**wanted, "tolerate": ["d"]}) == (
        "fits",
        2,
        "/groups//resources/VCPU",
    )
    assert _verdict(client, {"groups": {"": {"resources": {"VCPU": 9}}}})[0] == "never"
