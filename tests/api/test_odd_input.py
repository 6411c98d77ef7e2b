# SPDX-License-Identifier: Apache-2.0
"""Unusual but valid input, such as Unicode, and the absence of limits.

Source: rest-api.md sections 14 and 15. Invalid input is in `test_bad_input.py`.
"""

from urllib.parse import quote

import pytest

from tests.api.answers import DUPLICATE_NAME, assert_refused
from tests.api.claims import claim_body, held
from tests.api.worlds import custom_trait, generation, new_uuid, provider
from tests.client import Client

#: Names that come back as they were sent.
NAMES = [
    "Größe",
    "日本語",
    "نص عربي",
    "e\u0301 is not é",
    "\U0001f6a2 a ship beyond the basic plane",
    " blanks around ",
    "tab\tand\nnewline",
    "<b>bold</b>",
    "'; DROP TABLE resource_providers; --",
    "100% _ of it",
    "\x7f\x01",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_provider_may_have_any_name(api: Client, name: str) -> None:
    """It round-trips in bodies and queries."""
    uuid = new_uuid()
    name = f"{name} {uuid}"
    made = api.post("/resource_providers", json={"name": name, "uuid": uuid})
    assert (made.status, made.json["name"]) == (200, name)
    assert api.get(f"/resource_providers/{uuid}").json["name"] == name
    body = api.get(f"/resource_providers?name={quote(name, safe='')}").json
    assert [entry["uuid"] for entry in body["resource_providers"]] == [uuid]


def test_names_are_compared_exactly(api: Client) -> None:
    """Letter case, accents and blanks distinguish them (19)."""
    base = f"Größe {new_uuid()}"
    for name in (base, base.lower(), base.replace("ö", "o"), base + " "):
        assert api.post("/resource_providers", json={"name": name}).status == 200
    body = api.get(f"/resource_providers?name={quote(base)}").json
    assert [entry["name"] for entry in body["resource_providers"]] == [base]


def test_a_name_may_have_200_characters_whatever_their_bytes(api: Client) -> None:
    """The limit counts characters, not bytes."""
    uuid = new_uuid()
    name = uuid + "\U0001f6a2" * (200 - len(uuid))
    assert api.post("/resource_providers", json={"name": name}).status == 200
    assert_refused(
        api.post("/resource_providers", json={"name": name + "x"}),
        400,
        "Failed validating 'maxLength'",
    )


def test_what_looks_like_html_is_removed_from_messages_only(api: Client) -> None:
    """The name itself is stored unchanged."""
    name = f"<script>alert(1)</script> {new_uuid()}"
    assert api.post("/resource_providers", json={"name": name}).status == 200
    answer = api.post("/resource_providers", json={"name": name})
    assert_refused(answer, 409, "Conflicting resource provider name:", code=DUPLICATE_NAME)
    assert "<script>" not in answer.detail


@pytest.mark.parametrize("name", ["%C3%84", "%E6%97%A5", "CUSTOM_%C3%84", "%F0%9F%9A%A2"])
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/traits/{}", 404),
        ("PUT", "/traits/{}", 400),
        ("DELETE", "/traits/{}", 404),
        ("GET", "/resource_classes/{}", 404),
        ("PUT", "/resource_classes/{}", 400),
        ("DELETE", "/resource_classes/{}", 404),
        ("GET", "/resource_providers/{}", 404),
        ("GET", "/resource_providers/{}/usages", 404),
        ("DELETE", "/resource_providers/{}", 404),
    ],
)
def test_percent_encoded_unicode_in_a_path_names_nothing(
    api: Client, method: str, path: str, status: int, name: str
) -> None:
    """404 or 400, like any invalid name."""
    assert_refused(api.request(method, path.format(name)), status)


def test_a_list_of_thousands_is_not_paged(api: Client) -> None:
    """Neither aggregates nor consumers have a limit in one request."""
    host = provider(api, {"VCPU": 3000})
    aggregates = [new_uuid() for _ in range(2000)]
    body = {"aggregates": aggregates, "resource_provider_generation": generation(api, host)}
    assert api.put(f"/resource_providers/{host}/aggregates", json=body).status == 200
    shown = api.get(f"/resource_providers/{host}/aggregates").json["aggregates"]
    assert sorted(shown) == sorted(aggregates)


def test_many_consumers_may_be_written_at_once(api: Client) -> None:
    """A thousand in one POST, and all of them are listed."""
    host = provider(api, {"VCPU": 1000})
    body = {new_uuid(): claim_body("1.39", {host: {"VCPU": 1}}) for _ in range(1000)}
    assert api.post("/allocations", json=body).status == 204
    listed = api.get(f"/resource_providers/{host}/allocations").json["allocations"]
    assert set(listed) == set(body)


def test_a_consumer_may_hold_of_many_providers(api: Client) -> None:
    """A hundred in one PUT."""
    hosts = [provider(api, {"VCPU": 1}) for _ in range(100)]
    claims, holder = {host: {"VCPU": 1} for host in hosts}, new_uuid()
    assert api.put(f"/allocations/{holder}", json=claim_body("1.39", claims)).status == 204
    assert held(api, holder) == claims


def test_a_trait_may_be_named_twice(api: Client) -> None:
    """Duplicates count once."""
    host, trait = provider(api), custom_trait(api)
    body = {"traits": [trait] * 5000, "resource_provider_generation": 0}
    answer = api.put(f"/resource_providers/{host}/traits", json=body)
    assert (answer.status, answer.json["traits"]) == (200, [trait])


def test_surrounding_whitespace_in_a_body_is_fine(api: Client) -> None:
    """Of a duplicate key the last value counts (1.5)."""
    name = f"host {new_uuid()}"
    body = f' \r\n\t{{"name": "other", "name": "{name}"}}\n '.encode()
    answer = api.post(
        "/resource_providers", body=body, headers={"Content-Type": "application/json"}
    )
    assert (answer.status, answer.json["name"]) == (200, name)
