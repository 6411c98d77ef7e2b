# SPDX-License-Identifier: Apache-2.0
"""What a reader of the fleet may do on the page, and what is greyed. Source: page.md, view 5."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.client import Client
from tests.e2e.serving import Service
from tests.page.browser import Browser
from tests.page.services import create_hosts, create_token, serving_page

#: The path of each list, and what a reader cannot do there.
LISTS = {"drains": "drains", "leases": "leases", "flavors": "flavors", "labels": "labels"}


@pytest.fixture(scope="module")
def auditor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str]]:
    """A service with something in each list, and the token of an auditor."""
    home = tmp_path_factory.mktemp("rights")
    tokens = home / "tokens"
    admin, auditor = (create_token(tokens, role, role=role) for role in ("admin", "auditor"))
    with serving_page(home, api=f"auth_strategy = token\ntoken_file = {tokens}") as service:
        fill(Client.at(service.url).acting_as({"X-Auth-Token": admin}))
        yield service, auditor


def fill(api: Client) -> None:
    """Two hosts, a consumer with a lease, a flavor, a drain and an aggregate."""
    create_hosts(api, "cn1", "cn2")
    (host,) = api.get("/resource_providers?name=cn1").json["resource_providers"]
    consumer, aggregate = str(uuid4()), str(uuid4())
    claim = {
        "allocations": {host["uuid"]: {"resources": {"VCPU": 1}}},
        "project_id": "web",
        "user_id": "alice",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    flavor = {"request": {"groups": {"": {"resources": {"VCPU": 4}}}}}
    for path, body in (
        (f"/allocations/{consumer}", claim),
        (f"/berth/v1/leases/{consumer}", {"seconds": 600}),
        ("/berth/v1/flavors/medium", flavor),
        ("/berth/v1/drains/fans", {"providers": ["cn2"]}),
        (f"/berth/v1/aggregates/{aggregate}", {"labels": {"zone": "z1"}}),
    ):
        answer = api.put(path, json=body)
        assert answer.status in (200, 201, 204), answer.text


def test_a_reader_sees_everything_and_changes_nothing(
    browser: Browser, auditor: tuple[Service, str]
) -> None:
    """Each list says why, its buttons and its form are greyed, and nothing is refused on the way:
    the page knows before. Questions are answered."""
    service, token = auditor
    browser.open(service.url)
    browser.write("Token", token)
    browser.click(".sign-in button")
    browser.find(".lead", "2 hosts")
    for view, things in LISTS.items():
        browser.visit(f"#/{view}")
        said = browser.find(".refusal", f"You cannot change {things}.").text
        assert "admin" in said and "auditor" in said, said
        assert browser.find("tbody tr")
        buttons = browser.all("tbody button, form button")
        assert buttons and not any(button.is_enabled() for button in buttons), view
    browser.visit("#/drains/fans")
    browser.find(".refusal", "You cannot do this.")
    assert not browser.find("button", "End…").is_enabled()
    browser.visit('#/ask?request={"groups":{"":{"resources":{"VCPU":8}}}}')
    browser.find(".verdict.fails", "No host fits now")
    browser.visit("#/capacity?drain=cn1")
    browser.find("tbody", "medium")
    assert browser.table("How many more fit") == [["medium", "1", "0", "−1", "1", "0"]]
