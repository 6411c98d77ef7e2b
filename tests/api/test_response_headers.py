# SPDX-License-Identifier: Apache-2.0
"""The headers of responses.

Source: rest-api.md 1.7.
"""

import re

import pytest

from tests.api.claims import consumer
from tests.api.worlds import (
    NOBODY,
    NOWHERE,
    custom_trait,
    generation,
    new_custom_name,
    new_name,
    new_uuid,
    provider,
)
from tests.client import Client, Response
from tests.routes import VERSIONS

REQUEST_ID = re.compile(r"req-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def answers(api: Client) -> list[Response]:
    """A response of each kind: successes with and without a body, and errors of each layer."""
    uuid = provider(api, {"VCPU": 1})
    name = new_custom_name()
    return [
        api.get("/"),
        api.get(f"/resource_providers/{uuid}"),
        api.post("/resource_providers", json={"name": new_name()}, version="1.19"),
        api.put(f"/traits/{name}"),
        api.delete(f"/traits/{name}"),
        api.get(f"/resource_providers/{NOWHERE}"),
        api.post("/resource_providers", json={}),
        api.post("/resource_providers", body=b"{}"),
        api.get("/resource_providers", headers=NOBODY),
        api.get("/resource_providers", headers={"X-Auth-Token": None}),
        api.get("/resource_providers", version="1.40"),
        api.get("/resource_providers", version="x"),
        api.get("/resource_providers", headers={"Accept": "text/plain"}),
        api.request("PATCH", "/resource_providers"),
        api.get("/no/such/path"),
        api.put(f"/resource_providers/{uuid}/traits", body=b"x", headers={"Content-Type": "x"}),
    ]


def test_every_answer_has_a_request_id_of_its_own(api: Client) -> None:
    """`req-` and a random uuid, on successes and on errors of every layer."""
    ids = [answer.headers["x-openstack-request-id"] for answer in answers(api)]
    assert all(REQUEST_ID.fullmatch(request_id) for request_id in ids), ids
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("sent", ["req-9c1f6f0e-3c55-4d43-9d6a-3f1de6a5b6c0", "req-1", "anything"])
def test_the_request_id_is_made_here(api: Client, sent: str) -> None:
    """One that the client sends is only logged."""
    answer = api.get("/", headers={"X-Openstack-Request-Id": sent})
    assert answer.headers["x-openstack-request-id"] != sent


def test_every_answer_tells_its_length(api: Client) -> None:
    """`Content-Length` is always present, 0 without a body."""
    for answer in answers(api):
        assert answer.headers["Content-Length"] == str(len(answer.body))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_version_is_repeated_on_refusals_too(api: Client, version: str) -> None:
    """Once it is negotiated, every response has it."""
    for answer in (
        api.get("/resource_providers?name=nobody-has-this", version=version),
        api.get(f"/resource_providers/{NOWHERE}", version=version),
        api.get("/no/such/path", version=version),
        api.get("/resource_providers", headers=NOBODY, version=version),
        api.request("PATCH", "/resource_providers", version=version),
        api.post("/resource_providers", json={}, version=version),
        api.post("/resource_providers", body=b"{}", version=version),
        api.post("/resource_providers", version=version),
    ):
        assert answer.headers["OpenStack-API-Version"] == f"placement {version}"


def test_answers_vary_by_version(api: Client) -> None:
    """Caches must not return one version's response for another: for responses of handlers and
    405."""
    uuid = provider(api)
    for answer in (
        api.get("/"),
        api.get(f"/resource_providers/{uuid}"),
        api.post("/resource_providers", json={}),
        api.get("/traits/NO_SUCH_TRAIT"),
        api.request("PATCH", "/resource_providers"),
        api.delete(f"/resource_providers/{uuid}"),
    ):
        assert (answer.headers["Vary"]).lower() == "openstack-api-version", answer


def test_json_has_no_charset(api: Client) -> None:
    """The type is `application/json` on successes and errors."""
    for path in ("/", "/resource_classes", f"/resource_providers/{NOWHERE}", "/no/such/path"):
        assert api.get(path).headers["Content-Type"] == "application/json"


def test_an_answer_without_a_body_has_no_type(api: Client) -> None:
    """201 and 204."""
    uuid, name = provider(api, {"VCPU": 1}), new_custom_name()
    holder = consumer(api, {uuid: {"VCPU": 1}})
    empty = [
        api.post("/resource_providers", json={"name": new_name()}, version="1.19"),
        api.put(f"/traits/{name}"),
        api.put(f"/traits/{name}"),
        api.get(f"/traits/{name}"),
        api.delete(f"/traits/{name}"),
        api.put(f"/resource_classes/{name}"),
        api.delete(f"/resource_classes/{name}"),
        api.delete(f"/allocations/{holder}"),
        api.delete(f"/resource_providers/{uuid}"),
    ]
    assert [answer.status for answer in empty] == [201, 201, 204, 204, 204, 201, 204, 204, 204]
    for answer in empty:
        assert answer.body == b""
        assert "Content-Type" not in answer.headers


def test_a_location_is_an_absolute_url(api: Client) -> None:
    """With the scheme, the request's `Host`, and the mount prefix."""
    host = {"Host": "placement.example:8778"}
    body = {"name": new_name(), "uuid": new_uuid()}
    begin = "http://placement.example:8778"
    rp = f"{begin}/resource_providers/{body['uuid']}"
    assert api.post("/resource_providers", json=body, headers=host).headers["Location"] == rp
    record = {"resource_class": "VCPU", "total": 1}
    path = f"/resource_providers/{body['uuid']}/inventories"
    created = api.post(path, json=record, headers=host)
    assert created.headers["Location"] == f"{rp}/inventories/VCPU"
    name = new_custom_name()
    trait = api.put(f"/traits/{name}", headers=host)
    assert trait.headers["Location"] == f"{begin}/traits/{name}"
    trait = api.put(f"/traits/{name}", headers=host)
    assert trait.headers["Location"] == f"{begin}/traits/{name}"
    resource_class = api.put(f"/resource_classes/{name}", headers=host)
    assert resource_class.headers["Location"] == f"{begin}/resource_classes/{name}"


def test_only_creations_have_a_location(api: Client) -> None:
    """Neither updates nor reads have one."""
    uuid = provider(api, {"VCPU": 1})
    seen = {"resource_provider_generation": generation(api, uuid)}
    for answer in (
        api.put(f"/resource_providers/{uuid}", json={"name": new_name()}),
        api.put(f"/resource_providers/{uuid}/inventories/VCPU", json={"total": 2, **seen}),
        api.get(f"/resource_providers/{uuid}"),
        api.get(f"/traits/{custom_trait(api)}"),
    ):
        assert answer.status in (200, 204)
        assert "Location" not in answer.headers


def test_text_beyond_ascii_comes_back_as_it_went(api: Client) -> None:
    """In any valid encoding of JSON, whatever the name.

    Source: rest-api.md 14.
    """
    for text in ("höst", "ホスト", "\U0001f5a5", 'quo"te\\', "tab\tand\nline", "<b>", "'; --"):
        name = new_name(text)
        uuid = provider(api, name=name)
        assert api.get(f"/resource_providers/{uuid}").json["name"] == name
