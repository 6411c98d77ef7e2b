# SPDX-License-Identifier: Apache-2.0
"""Questions that name a flavor, over HTTP (spec/beyond.md 2.2 and 4.5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from berth.config import Settings
from berth.edge.app import create_app
from berth.index import Index
from berth.model.flavor import Flavor, FlavorName
from berth.store.engine.database import Database
from berth.store.flavors import put_flavor
from tests.api import configured
from tests.api.worlds import custom_trait, done, new_name, provider
from tests.client import Client, Response
from tests.world_over_http import built_over_http
from tests.worlds import provider_uuid, world

FLEET: Final = world("""
    cn1     VCPU=8  DISK_GB=9  CUSTOM_FAST
    cn2     VCPU=8  CUSTOM_FAST
      gpu2  VGPU=1
    cn3     VCPU=2
      gpu3  VGPU=1
    cn4     VCPU=8(used:6)  CUSTOM_FAST
      gpu4  VGPU=1
""")
GROUPS: Final[dict[str, Any]] = {
    "": {"resources": {"VCPU": 2}},
    "_GPU": {"resources": {"VGPU": 1}},
}
APART: Final = [{"groups": ["", "_GPU"], "at": "provider"}]
PATH: Final = "/berth/v1/flavors"
QUESTIONS: Final = ("candidates", "explain")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service that has only this fleet."""
    client = configured.serve(tmp_path_factory.mktemp("fleet"))
    with built_over_http(FLEET, client):
        yield client


def store(client: Client, request: Any, name: str = "") -> str:
    """A flavor; its name."""
    name = name or new_name("flavor")
    assert client.put(f"{PATH}/{name}", json={"request": request}).status in (200, 201)
    return name


def ask(client: Client, question: str, request: Any, **members: Any) -> Response:
    """The answer to a question."""
    return client.post(f"/berth/v1/{question}", json={"request": request, **members})


def answer(client: Client, question: str, request: Any, **members: Any) -> dict[str, Any]:
    """The same without the revision; it is no error."""
    body: dict[str, Any] = done(ask(client, question, request, **members), 200).json
    del body["revision"]
    return body


def hosts(client: Client, request: Any, **members: Any) -> list[str]:
    """The names of the hosts of the candidates, in order."""
    candidates = answer(client, "candidates", request, per_host=1, **members)["candidates"]
    return [FLEET.names[each["host"]] for each in candidates]


def test_a_flavor_stands_for_its_request(fleet: Client) -> None:
    """Groups, relations and the host."""
    request = {"groups": GROUPS, "apart": APART, "host": {"required": ["CUSTOM_FAST"]}}
    name = store(fleet, request)
    assert sorted(hosts(fleet, {"flavor": name})) == ["cn2", "cn4"]
    for question in QUESTIONS:
        assert answer(fleet, question, {"flavor": name}) == answer(fleet, question, request)


def test_both_hosts_must_hold(fleet: Client) -> None:
    """Whatever the members: what one of them excludes is no candidate."""
    name = store(
        fleet,
        {"groups": GROUPS, "host": {"not_in": ["cn2"], "anywhere": ["!MISC_SHARES_VIA_AGGREGATE"]}},
    )
    assert sorted(hosts(fleet, {"flavor": name})) == ["cn3", "cn4"]
    assert hosts(fleet, {"flavor": name, "host": {"not_in": ["cn4"]}}) == ["cn3"]
    assert hosts(fleet, {"flavor": name, "host": {"required": ["CUSTOM_FAST"]}}) == ["cn4"]
    assert hosts(fleet, {"flavor": name, "host": {"in": ["cn1", "cn2"]}}) == []


def test_a_host_is_in_both_lists_by_any_provider_of_its_tree(fleet: Client) -> None:
    """By its root in one list, and by its GPU in the other."""
    name = store(fleet, {"groups": GROUPS, "host": {"in": ["gpu2", "gpu3", "nobody"]}})
    asked = {"flavor": name, "host": {"in": ["cn2", provider_uuid("cn4")]}}
    assert hosts(fleet, asked) == ["cn2"]
    explained = answer(fleet, "explain", asked)
    assert explained["request"]["host"]["in"] == [
        ["gpu2", "gpu3", "nobody"],
        ["cn2", provider_uuid("cn4")],
    ]
    assert [(each["at"], each["left"]) for each in explained["stages"][:2]] == [
        ("/host/in/0", 2),
        ("/host/in/1", 1),
    ]
    assert explained["warnings"] == [
        {"code": "unknown_provider", "at": "/host/in/0/2", "reference": "nobody"}
    ]


def test_the_expanded_request_can_be_sent(fleet: Client) -> None:
    """`explain` shows it, and the answer to it is the same."""
    host = {
        "required": ["CUSTOM_FAST"],
        "in": ["cn2", "cn3"],
        "not_in": ["cn3"],
        "member_of": ["zone=z1"],
    }
    name = store(fleet, {"groups": GROUPS, "apart": APART, "host": host})
    more = {"required": ["CUSTOM_FAST", "!COMPUTE_NODE"], "in": ["cn1", "cn3"], "not_in": ["cn4"]}
    explained = answer(fleet, "explain", {"flavor": name, "host": more})
    assert explained["request"] == {
        "groups": GROUPS,
        "apart": APART,
        "host": {
            "required": ["CUSTOM_FAST", "!COMPUTE_NODE"],
            "member_of": ["zone=z1"],
            "in": [["cn2", "cn3"], ["cn1", "cn3"]],
            "not_in": ["cn3", "cn4"],
        },
    }
    assert answer(fleet, "explain", explained["request"]) == explained


def test_alternatives_may_be_flavors(fleet: Client) -> None:
    """Each by itself, next to requests."""
    big = store(fleet, {"groups": {"": {"resources": {"VCPU": 9}}}})
    small = store(fleet, {"groups": {"": {"resources": {"VCPU": 8}}}})
    asked = {"alternatives": [{"flavor": big}, {"flavor": small, "host": {"not_in": ["cn1"]}}]}
    found = answer(fleet, "candidates", asked)
    assert found["alternative"] == 1
    assert [FLEET.names[each["host"]] for each in found["candidates"]] == ["cn2"]


def test_an_order_names_the_groups_of_a_flavor(fleet: Client) -> None:
    """And no others."""
    name = store(fleet, {"groups": GROUPS})
    prefer: dict[str, Any] = {"weight": 1, "of": "_GPU", "required": []}
    assert len(hosts(fleet, {"flavor": name}, order={"prefer": [prefer]})) == 3
    prefer["of"] = "_NIC"
    refused = ask(fleet, "candidates", {"flavor": name}, order={"prefer": [prefer]})
    assert (refused.status, refused.code) == (400, "berth.request.invalid")
    assert refused.error["pointer"] == "/order/prefer/0/of"


def test_a_question_sees_the_newest_flavor(fleet: Client) -> None:
    """Although berth keeps decoded questions and flavors."""
    name = store(fleet, {"groups": {"": {"resources": {"VCPU": 8}}}})
    assert sorted(hosts(fleet, {"flavor": name})) == ["cn1", "cn2"]
    store(fleet, {"groups": {"": {"resources": {"DISK_GB": 9}}}}, name)
    assert hosts(fleet, {"flavor": name}) == ["cn1"]
    done(fleet.delete(f"{PATH}/{name}"), 204)
    assert ask(fleet, "candidates", {"flavor": name}).code == "berth.name.unknown"


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_unknown_flavor_is_refused(fleet: Client, question: str) -> None:
    """With its place and similar names; no question about it has an answer."""
    name = store(fleet, {"groups": GROUPS}, "gpu.a100.large")
    refused = ask(fleet, question, {"flavor": "gpu.a10.large"})
    assert (refused.status, refused.code) == (400, "berth.name.unknown")
    assert (refused.error["pointer"], refused.error["did_you_mean"]) == ("/request/flavor", [name])
    assert "There is no flavor gpu.a10.large.  Did you mean gpu.a100.large?" in refused.detail
    refused = ask(fleet, question, {"alternatives": [{"flavor": name}, {"flavor": "x"}]})
    assert refused.error["pointer"] == "/request/alternatives/1/flavor"
    assert refused.error["did_you_mean"] == []


def test_a_flavor_whose_trait_was_deleted_asks_for_an_unknown_name(api: Client) -> None:
    """`explain` says so and computes the rest; `candidates` points to the flavor, which has it."""
    provider(api, inventories={"VCPU": {"total": 8}})
    trait, other = custom_trait(api), custom_trait(api)
    name = store(api, {"groups": {"": {"resources": {"VCPU": 1}, "required": [trait]}}})
    done(api.delete(f"/traits/{trait}"), 204)
    refused = ask(api, "candidates", {"flavor": name})
    assert (refused.status, refused.code) == (400, "berth.name.unknown")
    assert refused.error["pointer"] == "/request/flavor"
    assert f"There is no trait {trait}, which flavor {name} names." in refused.detail
    explained = answer(api, "explain", {"flavor": name})
    assert explained["verdict"] == "unknown_name"
    (unknown,) = explained["unknown"]
    assert (unknown["at"], unknown["name"]) == ("/groups//required/0", trait)
    done(api.delete(f"/traits/{other}"), 204)
    refused = ask(api, "candidates", {"flavor": name, "host": {"required": [other]}})
    assert refused.error["pointer"] == "/request/host/required/0"
    assert f"There is no trait {other}." in refused.detail


def test_warnings_point_into_the_body(fleet: Client) -> None:
    """To what was sent, or to the flavor; those of `explain` into the expanded request."""
    name = store(fleet, {"groups": GROUPS, "host": {"not_in": ["cn8"], "member_of": ["zone=z8"]}})
    asked = {"flavor": name, "host": {"not_in": ["cn1", "cn9"]}}
    warnings = answer(fleet, "candidates", asked)["warnings"]
    assert [(each["at"], each["reference"]) for each in warnings] == [
        ("/request/host/not_in/1", "cn9"),
        ("/request/flavor", "cn8"),
        ("/request/flavor", "zone=z8"),
    ]
    warnings = answer(fleet, "explain", asked)["warnings"]
    assert [(each["at"], each["reference"]) for each in warnings] == [
        ("/host/not_in/0", "cn8"),
        ("/host/not_in/2", "cn9"),
        ("/host/member_of/0", "zone=z8"),
    ]


@pytest.mark.parametrize("member", ["required", "anywhere"])
@pytest.mark.parametrize(("stored", "sent"), [("CUSTOM_FAST", "!"), ("!CUSTOM_FAST", "")])
def test_a_contradiction_is_refused(fleet: Client, member: str, stored: str, sent: str) -> None:
    """As in one request."""
    name = store(fleet, {"groups": GROUPS, "host": {member: [stored]}})
    for question in QUESTIONS:
        asked = {"flavor": name, "host": {member: ["COMPUTE_NODE", f"{sent}CUSTOM_FAST"]}}
        refused = ask(fleet, question, asked)
        assert (refused.status, refused.code) == (400, "berth.request.invalid")
        assert refused.error["pointer"] == f"/request/host/{member}"
        assert f"contradicts flavor {name}: CUSTOM_FAST would be" in refused.detail


def test_a_flavor_may_be_a_query(fleet: Client) -> None:
    """Read as `query` is, with the conditions on the host that are sent beside it."""
    query = "resources=VCPU:2&resources1=VGPU:1&group_policy=isolate&limit=1"
    name = store(fleet, {"query": query})
    found = answer(fleet, "candidates", {"flavor": name})
    assert found.pop("warnings") == [{"code": "limit_ignored", "at": "/request/flavor"}]
    due = answer(fleet, "candidates", {"query": query})
    assert (found["candidates"], len(found["candidates"])) == (due["candidates"], 3)
    asked = {"flavor": name, "host": {"required": ["CUSTOM_FAST"], "not_in": ["gpu2"]}}
    assert hosts(fleet, asked) == ["cn4"]
    explained = answer(fleet, "explain", asked)
    assert explained["hosts"]["fit"] == 1


def test_a_flavor_that_this_release_cannot_read_is_named(
    settings: Settings, database: Database
) -> None:
    """A newer release may have stored it; every other one works."""
    client = Client.of(create_app(settings, database, Index(database)))
    put_flavor(database, FlavorName("new"), Flavor('{"groups": {"": {"wishes": {}}}}'))
    put_flavor(database, FlavorName("broken"), Flavor("{"))
    store(client, {"groups": {"": {"resources": {"VCPU": 1}}}}, "old")
    for name in ("new", "broken"):
        refused = ask(client, "candidates", {"flavor": name})
        assert (refused.status, refused.code) == (400, "berth.request.invalid")
        assert refused.error["pointer"] == "/request/flavor"
        assert f"names the flavor {name}, which this release cannot read" in refused.detail
    assert answer(client, "candidates", {"flavor": "old"})["candidates"] == []
    shown = {each["name"]: each["request"] for each in client.get(PATH).json["flavors"]}
    assert (shown["new"], shown["broken"]) == ({"groups": {"": {"wishes": {}}}}, {})
    assert client.get(f"{PATH}/broken").json["request"] == {}
