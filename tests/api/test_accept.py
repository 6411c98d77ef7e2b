# SPDX-License-Identifier: Apache-2.0
"""The effect of `Accept` on responses and errors.

Source: rest-api.md 1.4.
"""

import json

import pytest

from tests.api.answers import assert_refused
from tests.api.worlds import custom_trait, new_custom_name, new_name, new_uuid, provider
from tests.client import Client
from tests.routes import VERSIONS

JSON = "application/json"
HTML = "text/html; charset=UTF-8"
PLAIN = "text/plain; charset=UTF-8"

TIE = pytest.mark.deliberately_different("berth answers JSON when HTML and JSON match equally well")

#: GET routes that do not look at `Accept` are not among these.
CHECKED = [
    "/resource_providers",
    "/resource_providers/{uuid}",
    "/resource_providers/{uuid}/inventories",
    "/resource_providers/{uuid}/inventories/VCPU",
    "/resource_providers/{uuid}/usages",
    "/resource_providers/{uuid}/allocations",
    "/resource_providers/{uuid}/aggregates",
    "/resource_providers/{uuid}/traits",
    "/traits",
    "/resource_classes",
    "/resource_classes/VCPU",
    "/allocations/{uuid}",
    "/allocation_candidates?resources=VCPU:1",
    "/usages?project_id=x",
]


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "",
        "*/*",
        "application/json",
        "application/*",
        "text/html;q=0.5,application/json",
        "text/plain,application/json;q=0.2",
        "text/html,application/json;q=0.1",
        "text/html,application/xml;q=0.9,*/*;q=0.8",
        "*/*;q=0.8",
        "application/json,text/html",
        "application/json, */*",
        "application/json, application/json;q=0",
        "garbage",
    ],
)
def test_json_is_given_to_whoever_takes_it(api: Client, accept: str | None) -> None:
    """A GET succeeds if `Accept` admits JSON, or cannot be parsed."""
    answer = api.get("/resource_classes", headers={"Accept": accept})
    assert (answer.status, answer.headers["Content-Type"]) == (200, JSON)


@pytest.mark.parametrize("path", CHECKED)
@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("text/html", HTML),
        ("text/*", HTML),
        ("text/plain", PLAIN),
        ("application/xml", PLAIN),
        ("application/json;q=0", PLAIN),
        ("*/*;q=0", PLAIN),
        ("application/json; charset=utf-8", PLAIN),
        ("application/json;version=1", PLAIN),
    ],
)
def test_a_get_refuses_who_takes_no_json(
    api: Client, path: str, accept: str, media_type: str
) -> None:
    """406, before the provider is looked up, in a form that the client accepts or in plain text."""
    answer = api.get(path.format(uuid=new_uuid()), headers={"Accept": accept})
    assert (answer.status, answer.headers["Content-Type"]) == (406, media_type)
    assert "Only application/json is provided" in answer.text


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        (None, JSON),
        ("", JSON),
        ("*/*", JSON),
        ("application/json", JSON),
        ("application/*", JSON),
        ("text/html;q=0.5,application/json", JSON),
        ("text/plain,application/json;q=0.2", JSON),
        ("text/html,application/json;q=0.1", HTML),
        ("text/html,application/xml;q=0.9,*/*;q=0.8", HTML),
        pytest.param("*/*;q=0.8", JSON, marks=TIE),
        pytest.param("application/json,text/html", JSON, marks=TIE),
        pytest.param("application/json, */*", JSON, marks=TIE),
        pytest.param("garbage", JSON, marks=TIE),
        ("text/html", HTML),
        ("text/*", HTML),
        ("text/plain", PLAIN),
        ("application/xml", PLAIN),
        ("application/json;q=0", PLAIN),
        ("*/*;q=0", PLAIN),
        ("application/json; charset=utf-8", PLAIN),
    ],
)
@pytest.mark.parametrize("path", ["/no/such/path", "/traits/CUSTOM_NO_SUCH_TRAIT"])
def test_the_form_of_a_refusal_follows_accept(
    api: Client, path: str, accept: str | None, media_type: str
) -> None:
    """HTML or JSON, whichever matches better; plain text if the client accepts neither."""
    answer = api.get(path, headers={"Accept": accept})
    assert (answer.status, answer.headers["Content-Type"]) == (404, media_type)
    if media_type == JSON:
        assert_refused(answer, 404)
    else:
        assert "Not Found" in answer.text
        with pytest.raises(json.JSONDecodeError):
            json.loads(answer.text)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_refusal_of_accept_names_no_range_of_versions(api: Client, version: str) -> None:
    """Only the 406 for a microversion carries `min_version` and `max_version`."""
    answer = api.get("/resource_providers", headers={"Accept": "text/plain"}, version=version)
    assert answer.status == 406
    assert "max_version" not in answer.text
    assert answer.headers["OpenStack-API-Version"] == f"placement {version}"


def test_a_write_does_not_look_at_accept(api: Client) -> None:
    """POST, PUT and DELETE succeed and return JSON, whatever the client accepts."""
    plain = {"Accept": "text/plain"}
    body = {"name": new_name(), "uuid": new_uuid()}
    uuid = body["uuid"]
    posted = api.post("/resource_providers", json=body, headers=plain)
    assert (posted.status, posted.headers["Content-Type"]) == (200, JSON)
    put = api.put(f"/resource_providers/{uuid}", json={"name": new_name()}, headers=plain)
    assert (put.status, put.headers["Content-Type"]) == (200, JSON)
    assert api.delete(f"/resource_providers/{uuid}", headers=plain).status == 204
    assert api.get(f"/resource_providers/{uuid}").status == 404


def test_asking_for_one_trait_does_not_look_at_accept(api: Client) -> None:
    """`GET /traits/{name}` has no body, so there is nothing to negotiate."""
    assert api.get(f"/traits/{custom_trait(api)}", headers={"Accept": "text/plain"}).status == 204
    missing = api.get(f"/traits/{new_custom_name()}", headers={"Accept": "text/plain"})
    assert missing.status == 404


def test_html_in_a_name_does_not_reach_an_html_refusal(api: Client) -> None:
    """Anything that looks like a tag is removed from a message.

    Source: rest-api.md 1.11 and 14.
    """
    name = new_name("<script>alert(1)</script>")
    provider(api, name=name)
    answer = api.post("/resource_providers", json={"name": name}, headers={"Accept": "text/html"})
    assert answer.status == 409
    assert "<script>" not in answer.text
