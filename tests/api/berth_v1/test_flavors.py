# SPDX-License-Identifier: Apache-2.0
"""`/berth/v1/flavors`: requests with a name, and what is refused (spec/beyond.md 4.5)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from berth.config import Settings
from berth.edge.app import create_app
from berth.index import Index
from berth.model.bounds import FLAVOR_BYTES_MAX
from berth.store import flavors
from berth.store.engine.database import Database
from tests.api.worlds import custom_trait, done, new_name, provider
from tests.client import Client, Response

PATH: Final = "/berth/v1/flavors"
INVALID: Final = "berth.request.invalid"

REQUEST: Final[dict[str, Any]] = {
    "groups": {
        "_CPU": {"resources": {"VCPU": 2, "MEMORY_MB": 64}, "required": ["HW_CPU_X86_AVX2"]},
        "": {"resources": {"DISK_GB": 8}},
    },
    "host": {"member_of": [["zone=z1", "zone=z2"], "!rack=r7"], "not_in": ["cn1"]},
    "together": [{"groups": ["", "_CPU"], "at": "tree"}],
}


def put(api: Client, name: str, request: Any = REQUEST, **members: Any) -> Response:
    """Create or replace a flavor."""
    return api.put(f"{PATH}/{name}", json={"request": request, **members})


def asking_for(**group: Any) -> dict[str, Any]:
    """A request with one group."""
    return {"groups": {"": {"resources": {"VCPU": 1}, **group}}}


def test_a_flavor_is_created_shown_and_deleted(api: Client) -> None:
    """As it was sent, with the defaults of what was not."""
    name = new_name("m1.large")
    assert api.get(f"{PATH}/{name}").status == 404
    created = done(put(api, name), 201)
    shown = {"name": name, "request": REQUEST, "expose": True, "description": ""}
    assert created.json == {"revision": created.json["revision"], **shown}
    assert list(created.json["request"]["groups"]) == ["_CPU", ""]
    assert created.headers["Location"].endswith(f"{PATH}/{name}")
    assert done(api.get(f"{PATH}/{name}"), 200).json == created.json
    assert shown in done(api.get(PATH), 200).json["flavors"]
    done(api.delete(f"{PATH}/{name}"), 204)
    for refused in (api.get(f"{PATH}/{name}"), api.delete(f"{PATH}/{name}")):
        assert (refused.status, refused.code) == (404, "berth.not_found")
        assert f"no flavor {name}" in refused.detail
    assert name not in [each["name"] for each in api.get(PATH).json["flavors"]]


def test_a_flavor_is_replaced_whole(client: Client) -> None:
    """If it is the same already, nothing is written."""
    done(put(client, "big", expose=False, description="Big"), 201)
    replaced = done(put(client, "big", asking_for()), 200).json
    assert (replaced["request"], replaced["expose"]) == (asking_for(), True)
    assert replaced["description"] == ""
    again = done(put(client, "big", asking_for(), expose=True, description=""), 200).json
    assert again == replaced


def test_who_insists_on_a_new_flavor_replaces_none(client: Client) -> None:
    """`If-None-Match: *`; any other value changes nothing."""
    done(put(client, "taken"), 201)
    refused = client.put(
        f"{PATH}/taken", json={"request": asking_for()}, headers={"If-None-Match": "*"}
    )
    assert (refused.status, refused.code) == (412, "berth.precondition.failed")
    assert "There is a flavor taken already." in refused.detail
    assert client.get(f"{PATH}/taken").json["request"] == REQUEST
    body = {"request": asking_for()}
    done(client.put(f"{PATH}/taken", json=body, headers={"If-None-Match": '"x"'}), 200)


def test_flavors_are_listed_by_name(client: Client) -> None:
    """All of them; a query changes nothing."""
    for name in ("b", "C", "a.1", "_"):
        done(put(client, name, description=name), 201)
    assert [each["name"] for each in client.get(PATH).json["flavors"]] == ["C", "_", "a.1", "b"]


def test_who_has_the_newest_list_gets_304(client: Client) -> None:
    """Until any write is committed."""
    done(put(client, "big"), 201)
    tag = done(client.get(PATH), 200).headers["ETag"]
    unchanged = client.get(PATH, headers={"If-None-Match": tag})
    assert (unchanged.status, unchanged.body) == (304, b"")
    done(put(client, "big", expose=False), 200)
    changed = done(client.get(PATH, headers={"If-None-Match": tag}), 200)
    assert changed.json["flavors"][0]["expose"] is False


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ({}, ""),
        ({"request": REQUEST, "flavour": 1}, "/flavour"),
        ({"request": REQUEST, "expose": 1}, "/expose"),
        ({"request": REQUEST, "description": "x" * 256}, "/description"),
        ({"request": REQUEST, "description": None}, "/description"),
        ({"request": []}, "/request"),
        ({"request": {}}, "/request"),
        ({"request": {"flavor": "m1.large"}}, "/request/flavor"),
        ({"request": {"alternatives": [REQUEST, REQUEST]}}, "/request/alternatives"),
        ({"request": {"groups": {}}}, "/request/groups"),
        ({"request": asking_for(resources={"VCPU": 0})}, "/request/groups//resources/VCPU"),
        ({"request": asking_for(resources={})}, "/request/groups/"),
        ({"request": asking_for(required=["A", "!A"])}, "/request/groups//required/0"),
        ({"request": {"query": "resources=VCPU"}}, "/request/query"),
        ({"request": {"query": "resources=VCPU:1", "host": {}}}, "/request/host"),
        (
            {"request": {**asking_for(), "apart": [{"groups": ["", "_A"], "at": "tree"}]}},
            "/request/apart/0/groups/1",
        ),
    ],
)
def test_a_wrong_body_is_refused_where_it_is_wrong(api: Client, body: Any, pointer: str) -> None:
    """The request is checked as any; nothing is written."""
    name = new_name("flavor")
    refused = api.put(f"{PATH}/{name}", json=body)
    assert (refused.status, refused.code) == (400, INVALID), refused.text
    assert refused.error["pointer"] == pointer
    assert api.get(f"{PATH}/{name}").status == 404


@pytest.mark.parametrize(
    ("request_", "pointer", "did_you_mean"),
    [
        (asking_for(resources={"VCPUU": 1}), "/groups//resources/VCPUU", ["VCPU", "PCPU"]),
        (
            asking_for(required=[["HW_CPU_X86_AVX2", "HW_CPU_X86_AXV2"]]),
            "/groups//required/0/1",
            ["HW_CPU_X86_AVX2", "HW_CPU_X86_AVX", "HW_CPU_X86_AMX_TILE"],
        ),
        ({**asking_for(), "host": {"anywhere": ["!CUSTOM_WXYZZYXW"]}}, "/host/anywhere/0", []),
    ],
)
def test_classes_and_traits_must_exist(
    api: Client, request_: Any, pointer: str, did_you_mean: list[str]
) -> None:
    """The error names similar ones."""
    name = new_name("flavor")
    refused = put(api, name, request_)
    assert (refused.status, refused.code) == (400, "berth.name.unknown")
    assert refused.error["pointer"] == f"/request{pointer}"
    assert refused.error["did_you_mean"][:1] == did_you_mean[:1]
    assert api.get(f"{PATH}/{name}").status == 404


def test_providers_and_aggregates_need_not_exist(api: Client) -> None:
    """Each question looks them up: a zone may get its label later."""
    request = {**asking_for(), "host": {"in": [new_name()], "member_of": [new_name("zone")]}}
    done(put(api, new_name("flavor"), request), 201)


@pytest.mark.parametrize("name", ["a%20b", "a%2Fb", "%C3%BC", "a%0A", "x" * 256, "%2E", "%2E%2E"])
def test_a_name_must_fit_into_a_url(api: Client, name: str) -> None:
    """No other is stored, and none is there."""
    refused = put(api, name)
    assert (refused.status, refused.code) in ((400, INVALID), (404, "berth.not_found"))
    assert api.get(f"{PATH}/{name}").status == 404


def test_a_large_request_is_refused(api: Client) -> None:
    """Every worker keeps all flavors in memory."""
    hosts = [new_name("host") for _ in range(FLAVOR_BYTES_MAX // 38)]
    name = new_name("flavor")
    refused = put(api, name, {**asking_for(), "host": {"not_in": hosts}})
    assert (refused.status, refused.code) == (400, "berth.request.too_large")
    assert refused.error["pointer"] == "/request" and "max_flavor_bytes" in refused.detail
    assert api.get(f"{PATH}/{name}").status == 404
    done(put(api, name, {**asking_for(), "host": {"not_in": hosts[:300]}}), 201)


def test_the_number_of_flavors_is_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the bound; a flavor that is there can be replaced."""
    monkeypatch.setattr(flavors, "FLAVORS_MAX", 2)
    for name in ("a", "b"):
        done(put(client, name), 201)
    refused = put(client, "c")
    assert (refused.status, refused.code) == (400, "berth.request.too_large")
    assert "max_flavors" in refused.detail
    done(put(client, "b", asking_for()), 200)
    done(client.delete(f"{PATH}/a"), 204)
    done(put(client, "c"), 201)


def test_the_bounds_are_in_the_version_document(api: Client) -> None:
    """As all bounds."""
    shown = api.get("/berth/v1").json
    assert (shown["max_flavors"], shown["max_flavor_bytes"]) == (1000, 16_384)
    assert "flavors" in shown["stable"]


def test_every_worker_sees_flavors_at_once(settings: Settings, database: Database) -> None:
    """With the next request, whichever worker took the write."""
    one, other = (Client.of(create_app(settings, database, Index(database))) for _ in range(2))
    assert other.get(PATH).json["flavors"] == []
    revision = done(put(one, "big"), 201).json["revision"]
    shown = done(other.get(f"{PATH}/big"), 200).json
    assert shown["revision"] == revision
    done(other.delete(f"{PATH}/big"), 204)
    assert one.get(PATH).json["flavors"] == []


def test_a_flavor_outlives_its_trait(api: Client) -> None:
    """It is shown as before, and cannot be stored like that again."""
    trait, name = custom_trait(api), new_name("flavor")
    done(put(api, name, asking_for(required=[trait])), 201)
    done(api.delete(f"/traits/{trait}"), 204)
    assert done(api.get(f"{PATH}/{name}"), 200).json["request"] == asking_for(required=[trait])
    assert put(api, name, asking_for(required=[trait])).code == "berth.name.unknown"


#: The role of a caller, and whether it may read and write flavors.
CALLERS: Final = {
    "admin": (True, True),
    "service": (True, True),
    "auditor": (True, False),
    "reader": (False, False),
}


@pytest.mark.parametrize("role", CALLERS)
def test_auditors_read_and_do_not_write(api: Client, role: str) -> None:
    """By the base rule `berth_reader`; 403 comes before any other error."""
    caller = api.acting_as({"X-Auth-Token": "u:p", "X-Roles": role})
    reads, writes = CALLERS[role]
    name = new_name("flavor")
    done(put(api, name), 201)
    for path in (PATH, f"{PATH}/{name}"):
        assert caller.get(path).status == (200 if reads else 403)
    answers = [put(caller, name), put(caller, name, {}), caller.delete(f"{PATH}/{name}")]
    assert [each.status for each in answers] == ([200, 400, 204] if writes else [403] * 3)
    if not writes:
        assert "berth:flavors:update" in answers[0].detail


def test_old_answers_are_the_same_with_flavors(client: Client) -> None:
    """Flavors change no old answer."""
    provider(client, inventories={"VCPU": {"total": 8}})
    path = "/allocation_candidates?resources=VCPU:1"
    before = client.get(path)
    done(put(client, "big"), 201)
    after = client.get(path)
    assert (after.status, after.body) == (before.status, before.body)
