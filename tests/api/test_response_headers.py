# SPDX-License-Identifier: Apache-2.0
"""The headers of responses; dates are in `test_dates.py`.

Source: rest-api.md 1.7 and 1.8.
"""

import re

import pytest

from tests.api.wire import Rule, rules
from tests.api.worlds import NOBODY, NOWHERE, new_custom_name, new_name, provider
from tests.client import Client, Response

REQUEST_ID = re.compile(r"req-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def negotiated(api: Client, version: str = "1.39") -> list[Response]:
    """Responses of each kind after the version is known: with and without a body, and errors."""
    uuid, name = provider(api, {"VCPU": 1}), new_custom_name()
    headers = {"Content-Type": "x"}
    return [
        api.get("/", version=version),
        api.get(f"/resource_providers/{uuid}", version=version),
        api.post("/resource_providers", json={"name": new_name()}, version=version),
        api.put(f"/traits/{name}", version=version),
        api.delete(f"/traits/{name}", version=version),
        api.get(f"/resource_providers/{NOWHERE}", version=version),
        api.post("/resource_providers", json={}, version=version),
        api.post("/resource_providers", body=b"{}", version=version),
        api.post("/resource_providers", version=version),
        api.get("/resource_providers", headers=NOBODY, version=version),
        api.get("/resource_providers", headers={"Accept": "text/plain"}, version=version),
        api.request("PATCH", "/resource_providers", version=version),
        api.get("/no/such/path", version=version),
        api.put(f"/resource_providers/{uuid}/traits", body=b"x", headers=headers, version=version),
        api.delete(f"/resource_providers/{uuid}", version=version),
    ]


def test_every_answer_has_a_request_id_and_a_length(api: Client) -> None:
    """`req-` and a random uuid of its own, and `Content-Length`, on errors of every layer too."""
    answers = [
        *negotiated(api),
        api.get("/resource_providers", headers={"X-Auth-Token": None}),
        api.get("/resource_providers", version="1.40"),
        api.get("/resource_providers", version="x"),
    ]
    ids = [answer.headers["x-openstack-request-id"] for answer in answers]
    assert all(REQUEST_ID.fullmatch(request_id) for request_id in ids), ids
    assert len(set(ids)) == len(ids)
    for answer in answers:
        assert answer.headers["Content-Length"] == str(len(answer.body))


@pytest.mark.parametrize("sent", [f"req-{NOWHERE}", "req-1", "anything"])
def test_the_request_id_is_made_here(api: Client, sent: str) -> None:
    """One that the client sends is only logged."""
    answer = api.get("/", headers={"X-Openstack-Request-Id": sent})
    assert answer.headers["x-openstack-request-id"] != sent


@pytest.mark.parametrize("version", ["1.0", "1.5", "1.6", "1.20", "1.39"])
def test_the_version_is_repeated_on_refusals_too(api: Client, version: str) -> None:
    """Once it is negotiated, every response has it."""
    for answer in negotiated(api, version):
        assert answer.headers["OpenStack-API-Version"] == f"placement {version}"
        if "Vary" in answer.headers:
            assert answer.headers["Vary"].lower() == "openstack-api-version"


@rules(
    """
    an answer without a body has no type
        $1 => $2
        < Content-Type:
        | POST /resource_providers {name: $new} @1.19 | 201
        | PUT /traits/$CUSTOM_N                       | 201
        | PUT /traits/$CUSTOM_T                       | 204
        | DELETE /traits/$CUSTOM_T                    | 204
        | PUT /resource_classes/$CUSTOM_N             | 201
        | DELETE /allocations/$host.consumer          | 204
    a location is an absolute URL with the host of the request
        > Host: placement.example:8778
        $1 => $2
        < Location: http://placement.example:8778$3
        | POST /resource_providers {name: $(new)x, uuid: $new} | 200 _ | /resource_providers/$new
        | POST $host/inventories {resource_class: DISK_GB, total: 1} | 201 _
            | /resource_providers/$host/inventories/DISK_GB
        | PUT /traits/$CUSTOM_N           | 201 | /traits/$CUSTOM_N
        | PUT /traits/$CUSTOM_T           | 204 | /traits/$CUSTOM_T
        | PUT /resource_classes/$CUSTOM_N | 201 | /resource_classes/$CUSTOM_N
    only creations have a location
        $1 => $2
        < Location:
        | PUT $host {name: $new}                           | 200
        | PUT $host/inventories/VCPU {total: 2, seen: $host} | 200
        | GET $host                                        | 200
        | GET /traits/$CUSTOM_T                            | 204
    what is read or written of the fleet is dated and not cached, from 1.15 on
        $1 => $2
        < Last-Modified: ... GMT
        < Cache-Control: no-cache
        | GET /                        | 200 | @1.15-
        | GET $host                    | 200 | @1.15-
        | GET /resource_providers?name=nobody | 200 | @1.15-
        | PUT $host/inventories {inventories: {VCPU: {total: 9}}, seen: $host} | 200 | @1.15-
        | POST $host/inventories {resource_class: DISK_GB, total: 1} | 201 _ | @1.15-
        | PUT $host/aggregates []      | 200 | @1.15-1.18
        | GET /traits?name=in:         | 200 | @1.15-
        | GET /traits/$CUSTOM_T        | 204 | @1.15-
        | PUT /traits/$CUSTOM_T        | 204 | @1.15-
        | GET /allocations/$nowhere    | 200 | @1.15-
        | POST /resource_providers {name: $new} | 200 _ | @1.20-
    before 1.15 nothing is, and never what is deleted, defined, claimed or refused
        $1 => $2
        < Last-Modified:
        < Cache-Control:
        | GET /                        | 200 | @1.0-1.14
        | GET $host                    | 200 | @1.0-1.14
        | PUT $host/inventories {inventories: {VCPU: {total: 9}}, seen: $host} | 200 | @1.0-1.14
        | POST $host/inventories {resource_class: DISK_GB, total: 1} | 201 _ | @1.0-1.14
        | PUT $host/aggregates []      | 200 | @1.1-1.14
        | GET /traits/$CUSTOM_T        | 204 | @1.6-1.14
        | PUT /traits/$CUSTOM_T        | 204 | @1.6-1.14
        | GET /allocations/$nowhere    | 200 | @1.0-1.14
        | POST /resource_providers {name: $new} | 201 | @1.0-1.19
        | DELETE /allocations/$host.consumer | 204
        | DELETE $empty                | 204
        | DELETE /traits/$CUSTOM_T     | 204
        | GET $nowhere                 | 404
        | POST /resource_providers {}  | 400
        | POST /reshaper RESHAPE empty VCPU=3 | 204
        | PUT /resource_classes/$CUSTOM_N | 201
        | PUT /allocations/$vm CLAIM host VCPU=1 | 204
        | POST /allocations CLAIMS vm: host VCPU=1 | 204
    without inventory there is no date, but caches must not keep that
        GET $empty/inventories => 200
        < Last-Modified:
        < Cache-Control: no-cache
        PUT $empty/inventories {inventories: {}, seen: 0} => 200
        < Last-Modified:
        < Cache-Control: no-cache
    a rename must not be kept either
        PUT $empty {name: $new} => 200
        < Cache-Control: no-cache
    """,
    world="host  VCPU=4(used:1)  MEMORY_MB=4\nempty",
    traits="CUSTOM_T",
    classes="CUSTOM_C",
)
def test_headers(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)
